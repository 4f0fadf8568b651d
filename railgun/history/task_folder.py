"""Finds a task's files: right in its place, or in a folder in it that a deepening made. See FORMAT.md.

Engines, hosts and `railgun inspect` call it. A deepening gives a live stream older events than its log has, by tasks
that are built again.
"""

import shutil
from pathlib import Path

from railgun.history.durable_files import make_all_durable, make_durable, write_whole
from railgun.task.errors import HistoryDamagedError

POINTER = "moved_to"
_OF_A_TASK = ("reservoir", "state", "history")
# These files are never changed, only deleted: all segments except the newest, and RocksDB's tables.
_NEVER_CHANGED = frozenset({".seg", ".sst"})


def current_folder(place: Path) -> Path:
    """Return the folder in which the task of a place lives. Raises HistoryDamagedError and OSError."""
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
    """Return the place of a task from the folder in which the task lives."""
    return folder.parent if (folder.parent / POINTER).is_file() else folder


def beside(place: Path, history: str) -> Path:
    """Return the folder for a task that a deepening made, in the task's place."""
    return place / history


def copy_folder(made: Path, to: Path) -> None:
    """Copy a task's folder durably. The copy gets its name in one atomic step; the original stays as it is.

    Files that never change are hard-linked if the file system supports it. Raises OSError.
    """
    coming = to.with_name(f"{to.name}.coming")
    shutil.rmtree(coming, ignore_errors=True)
    # The folder may be a copy itself. A hard link is only as durable as the file that it links to.
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
    """Return the segment to which a task in this folder appends."""
    return set(sorted((folder / "reservoir").glob("*.seg"))[-1:])


def take_in(made: Path, place: Path, history: str) -> None:
    """Copy a folder that was built into the place of its task, durably. Raises OSError."""
    copy_folder(made, beside(place, history))


def move_to(place: Path, history: str) -> None:
    """Let a place point to the sub-folder with a history, atomically and durably. Raises OSError."""
    write_whole(place / POINTER, history + "\n")


def others(place: Path, keep: str | None = None) -> list[Path]:
    """Return the folders in a place in which the task does not live. It has left them, or has never used them.

    keep: the id of the history that the log names, if any. That folder stays, because the task goes on there even if
        the place does not point to it yet.
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
    """Delete the folders that `others` returns. No file in them may be open."""
    found = others(place, keep)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    if found:
        make_durable(place)
