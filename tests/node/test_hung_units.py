"""A unit that hangs: its node is not ready, kills it and starts it again, and waits for nothing meanwhile."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric

from railgun.node import child_process, liveness, telemetry
from railgun.node.child_process import ChildProcess
from railgun.node.supervisor import Supervisor
from railgun.node.telemetry import NodeCollector
from tests.halting import halt, halted
from tests.proc import runs
from tests.unit.local_units import awaited

_SILENT_S, _HUNG_AFTER_S = 1.0, 4.0
# It says all the time that it is ready, or goes on as the code after that does.
_BEATS = """
import sys, threading, time
def beat():
    while True:
        print('{"ready": true}', flush=True)
        time.sleep(0.1)
threading.Thread(target=beat, daemon=True).start()
sys.stdin.read()
"""
_SAYS_NOTHING = "import sys; sys.stdin.read()"
_STOPS = """
import time
print('{"ready": true}\\n{"ready": false, "stopping": true}', flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (liveness, child_process):
        monkeypatch.setattr(module, "UNIT_SILENT_S", _SILENT_S)
    # The units here do not answer.
    monkeypatch.setattr(telemetry, "ANSWER_S", 0.1)


@contextmanager
def running(
    folder: Path, *units: str, hung_after_s: float = _HUNG_AFTER_S
) -> Iterator[tuple[Supervisor, Callable[[], bool]]]:
    """A node of such units; with what stops it, and returns whether all ended well."""
    commands = [[sys.executable, "-c", code] for code in units]
    node = Supervisor(folder, commands, hung_after_s=hung_after_s)
    stopped, is_well = threading.Event(), list[bool]()
    supervision = threading.Thread(target=lambda: is_well.append(node.run(stopped, interval_s=0.02)))
    supervision.start()

    def stop() -> bool:
        stopped.set()
        supervision.join(30)
        return is_well[0]

    try:
        yield node, stop
    finally:
        stopped.set()
        supervision.join()


def pid_of(unit: ChildProcess) -> int:
    assert unit.pid is not None
    return unit.pid


def up(node: Supervisor, folder: Path) -> list[float]:
    """What the metrics say of each unit."""
    families: dict[str, Metric] = {
        each.name: each for each in NodeCollector(node.units, folder, "1").collect()
    }
    return [sample.value for sample in families["railgun_node_unit_up"].samples]


def test_a_unit_that_hangs_is_not_ready_then_killed_and_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path, _BEATS, _BEATS) as (node, stop):
        awaited(lambda: node.waits_for is None)
        assert up(node, tmp_path) == [1.0, 1.0]
        hung = pid_of(node.units[1])
        halt(hung)
        awaited(lambda: node.waits_for is not None)
        assert str(node.waits_for).startswith("not ready: unit 1 has said nothing for ")
        assert up(node, tmp_path) == [1.0, 0.0]
        awaited(lambda: node.waits_for is None)
        assert [unit.starts for unit in node.units] == [1, 2]
        assert not runs(hung)
        assert up(node, tmp_path) == [1.0, 1.0]
        assert stop()
    assert "unit 1 has said nothing for 1 s, so the node is not ready; after 4 s it is killed" in caplog.text
    assert "unit 1 ended with -9" in caplog.text


def test_a_unit_that_is_heard_again_in_time_is_ready_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with running(tmp_path, _BEATS, hung_after_s=60.0) as (node, stop):
        awaited(lambda: node.waits_for is None)
        with halted([pid_of(node.units[0])]):
            awaited(lambda: node.waits_for is not None)
        awaited(lambda: node.waits_for is None)
        awaited(lambda: "unit 0 is heard again" in caplog.text)
        assert node.units[0].starts == 1
        assert stop()


def test_a_unit_that_starts_is_not_killed_however_long_it_takes(tmp_path: Path) -> None:
    with running(tmp_path, _SAYS_NOTHING) as (node, _):
        awaited(lambda: node.units[0].starts == 1)
        time.sleep(2 * _HUNG_AFTER_S)
        assert node.waits_for == "starting: units are starting"
        assert node.units[0].starts == 1


def test_a_unit_that_stops_has_the_time_of_one_that_was_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_s = 3 * _HUNG_AFTER_S
    monkeypatch.setattr(child_process, "STOP_S", stop_s)
    with running(tmp_path, _STOPS) as (node, _):
        awaited(lambda: bool(node.units[0].heartbeat.get("stopping")))
        begun_s = time.monotonic()
        awaited(lambda: node.units[0].starts == 2)
        assert time.monotonic() - begun_s > stop_s - 1.0


@contextmanager
def disk_asleep(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within this, what is killed does not end, as where it waits for a disk."""
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda process: None)
        yield


def test_the_others_are_looked_after_while_a_killed_one_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, _BEATS, _BEATS) as (node, stop):
        awaited(lambda: node.waits_for is None)
        hung, other = map(pid_of, node.units)
        with disk_asleep(monkeypatch):
            halt(hung)
            said = "not ready: unit 0 was killed and has not ended: its disk may not answer"
            awaited(lambda: node.waits_for == said)
            os.kill(other, signal.SIGKILL)
            awaited(lambda: node.units[1].starts == 2 and node.units[1].is_ready)
            assert node.waits_for == said
            assert up(node, tmp_path) == [0.0, 1.0]
            assert node.units[0].starts == 1
        os.kill(hung, signal.SIGKILL)
        awaited(lambda: node.waits_for is None)
        assert [unit.starts for unit in node.units] == [2, 2]
        assert stop()


def test_a_node_that_stops_leaves_one_behind_that_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path, _BEATS) as (node, stop):
        awaited(lambda: node.waits_for is None)
        # The test keeps it, and looks after it.
        kept = node.units[0]._process
        assert kept is not None
        with disk_asleep(monkeypatch):
            halt(kept.pid)
            awaited(lambda: "was killed" in str(node.waits_for))
            begun_s = time.monotonic()
            assert not stop()
            assert time.monotonic() - begun_s < 10.0
        assert "unit 0 was killed and does not end, and is left behind" in caplog.text
        kept.kill()
        kept.wait()
        for pipe in (kept.stdin, kept.stdout):
            assert pipe is not None
            pipe.close()
