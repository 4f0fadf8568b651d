"""The process of a broker: started so that it outlives its parent, and found again by its pid file.

A process that got the number of a dead broker is told from it by its start time.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
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


_NAME = "broker.pid"


@dataclass(frozen=True, slots=True)
class Running:
    """A broker's process. started_ticks: when it began, by the kernel's clock; started_at: Unix time, seconds."""

    pid: int
    started_ticks: int
    started_at: float
    port: int

    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return start_ticks(self.pid) == self.started_ticks


def start_ticks(pid: int) -> int | None:
    """When a process began, in the kernel's ticks since boot; None where there is none, or only its remains."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in brackets, may hold anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def write(folder: Path, running: Running) -> None:
    """Note the broker of a folder."""
    temporary = folder / f"{_NAME}.new"
    temporary.write_text(json.dumps(asdict(running)) + "\n", encoding="ascii")
    os.replace(temporary, folder / _NAME)


def read(folder: Path) -> Running | None:
    """The broker that was noted; None where none was, or the note cannot be read."""
    try:
        noted = json.loads((folder / _NAME).read_text(encoding="ascii"))
        return Running(
            int(noted["pid"]), int(noted["started_ticks"]), float(noted["started_at"]), int(noted["port"])
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def remove(folder: Path) -> None:
    """Forget the broker of a folder. Harmless where there is no note."""
    with contextlib.suppress(FileNotFoundError):
        (folder / _NAME).unlink()
