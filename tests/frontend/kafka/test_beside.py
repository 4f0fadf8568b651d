"""A node beside a front-end: readiness waits for its units; its end is the end of both."""

import sys
import threading
from pathlib import Path

import pytest

from frontend.kafka.node_beside import NodeBeside
from railgun.access.guard import Guard
from tests.frontend.serving import until


def _node(code: str) -> NodeBeside:
    return NodeBeside([sys.executable, "-c", code])


def _never() -> None:
    raise AssertionError("it ended by itself")


def test_it_is_ready_when_the_node_says_so(tmp_path: Path) -> None:
    go = tmp_path / "go"
    beside = _node(
        "import pathlib, time\n"
        "print('compiling', flush=True)\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    with beside.running(_never):
        assert not beside.is_ready()
        go.touch()
        until(beside.is_ready)
    assert not beside.has_failed


def test_where_copies_have_failed_events_are_taken_all_the_same() -> None:
    beside = _node("import time; print('not ready: s/k/0: failed here', flush=True); time.sleep(600)")
    with beside.running(_never):
        until(beside.is_ready)


@pytest.mark.parametrize("is_early", [True, False])
def test_it_reloads_too_however_early_it_is_asked_to(is_early: bool, tmp_path: Path) -> None:
    """Before it is ready it may not know the signal, which would end it."""
    go, heard = tmp_path / "go", tmp_path / "heard"
    beside = _node(
        "import pathlib, signal, time\n"
        f"go, heard = pathlib.Path({str(go)!r}), pathlib.Path({str(heard)!r})\n"
        "while not go.exists(): time.sleep(0.01)\n"
        "signal.signal(signal.SIGHUP, lambda *_: heard.touch())\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)"
    )
    guards: list[Guard] = []
    reload = beside.reloading_too(lambda guard, tls: guards.append(guard))
    with beside.running(_never):
        if is_early:
            reload(Guard(), None)
        go.touch()
        until(beside.is_ready)
        if not is_early:
            reload(Guard(), None)
        until(heard.exists)
    assert len(guards) == 1


def test_a_node_that_ends_by_itself_is_told() -> None:
    stopped = threading.Event()
    beside = _node("raise SystemExit(3)")
    with beside.running(stopped.set):
        assert stopped.wait(60)
    assert beside.has_failed
    assert not beside.is_ready()
