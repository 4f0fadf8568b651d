"""Opens the task of a `Place` (a task's log and its folder on this node) from its last checkpoint.

`source.py` and `task_host.py` call it. Two losses of a log can be accepted by an operator:

- The records that the state was made of are lost (`Cut`). The task's folder is then deleted, and the log is processed
  from where copies begin.
- The log begins behind what the state has (`Gap`). The accepted state is then kept, and continues behind the gap.
"""

import logging
from collections.abc import Callable

from railgun.cluster.copies import Cut, LogPoint
from railgun.history.durable_files import remove_whole
from railgun.history.task_folder import current_folder
from railgun.host.place import Place
from railgun.host.task_log import TaskLog
from railgun.task.errors import LogCutError, LogReplacedError, StateLeftBehindError
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings

_log = logging.getLogger("railgun.unit")

SyncLog = Callable[[int], None]
"""Returns once all records before an offset are answered. A checkpoint waits for that; see `CheckpointWork`."""


def begins_at(place: Place, log: TaskLog) -> int:
    """Return the offset of the log at which a copy without any state begins. Raises TransportError."""
    cut = place.cut
    return cut.begin if cut is not None and _is_accepted(cut, log) else 0


def crosses_anew(place: Place, log: TaskLog, begin: int) -> bool:
    """Whether a copy without a state crosses the gap of a log that was accepted last. begin: where such copies begin.
    Raises TransportError.
    """
    gap = place.gap
    if gap is None or gap.state != LogPoint(begin):
        return False
    return gap.topic_id == log.topic_id and log.start <= gap.offset


def recovered(place: Place, log: TaskLog, settings: TaskSettings, sync_log: SyncLog) -> TaskProcessor:
    """Return the task of a place as of its last checkpoint.

    If the log has lost records that the state was made of, or is another topic, and an operator has accepted that, the
    task's folder is emptied. The log is then processed from the offset where copies without state begin.
    If the log has lost its beginning too, the folder stays, and StateLeftBehindError is raised, as for a copy without a
    state.
    Raises LogReplacedError, LogCutError, LogGapError, StoreLockedError, TransportError, OSError, and what tasks raise.
    """
    cut, gap, who = place.cut, place.gap, str(place.identity)
    is_accepted, begin = cut is not None and _is_accepted(cut, log), begins_at(place, log)

    def check_state(position: int, leader_epoch: int, topic_id: str) -> None:
        if cut is not None and is_accepted and cut.is_before(topic_id, position):
            reason = f"its state was made of another topic (id {topic_id or 'not known'}) than {cut.topic_id}"
            raise LogReplacedError(who, reason, topic_id)
        log.check_continues(who, position, leader_epoch, topic_id)
        if gap is not None and (position, leader_epoch) == (gap.offset, -1):
            # The task has crossed the gap, and processed no record behind it yet, so it has none that could be lost.
            return
        if cut is not None and cut.has_lost(LogPoint(position, leader_epoch)):
            reason = f"its state is at offset {position}, the log has lost its records from {cut.offset} on"
            raise LogCutError(who, reason, position, leader_epoch)

    def task() -> TaskProcessor:
        folder = current_folder(place.folder)
        return log.recover(folder, place.identity, settings, sync_log, check_state, begin, gap)

    try:
        return task()
    except LogReplacedError as error:
        if not is_accepted:
            raise
        _check_can_begin(place, log, begin, error)
        _log.warning("%s is made anew from another log, which was accepted: %s", who, error)
    except LogCutError as error:
        if cut is None or error.leader_epoch >= cut.leader_epoch:
            raise
        _check_can_begin(place, log, begin, error)
        _log.warning("%s is made anew from its log, whose loss was accepted: %s", who, error)
    remove_whole(place.folder)
    place.folder.mkdir()
    return task()


def _is_accepted(cut: Cut, log: TaskLog) -> bool:
    """Whether the present topic of a log is the one that an operator has accepted in place of another one."""
    if not cut.topic_id:
        return False
    # The id that the log knows may be from before the topic was made.
    return cut.topic_id == log.topic_id or cut.topic_id == log.ask_topic_id()


def _check_can_begin(place: Place, log: TaskLog, begin: int, lost: LogCutError | LogReplacedError) -> None:
    """Raise StateLeftBehindError if a task cannot be made anew from its log, whose beginning is gone.

    begin: where copies without a state begin.
    """
    start = log.start
    if start > begin and not crosses_anew(place, log, begin):
        reason = (
            f"{lost.message}. That was accepted, but the task cannot be made anew from its log alone: the log begins "
            f"at offset {start}, and {begin} is needed"
        )
        raise StateLeftBehindError(str(place.identity), reason, begin, -1, None) from lost
