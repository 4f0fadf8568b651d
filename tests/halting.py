"""Processes that are held up for a while."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from tests.proc import of_threads, state_of


def halt(pid: int) -> None:
    """Stop a process until SIGCONT; returns once it does nothing any more, which on a busy machine is a while later."""
    os.kill(pid, signal.SIGSTOP)
    while not _is_halted(pid):
        time.sleep(0.001)


def _is_halted(pid: int) -> bool:
    """By all its threads."""
    return all(state_of(stat) in "TtZX" for stat in of_threads(pid, "stat"))


@contextmanager
def halted(pids: Iterable[int]) -> Iterator[None]:
    """Processes that stand still during the block."""
    stopped = list(pids)
    for pid in stopped:
        halt(pid)
    try:
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
