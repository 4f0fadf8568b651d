"""What Linux says of a process and its threads, which come and go while it is asked."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def of_threads(pid: int, what: str) -> Iterator[str]:
    """A file (`stat`, `children`) of each thread that has one by then. Raises FileNotFoundError without the process."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            yield (thread / what).read_text(encoding="utf-8", errors="replace")


def children(pid: int) -> list[int]:
    """The processes that a process has started. Raises FileNotFoundError without it."""
    return [int(child) for line in of_threads(pid, "children") for child in line.split()]


def command_lines(pid: int) -> str:
    """Those of a process and of all that it has started, as everybody on the machine sees them."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return " ".join((*_words(pid), *map(command_lines, children(pid))))
    return ""


def units(node: int) -> list[int]:
    """The processes of a node's units."""
    return [child for child in children(node) if "railgun.unit" in _words(child)]


def _words(pid: int) -> list[str]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    return []


def state_of(stat: str) -> str:
    """The letter of a `stat` file: "Z" of a process that ended and that nobody has asked after."""
    return stat.rpartition(")")[2].split()[0]


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return state_of(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")) != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
