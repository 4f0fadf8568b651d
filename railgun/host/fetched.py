"""Puts a fetched folder into the place of a task's folder. A start finishes what a crash has cut off.

A fetch fills `<folder>.fetching`. Once all is there and verified, the file FETCHED is written in it. Only then the
folder becomes the task's: its own folder becomes `<folder>.replaced`, the fetched one takes its name, and what was
replaced is deleted. The file FETCHED goes last.
"""

import shutil
from pathlib import Path

from railgun.history.durable_files import make_durable, write_whole
from railgun.host.data_folder import FETCHED, FETCHING, REPLACED
from railgun.state.errors import StoreLockedError
from railgun.state.lock import is_any_held

FOLDER_ID = "folder.id"
"""The file in a task's folder with the folder's id."""


def fetching_folder(folder: Path) -> Path:
    """Return the folder into which the data of a task is fetched."""
    return folder.with_name(folder.name + FETCHING)


def replaced_folder(folder: Path) -> Path:
    """Return the folder of a task's own data while a fetched one replaces it."""
    return folder.with_name(folder.name + REPLACED)


def take_fetched(folder: Path) -> bool:
    """Let verified data that was fetched for a task take the place of the task's folder. Returns whether there was any.

    Raises StoreLockedError if another process has the task open, and OSError.
    """
    fetching, replaced = fetching_folder(folder), replaced_folder(folder)
    if is_verified(fetching):
        if is_any_held(folder):
            raise StoreLockedError(folder, "of another unit")
        if folder.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            folder.rename(replaced)
            make_durable(folder.parent)
        fetching.rename(folder)
        make_durable(folder.parent)
    is_fetched = is_verified(folder)
    if replaced.exists():
        if not folder.exists():
            # Somebody has deleted what was fetched: the task's own data is all that there is.
            replaced.rename(folder)
        else:
            shutil.rmtree(replaced)
        make_durable(folder.parent)
    if is_fetched:
        (folder / FOLDER_ID).unlink(missing_ok=True)
        (folder / FETCHED).unlink()
        make_durable(folder)
    return is_fetched


def is_verified(fetched: Path) -> bool:
    """Whether all of a fetched folder is there and verified."""
    return (fetched / FETCHED).is_file()


def folder_id(folder: Path, new: str) -> str:
    """Return the id of a task's folder, which becomes `new` if it has none. Raises OSError."""
    place = folder / FOLDER_ID
    try:
        found = place.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        found = ""
    if not found:
        write_whole(place, new + "\n")
    return found or new


def forget_fetch(folder: Path) -> None:
    """Delete what was fetched for a task that has been opened from its own data."""
    shutil.rmtree(fetching_folder(folder), ignore_errors=True)
