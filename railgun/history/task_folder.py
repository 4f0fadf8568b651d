"""Where a task's files are: right in its place, or in a folder beside them that a live backfill made. FORMAT.md."""

import shutil
from pathlib import Path

from railgun.history.durable_files import make_all_durable, make_durable, write_whole
from railgun.task.errors import HistoryDamagedError

POINTER = "moved_to"
_OF_A_TASK = ("reservoir", "state", "history")
# Segments, but the newest, and RocksDB's tables: they are only ever deleted.
_NEVER_CHANGED = frozenset({".seg", ".sst"})


def current_folder(place: Path) -> Path:
    """The folder that the task of a place is in. Raises HistoryDamagedError, OSError."""
    try:
        name = (place / POINTER).read_text("ascii").strip()
    except FileNotFoundError:
        return place
    except UnicodeDecodeError:
        name = ""
    if not name or "/" in name or not (place / name).is_dir():
        raise HistoryDamagedError(
            str(place / POINTER), "it names no folder that is there; restore the folder from a copy"
        )
    return place / name


def place_of(folder: Path) -> Path:
    """The place of a task that is in a folder."""
    return folder.parent if (folder.parent / POINTER).is_file() else folder


def beside(place: Path, history: str) -> Path:
    """Where the folder that a live backfill made goes."""
    return place / history


def copy_folder(made: Path, to: Path) -> None:
    """A durable copy of a task's folder, under its name from one moment to the next; the original stays as it is.

    Files that are never changed get a second name where the file system allows it. Raises OSError.
    """
    coming = to.with_name(f"{to.name}.coming")
    shutil.rmtree(coming, ignore_errors=True)
    # It may have been copied there itself: a second name is only as durable as the first.
    make_all_durable(made)
    written_on = _written_on(made)

    def copy(source: str, target: str) -> None:
        path = Path(source)
        if path not in written_on and path.suffix in _NEVER_CHANGED:
            try:
                Path(target).hardlink_to(path)
                return
            except OSError:
                pass
        shutil.copyfile(source, target)

    shutil.copytree(made, coming, copy_function=copy)
    make_all_durable(coming)
    coming.rename(to)
    make_durable(to.parent)


def _written_on(folder: Path) -> set[Path]:
    """The segment that a task which is opened there appends to."""
    return set(sorted((folder / "reservoir").glob("*.seg"))[-1:])


def take_in(made: Path, place: Path, history: str) -> None:
    """Bring a copy of a folder that was made ready beside the task's own, durably. Raises OSError."""
    copy_folder(made, beside(place, history))


def move_to(place: Path, history: str) -> None:
    """From now on the task is in the folder beside; from one moment to the next, durably. Raises OSError."""
    write_whole(place / POINTER, history + "\n")


def others(place: Path, keep: str | None = None) -> list[Path]:
    """The folders that the task of a place is not in: what it has left, what it never came to.

    keep: the history that its log names, if it does: the task goes on in that folder, also before it was moved to.
    """
    current = current_folder(place)
    return [
        path
        for path in place.iterdir()
        if path.is_dir()
        and path not in (current, place / (keep or POINTER))
        and not (current == place and path.name in _OF_A_TASK)
    ]


def remove_others(place: Path, keep: str | None = None) -> None:
    """Remove them. Nothing of them is open."""
    found = others(place, keep)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    if found:
        make_durable(place)
