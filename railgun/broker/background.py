"""A process that goes on when the one that started it has ended."""

import contextlib
import os
from pathlib import Path


def spawn(command: list[str], log: Path) -> int:
    """Start a program in a session of its own, so that an interrupt typed at the terminal is not for it.

    log: gets what it writes, from the beginning.  Returns its number.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)


def reap(pid: int, wait: bool = False) -> None:
    """Let the kernel forget a process that has ended, where it was started by this one."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0 if wait else os.WNOHANG)
