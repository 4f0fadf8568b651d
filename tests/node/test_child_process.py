"""A child process of a node: it is started again, later and later, and ends when it is asked to."""

import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from railgun.node import child_process
from railgun.node.child_process import ChildProcess

_TELL = "import sys; sys.stdout.write('{\"ready\": true}\\n'); sys.stdout.flush(); sys.stdin.read()"


def _command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _watched(unit: ChildProcess, starts: int) -> list[float]:
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
    monkeypatch.setattr(child_process, "BACKOFF_S", 0.05)
    unit = ChildProcess(0, _command("raise SystemExit(1)"))
    begun = _watched(unit, 4)
    for number, (before, after) in enumerate(pairwise(begun)):
        assert after - before >= 0.05 * 2**number
    unit.end(time.monotonic() + 60)


def test_health_makes_it_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "BACKOFF_MAX_S", 0.0)
    monkeypatch.setattr(child_process, "HEALTHY_S", 0.0)
    unit = ChildProcess(0, _command("raise SystemExit(1)"))
    _watched(unit, 3)
    unit.end(time.monotonic() + 60)
    assert unit.starts == 3


_FAIL = (
    'print(\'{"ready": false, "stopping": true, "failure": "no space"}\', flush=True); raise SystemExit(1)'
)


@pytest.mark.parametrize(("code", "why"), [(_FAIL, "no space"), ("raise SystemExit(3)", "exit code 3")])
def test_it_knows_how_often_it_ended_and_why(monkeypatch: pytest.MonkeyPatch, code: str, why: str) -> None:
    monkeypatch.setattr(child_process, "BACKOFF_MAX_S", 0.0)
    unit = ChildProcess(2, _command(code))
    assert unit.ended is None
    _watched(unit, 3)
    assert unit.ended == f"unit 2 ended 2 times, last: {why}"
    unit.end(time.monotonic() + 60)


def test_how_often_it_ended_is_forgotten_once_it_is_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child_process, "BACKOFF_MAX_S", 0.0)
    monkeypatch.setattr(child_process, "HEALTHY_S", 0.5)
    ended = tmp_path / "ended"
    go = tmp_path / "go"
    once = f"import pathlib, time; p, go = map(pathlib.Path, {(str(ended), str(go))!r}); "
    once += "p.exists() or (p.touch(), exit(1))\nwhile not go.exists(): time.sleep(0.01)\n"
    unit = ChildProcess(0, _command(once + _TELL))
    _watched(unit, 2)
    assert unit.ended == "unit 0 ended 1 time, last: exit code 1"
    go.touch()
    deadline = time.monotonic() + 60
    while unit._ends != 0:
        assert time.monotonic() < deadline
        unit.watch()
        time.sleep(0.01)
    assert unit.is_ready
    unit.ask_to_stop()
    unit.end(deadline)
    # It is not ready any more, and has not ended by itself since.
    assert unit.ended is None


def test_a_unit_says_that_it_is_ready_and_ends_with_its_node() -> None:
    unit = ChildProcess(0, _command(_TELL))
    unit.watch()
    deadline = time.monotonic() + 60
    while not unit.is_ready:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    unit.ask_to_stop()
    # It does not listen yet.
    assert unit.end(deadline) == 0
    assert not unit.is_ready


def test_one_that_does_not_stop_is_killed() -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + _TELL.replace(
        "sys.stdin.read()", "time.sleep(600)"
    )
    unit = ChildProcess(0, _command(stubborn))
    unit.watch()
    while not unit.is_ready:
        time.sleep(0.01)
    unit.ask_to_stop()
    assert unit.end(time.monotonic() + 0.2) == -9
