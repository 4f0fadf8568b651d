"""Reads the description of the last checkpoint from a task's folder, without opening the task. Hosts call it."""

from pathlib import Path

from railgun.history.task_folder import current_folder
from railgun.state.errors import StoreError
from railgun.state.stored import StoredState
from railgun.task.errors import CheckpointVersionError, HistoryDamagedError
from railgun.task.meta import TaskMeta, decode_meta
from railgun.task.recovery import split_meta


def has_state(folder: Path) -> bool:
    """Whether a task has been opened in its folder before, even if that is damaged now. Raises OSError."""
    try:
        return folder.is_dir() and (current_folder(folder) / "state" / "CURRENT").exists()
    except HistoryDamagedError:
        return True


def stored_meta(folder: Path) -> TaskMeta | None:
    """Return the meta data of the last checkpoint in a task's folder; None if there is none, or if it cannot be read.

    Why it cannot be read is said when the task is opened. Changes nothing, and may be called while the task runs.
    """
    try:
        stored = StoredState(current_folder(folder) / "state")
        try:
            found = stored.commit()
        finally:
            stored.close()
        return None if found is None else decode_meta(split_meta(found[1])[0], str(folder))
    except (StoreError, CheckpointVersionError, HistoryDamagedError, OSError):
        return None
