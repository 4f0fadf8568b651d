"""Puts a fetched folder into the place of a task's folder. A start finishes what a crash has cut off.

A fetch fills `<folder>.fetching`. Once all is there and verified, the file FETCHED is written in it. Only then the
folder becomes the task's: its own folder becomes `<folder>.replaced`, the fetched one takes its name, and what was
replaced is deleted. The file FETCHED goes last.
"""

import contextlib
from pathlib import Path

from railgun.history.durable_files import make_durable, remove_rest, remove_whole, write_whole
from railgun.host.data_folder import FETCHED, fetching_folder, replaced_folder
from railgun.host.stored_meta import has_state, stored_meta
from railgun.host.verified import is_verified
from railgun.state.lock import holding_all

FOLDER_ID = "folder.id"
"""The file in a task's folder with the folder's id."""


def take_fetched(folder: Path, *, was_ordered: bool) -> bool:
    """Let verified data that was fetched for a task take the place of the task's folder. Returns whether it did.

    was_ordered: whether the task needs this data. Otherwise it is left over from an earlier start, and is taken only if
        it is of a later record than the task's own.
    Raises StoreLockedError if another process has the task open, and OSError.
    """
    fetching, replaced = fetching_folder(folder), replaced_folder(folder)
    for each in (fetching, replaced):
        remove_rest(each)
    if not (is_verified(fetching) or replaced.exists() or (folder / FETCHED).is_file()):
        return False
    # Another unit of this node may open the folder just now.
    with holding_all(folder):
        if is_verified(fetching) and (was_ordered or _is_later(fetching, folder)):
            if folder.exists():
                if replaced.exists():
                    remove_whole(replaced)
                folder.rename(replaced)
                make_durable(folder.parent)
            fetching.rename(folder)
            make_durable(folder.parent)
        if replaced.exists():
            if folder.exists():
                remove_whole(replaced)
            else:
                # The fetched data was deleted, so only the task's own data is there.
                replaced.rename(folder)
                make_durable(folder.parent)
        is_fetched = (folder / FETCHED).is_file()
        if is_fetched:
            (folder / FOLDER_ID).unlink(missing_ok=True)
            (folder / FETCHED).unlink()
            make_durable(folder)
    return is_fetched


def _is_later(fetched: Path, own: Path) -> bool:
    """Whether fetched data is of a later record of the log than a task's own. Those of two logs cannot
    be compared. Own data that cannot be read is not replaced: the task says what is wrong with it.
    """
    if not has_state(own):
        return True
    found, before = stored_meta(fetched), stored_meta(own)
    if found is None or before is None:
        return False
    is_one_log = found.topic_id == before.topic_id or not before.topic_id
    return is_one_log and found.position > before.position


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
    # The transfer process may still write there. What it leaves is deleted when the task is opened the next time.
    with contextlib.suppress(OSError):
        remove_whole(fetching_folder(folder))
