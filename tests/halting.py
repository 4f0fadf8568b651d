"""Processes that are held up for a while."""

import os
import signal
import time
from pathlib import Path


def halt(pid: int) -> None:
    """Stop a process until SIGCONT; returns once it does nothing any more, which on a busy machine is a while later."""
    os.kill(pid, signal.SIGSTOP)
    while not _is_halted(pid):
        time.sleep(0.001)


def _is_halted(pid: int) -> bool:
    """By all its threads."""
    states = [
        task.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]
    return all(state in "TtZX" for state in states)
