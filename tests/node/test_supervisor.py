"""A node's supervisor: what it tells the leader's process, and when it says that the node is ready."""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from railgun.node.parent import UnitEnded
from railgun.node.supervisor import Supervisor
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import awaited


def _command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_that_a_unit_has_ended_is_told_to_the_leaders_process(tmp_path: Path) -> None:
    told = tmp_path / "told"
    listens = (
        f"import sys; print('{{\"ready\": true}}', flush=True); "
        f"open({str(told)!r}, 'w').write(sys.stdin.readline()); sys.stdin.read()"
    )
    units = [_command("import sys; sys.stdin.read()"), _command("raise SystemExit(1)")]
    node = Supervisor(tmp_path / "data", units, leader=_command(listens))
    stopped, before_ms = threading.Event(), time.time_ns() // 1_000_000
    running = threading.Thread(target=node.run, args=[stopped])
    running.start()
    awaited(lambda: told.is_file() and told.read_bytes().endswith(b"\n"))
    stopped.set()
    running.join()
    ended = msgspec.json.decode(told.read_bytes(), type=UnitEnded)
    assert (ended.unit, before_ms <= ended.at_ms <= time.time_ns() // 1_000_000) == (1, True)
    assert ended.error == "exit code 1"


def test_a_unit_that_is_not_ready_for_a_while_is_no_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[float]()
    # It says, turn by turn, that it is ready and that it is not; after a second it ends.
    turns = (
        "import sys, time\n"
        "for turn in range(10):\n"
        "    print('{\"ready\": %s}' % ('false' if turn % 2 else 'true'), flush=True)\n"
        "    time.sleep(0.1)\n"
    )
    supervised, stopped = Supervisor(tmp_path, [_command(turns)]), threading.Event()
    supervision = threading.Thread(target=supervised.run, args=[stopped, lambda: said.append(0.0), 0.01])
    supervision.start()
    try:
        awaited(lambda: supervised.units[0].starts > 2)
        assert 2 <= len(said) <= 3
    finally:
        stopped.set()
        supervision.join()


def test_a_unit_that_ends_again_and_again_says_why_the_node_is_not_ready(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is where its folder belongs."""
    monkeypatch.setenv("RAILGUN_CLUSTER__TOPIC_PREFIX", own_prefix("e"))
    (tmp_path / "file").touch()
    words = ["--node-folder", str(tmp_path / "file"), "--units", "2", "--index", "0", "--broker", kafka]
    units = [[sys.executable, "-m", "railgun.unit", *words], _command("import sys; sys.stdin.read()")]
    node, stopped = Supervisor(tmp_path / "data", units), threading.Event()
    assert node.waits_for == "starting: units are starting"
    supervision = threading.Thread(target=node.run, args=[stopped])
    supervision.start()
    try:
        awaited(lambda: node.units[0].starts > 2)
        assert re.match(r"starting: unit 0 ended \d+ times, last: /.*/file: File exists", str(node.waits_for))
    finally:
        stopped.set()
        supervision.join()


_NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("part", ["railgun.unit", "railgun.node.leader"])
def test_a_broker_that_is_away_at_the_start_is_waited_for(tmp_path: Path, part: str) -> None:
    words = ["--node-folder", str(tmp_path), "--units", "1", "--broker", _NOWHERE]
    words += ["--index", "0"] if part == "railgun.unit" else ["--release", "1", "--began-ms", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", part, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        try:
            assert started.stderr is not None
            begun_s = time.monotonic()
            said = next(line for line in started.stderr if b"waiting for the broker" in line).decode()
            assert f"which is asked again: {_NOWHERE}: " in said
            # The node tells nobody for long: librdkafka would, after half a minute.
            assert time.monotonic() - begun_s < 20.0
            begun_s = time.monotonic()
            started.terminate()
            assert started.wait(60) == 0
            assert time.monotonic() - begun_s < 10.0
        finally:
            started.kill()
