"""Starts the process of a broker so that it outlives its parent, and finds it again by its pid file.

Another process may have got the number of a broker that has ended. Its start time tells it apart.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


def spawn(command: list[str], log: Path) -> int:
    """Start a program in a session of its own, so that Ctrl-C on the terminal does not reach it. Returns its number.

    log: the file for its output, which is emptied first.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)


def reap(pid: int, wait: bool = False) -> None:
    """Let the kernel forget a process that has ended, if this process started it."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0 if wait else os.WNOHANG)


_NAME = "broker.pid"


@dataclass(frozen=True, slots=True)
class Running:
    """A broker's process. started_ticks: its start by the kernel's clock; started_at: in seconds since 1970."""

    pid: int
    started_ticks: int
    started_at: float
    port: int

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return start_ticks(self.pid) == self.started_ticks


def start_ticks(pid: int) -> int | None:
    """Return a process's start in the kernel's ticks since boot; None if it does not exist, or has ended and was not
    reaped yet (a zombie).
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in brackets, may contain anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def write(folder: Path, running: Running) -> None:
    """Write the broker's process into its folder's pid file."""
    temporary = folder / f"{_NAME}.new"
    temporary.write_text(json.dumps(asdict(running)) + "\n", encoding="ascii")
    os.replace(temporary, folder / _NAME)


def read(folder: Path) -> Running | None:
    """Return the broker's process from the pid file; None if there is no file, or if it cannot be read."""
    try:
        noted = json.loads((folder / _NAME).read_text(encoding="ascii"))
        return Running(
            int(noted["pid"]), int(noted["started_ticks"]), float(noted["started_at"]), int(noted["port"])
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def remove(folder: Path) -> None:
    """Delete the pid file of a folder, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        (folder / _NAME).unlink()
