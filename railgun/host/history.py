"""Puts a task's built history (events from before its log) into the task's place, before the first record of the log.

`TaskHost` calls it at the record that orders the history; the log is then read again from its beginning.
railgun/history/FORMAT.md describes the folders.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from railgun.history.durable_files import remove_whole
from railgun.history.manifest import verified_manifest
from railgun.history.task_folder import copy_folder
from railgun.host.host_state import DAMAGE, one_line
from railgun.host.place import Place
from railgun.task.errors import HistoryDamagedError, HistoryMissingError


@contextmanager
def naming_damage(missing: HistoryMissingError) -> Iterator[None]:
    """Raise HistoryMissingError if what was built with a history turns out to be damaged in the block."""
    try:
        yield
    except DAMAGE as damage:
        raise HistoryMissingError(
            missing.place, missing.history, takes_over=missing.takes_over, damage=one_line(damage)
        ) from damage


def check_history(place: Place, missing: HistoryMissingError) -> None:
    """Raise `missing` if the history that was built for a place is not the one that the log names.

    Raises HistoryDamagedError and OSError.
    """
    built = place.built(missing.history)
    if not built.is_dir():
        raise missing
    if verified_manifest(built, place.identity, place.key.created).history != missing.history:
        raise missing


def take_history(place: Place, history: str) -> None:
    """Replace the task's folder by a copy of the built one. No file of the folder may be open.

    Raises HistoryDamagedError if the copy fails. This stops only the one task.
    """
    built = place.built(history)
    try:
        remove_whole(place.folder)
        copy_folder(built, place.folder)
    except OSError as error:
        raise HistoryDamagedError(str(built), f"it cannot be taken: {error}") from error
