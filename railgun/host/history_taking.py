"""A task's folder is replaced by a copy of one that was built with history, before the first record of its log."""

import shutil

from railgun.history.manifest import verified_manifest
from railgun.history.task_folder import copy_folder
from railgun.host.place import Place
from railgun.task.errors import HistoryDamagedError, HistoryMissingError


def check_history(place: Place, missing: HistoryMissingError) -> None:
    """Raise it where what was built for a place is not the history that the log names. HistoryDamagedError, OSError."""
    if not place.history.is_dir():
        raise missing
    if verified_manifest(place.history, place.identity, place.key.created).history != missing.history:
        raise missing


def take_history(place: Place) -> None:
    """Put the copy in the place of the task's folder, of which nothing is open.

    Raises HistoryDamagedError where it cannot be copied: as where history is missing, other tasks go on.
    """
    try:
        shutil.rmtree(place.folder)
        copy_folder(place.history, place.folder)
    except OSError as error:
        raise HistoryDamagedError(str(place.history), f"it cannot be taken: {error}") from error
