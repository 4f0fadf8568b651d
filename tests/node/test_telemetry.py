"""A node's port: what its units say, each sample with its unit; whether it is ready."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from railgun.access.guard import Guard
from railgun.config.settings import HttpSettings
from railgun.node import telemetry
from railgun.node.child_process import ChildProcess
from railgun.node.server import serving
from railgun.node.telemetry import NodeCollector
from railgun.transfer.figures import Figures
from tests.unit.processes import ROOT

# A unit that is ready at once, and says how many times it was asked.
_UNIT = """
import json, sys
def say(line): sys.stdout.write(json.dumps(line) + "\\n"); sys.stdout.flush()
say({"version": 1, "ready": True})
for asked, line in enumerate(sys.stdin, 1):
    assert line == "metrics\\n"
    if "--silent" not in sys.argv:
        help = "# HELP railgun_rows entity rows in memory\\n# TYPE railgun_rows gauge\\n"
        say({"version": 1, "metrics": help + 'railgun_rows{stream="s"} %d\\n' % asked})
"""


@contextmanager
def running(*words: list[str]) -> Iterator[list[ChildProcess]]:
    units = [ChildProcess(index, [sys.executable, "-c", _UNIT, *more]) for index, more in enumerate(words)]
    try:
        for unit in units:
            unit.watch()
        deadline = time.monotonic() + 60
        while not all(unit.is_ready for unit in units):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield units
    finally:
        for unit in units:
            unit.ask_to_stop()
            unit.end(time.monotonic() + 60)


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_units_say_stands_together(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "file").write_bytes(bytes(10))
    with (
        running([], []) as units,
        serving(
            "127.0.0.1", 0, NodeCollector(units, tmp_path, "1.2"), lambda: None, HttpSettings(), Guard()
        ) as url,
    ):
        for asked in (1, 2):
            text = httpx.get(f"{url}/metrics", trust_env=False).text
            assert text.count("# TYPE railgun_rows gauge") == 1
            found = samples(text)
            for unit in ("0", "1"):
                assert found["railgun_rows", (("stream", "s"), ("unit", unit))] == asked
                assert found["railgun_node_unit_up", (("unit", unit),)] == 1
                assert found["railgun_node_unit_starts_total", (("unit", unit),)] == 1
            assert found["railgun_node_units", ()] == 2
            assert found["railgun_build_info", (("version", "1.2"),)] == 1
            assert found["railgun_disk_bytes", (("kind", "state"),)] == 10


def test_a_unit_that_does_not_answer_keeps_nobody_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "ANSWER_S", 2.0)
    with (
        running([], ["--silent"]) as units,
        serving(
            "127.0.0.1", 0, NodeCollector(units, tmp_path, "1.2"), lambda: None, HttpSettings(), Guard()
        ) as url,
    ):
        found = samples(httpx.get(f"{url}/metrics", trust_env=False).text)
        assert found["railgun_rows", (("stream", "s"), ("unit", "0"))] == 1
        assert ("railgun_rows", (("stream", "s"), ("unit", "1"))) not in found


def test_a_unit_that_is_gone_says_nothing(tmp_path: Path) -> None:
    with running([]) as units:
        pid = units[0].pid
        assert pid is not None
        units[0].ask_to_stop()
        deadline = time.monotonic() + 60
        while units[0].starts == 1 and units[0].metrics(1.0):
            assert time.monotonic() < deadline
        assert units[0].metrics(0.1) == ""


def test_health_and_readiness(tmp_path: Path) -> None:
    waits_for: list[str | None] = ["starting: some work"]
    with (
        serving(
            "127.0.0.1",
            0,
            NodeCollector([], tmp_path / "none", "1.2"),
            lambda: waits_for[0],
            HttpSettings(),
            Guard(),
        ) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        assert client.get("/healthz").status_code == 200
        starting = client.get("/readyz")
        assert (starting.status_code, starting.text) == (503, "starting: some work\n")
        waits_for[0] = None
        assert client.get("/readyz").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert client.get("/elsewhere").status_code == 404
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/healthz", trust_env=False)


def test_a_node_that_compiles_its_kernels_says_so(tmp_path: Path) -> None:
    """At a first start that is a minute or a few, in which nobody else says whether it lives."""
    own = {"RAILGUN_KERNEL_CACHE": str(tmp_path / "kernels"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "railgun", "node", "--units", "1", "--data", str(tmp_path / "data")]
    environment = {**os.environ, **own}
    # Where this process has compiled something.
    environment.pop("NUMBA_CACHE_DIR", None)
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as node:
        try:
            assert node.stderr is not None
            begun = next(line for line in node.stderr if ": 1 unit, broker " in line)
            (url,) = re.findall(r"http://[\d.:]+", begun)
            said = httpx.get(f"{url}/readyz", trust_env=False)
            assert said.status_code == 503
            assert said.text.startswith("starting: kernels are loaded, or compiled")
            assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
            assert httpx.get(f"{url}/metrics", trust_env=False).status_code == 200
        finally:
            node.kill()


def test_the_figures_of_the_transfer_process_are_the_nodes(tmp_path: Path) -> None:
    transfer = ChildProcess(1, [])
    collector = NodeCollector([], tmp_path, "1", None, transfer)
    names = {family.name for family in collector.collect() if family.samples}
    assert not any(name.startswith("railgun_transfer_") for name in names)
    transfer.heartbeat = {"version": 1, "ready": True, "transfer": Figures().now()}
    found = {sample.name for family in collector.collect() for sample in family.samples}
    assert {name for name in found if name.startswith("railgun_transfer_")} == {
        f"railgun_transfer_{name}" for name in Figures().now()
    }


def test_how_far_the_clock_is_ahead_is_said_once_it_is_known(tmp_path: Path) -> None:
    leader = ChildProcess(1, [])
    collector = NodeCollector([], tmp_path, "1", leader)

    def said() -> list[float]:
        return [
            sample.value
            for family in collector.collect()
            for sample in family.samples
            if family.name == "railgun_node_clock_ahead_seconds"
        ]

    leader.heartbeat = {"version": 1, "ready": True, "leads": False, "clock_ahead_ms": None}
    assert said() == []
    leader.heartbeat = {**leader.heartbeat, "clock_ahead_ms": -1_500}
    assert said() == [-1.5]
