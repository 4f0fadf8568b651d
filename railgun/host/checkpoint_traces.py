"""Tells whether a task's folder may have a checkpoint, without opening it. The leader's process of a node calls it."""

from pathlib import Path

from railgun.history.task_folder import current_folder
from railgun.host.data_folder import FETCHED, fetching_folder, replaced_folder
from railgun.state.end_marker import END_MARK
from railgun.task.errors import HistoryDamagedError


def may_have_checkpoint(folder: Path) -> bool:
    """Whether a task's folder, or what a fetch has left beside it, may have a checkpoint.

    It has none if the mark of its last commit has never been written. A commit whose mark a crash has kept from being
    written was told to nobody. Damaged files count as a checkpoint. Raises OSError.
    """
    if (fetching_folder(folder) / FETCHED).is_file() or replaced_folder(folder).exists():
        return True
    try:
        state = current_folder(folder) / "state"
    except HistoryDamagedError:
        return True
    try:
        return any((state / END_MARK).read_bytes())
    except FileNotFoundError:
        # An earlier release wrote no mark.
        return (state / "CURRENT").exists()
