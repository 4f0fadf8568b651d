"""Where in its place a task's files are: right there, or in a folder beside that a deepening made. See HISTORY.md."""

import errno
import shutil
from pathlib import Path

from railgun.task.durable_files import make_all_durable, make_durable, write_whole
from railgun.task.errors import HistoryDamagedError
from railgun.task.history_manifest import MANIFEST_PLACE

POINTER = "moved_to"
_OF_A_TASK = ("reservoir", "state", "history")


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
    """Where the folder that a deepening made goes."""
    return place / history


def move_folder(made: Path, to: Path) -> None:
    """A durable folder gets another name, from one moment to the next; copied where that is in another file system,
    as where nodes share what is built. Raises OSError.
    """
    try:
        made.rename(to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        coming = to.with_name(f"{to.name}.coming")
        shutil.rmtree(coming, ignore_errors=True)
        shutil.copytree(made, coming)
        make_all_durable(coming)
        coming.rename(to)
        make_durable(to.parent)
        shutil.rmtree(made)


def take_in(made: Path, place: Path, history: str) -> None:
    """Bring a folder that was made ready beside the task's own, durably. Raises OSError.

    Its manifest stays behind as well: for whoever made it, it is made.
    """
    # It may have been copied there: once the task is in it, nothing else has what it holds.
    make_all_durable(made)
    move_folder(made, beside(place, history))
    # Nothing is made anew of what was given up meanwhile.
    made.mkdir()
    (made / MANIFEST_PLACE).parent.mkdir()
    shutil.copyfile(beside(place, history) / MANIFEST_PLACE, made / MANIFEST_PLACE)
    make_durable(place)
    make_all_durable(made)
    make_durable(made.parent)


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
