"""Recovers the task of a place. If its state was made of records that were lost, it is made anew from its log."""

import logging
import shutil
from collections.abc import Callable

from railgun.cluster.copies import LogPoint
from railgun.history.task_folder import current_folder
from railgun.host.place import Place
from railgun.host.task_log import TaskLog
from railgun.task.errors import LogCutError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings

_log = logging.getLogger("railgun.unit")


def recovered(
    place: Place, log: TaskLog, settings: TaskSettings, sync_log: Callable[[int], None]
) -> TaskProcessor:
    """Return the task of a place as of its last checkpoint.

    If its log has lost records that the state was made of, and that was accepted, the task's folder is emptied: the log
    is processed from its beginning.
    Raises LogReplacedError, LogCutError, StoreLockedError, TransportError, OSError, and what tasks raise.
    """

    def check_state(position: int, leader_epoch: int, topic_id: str) -> None:
        cut = place.cut
        if cut is not None and cut.has_lost(LogPoint(position, leader_epoch)):
            reason = f"its state is at offset {position}, the log has lost its records from {cut.offset} on"
            raise LogCutError(str(place.identity), reason, position, leader_epoch)
        log.check_continues(str(place.identity), position, leader_epoch, topic_id)

    def task() -> TaskProcessor:
        return log.recover(current_folder(place.folder), place.identity, settings, sync_log, check_state)

    try:
        return task()
    except LogCutError as error:
        cut = place.cut
        if cut is None or error.leader_epoch >= cut.leader_epoch or log.start > 0:
            raise
        _log.warning("%s is made anew from its log, whose loss was accepted: %s", place.identity, error)
        shutil.rmtree(place.folder)
        place.folder.mkdir()
        return task()
