"""Which process is the broker of a data folder: told from another one that got its number later."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

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
