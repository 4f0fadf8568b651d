"""A node's supervisor: units are started again, later and later, and its folder is its own."""

import os
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from railgun.node import supervisor
from railgun.node.parent import UnitEnded
from railgun.node.supervisor import NodeFolderError, Supervisor, UnitProcess
from tests.unit.local_units import awaited

_TELL = "import sys; sys.stdout.write('{\"ready\": true}\\n'); sys.stdout.flush(); sys.stdin.read()"


def _command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _watched(unit: UnitProcess, starts: int) -> list[float]:
    """When each of so many starts was, in seconds."""
    begun: list[float] = []
    deadline = time.monotonic() + 60
    while len(begun) < starts:
        unit.watch()
        if unit.starts > len(begun):
            begun.append(time.monotonic())
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return begun


def test_what_dies_is_started_again_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "BACKOFF_S", 0.05)
    unit = UnitProcess(0, _command("raise SystemExit(1)"))
    begun = _watched(unit, 4)
    for number, (before, after) in enumerate(pairwise(begun)):
        assert after - before >= 0.05 * 2**number
    unit.end(time.monotonic() + 60)


def test_health_makes_it_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "BACKOFF_MAX_S", 0.0)
    monkeypatch.setattr(supervisor, "HEALTHY_S", 0.0)
    unit = UnitProcess(0, _command("raise SystemExit(1)"))
    _watched(unit, 3)
    unit.end(time.monotonic() + 60)
    assert unit.starts == 3


def test_a_unit_says_that_it_is_ready_and_ends_with_its_node() -> None:
    unit = UnitProcess(0, _command(_TELL))
    unit.watch()
    deadline = time.monotonic() + 60
    while not unit.is_ready:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    unit.ask_to_stop()
    # It does not listen yet.
    assert unit.end(deadline) == 0
    assert not unit.is_ready


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


def test_one_that_does_not_stop_is_killed() -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + _TELL.replace(
        "sys.stdin.read()", "time.sleep(600)"
    )
    unit = UnitProcess(0, _command(stubborn))
    unit.watch()
    while not unit.is_ready:
        time.sleep(0.01)
    unit.ask_to_stop()
    assert unit.end(time.monotonic() + 0.2) == -9


def test_a_folder_is_one_nodes(tmp_path: Path) -> None:
    stopped, is_held = threading.Event(), threading.Event()
    # Ready, having no units, once it holds the folder: whoever tried it before that might keep it from being held.
    first = threading.Thread(target=Supervisor(tmp_path, []).run, args=[stopped, is_held.set])
    first.start()
    try:
        assert is_held.wait(60)
        with pytest.raises(NodeFolderError, match=f"another node, process {os.getpid()}, uses this folder"):
            Supervisor(tmp_path, []).run(stopped)
    finally:
        stopped.set()
        first.join()
    assert Supervisor(tmp_path, []).run(stopped)


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    ended = threading.Event()
    ended.set()
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(NodeFolderError, match=r"it holds mine\.txt and other things, but no data of a node"):
        Supervisor(tmp_path, []).run(ended)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(NodeFolderError, match="no data folder can be made here"):
        Supervisor(tmp_path / "mine.txt", []).run(ended)


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
