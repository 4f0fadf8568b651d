"""A node beside a front-end: readiness waits for its units; its end is the end of both."""

import sys
import threading

from frontend.kafka.serving import NodeBeside
from tests.frontend.serving import until


def _node(code: str) -> NodeBeside:
    return NodeBeside([sys.executable, "-c", code])


def _never() -> None:
    raise AssertionError("it ended by itself")


def test_it_is_ready_when_the_node_says_so() -> None:
    beside = _node(
        "import sys, time; print('compiling'); sys.stdout.flush(); time.sleep(0.2); "
        "print('ready', flush=True); time.sleep(600)"
    )
    with beside.running(_never):
        assert not beside.is_ready()
        until(beside.is_ready)
    assert not beside.has_failed


def test_a_node_that_ends_by_itself_is_told() -> None:
    stopped = threading.Event()
    beside = _node("raise SystemExit(3)")
    with beside.running(stopped.set):
        assert stopped.wait(60)
    assert beside.has_failed
    assert not beside.is_ready()
