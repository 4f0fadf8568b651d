"""Tells how far the log of each task is from losing records that a copy still needs. Pure: times are handed in.

The leader warns with it, and front-ends show it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.plan import Plan
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.wording import counted, listed, span_text

# The most tasks that a warning names.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What the broker says of a task's log.

    start: the first offset that it still has.
    end: the offset behind its last record.
    retention_ms: how long it keeps records; None: for ever.
    """

    start: int
    end: int
    retention_ms: int | None


@dataclass(frozen=True, slots=True)
class LogRoom:
    """A task's log, and what its copies need of it.

    start: the first offset that the log still has.
    needed: the least position of the copies' last durable checkpoints; None if no copy has one.
    copy: the copy whose checkpoint that is.
    retention_ms: how long the broker keeps records; None: for ever.
    left_ms: the broker keeps the record at `needed` for at least this long. In this time the copy has to come back or
        take a newer checkpoint. 0: the record may be deleted already. None: it is kept for ever, or that is not known.
    end: the offset behind its last record.
    """

    start: int
    needed: int | None
    copy: CopyName | None
    retention_ms: int | None
    left_ms: int | None
    end: int = 0

    @property
    def is_lost(self) -> bool:
        """Whether the log does not have the needed record any more."""
        return self.needed is not None and self.needed < self.start

    @property
    def is_short(self) -> bool:
        """Whether less than half of the retention is left, or the needed record may be deleted already.

        A copy that runs takes a checkpoint every few seconds or minutes, so nearly the whole retention is left. Half of
        it is a long warning: of a week it leaves a weekend, of a day a night.
        """
        if self.left_ms is None:
            return False
        return self.left_ms == 0 or (self.retention_ms is not None and 2 * self.left_ms < self.retention_ms)

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "start": self.start,
            "needed": self.needed,
            "needed_by": None if self.copy is None else str(self.copy),
            "left_ms": self.left_ms,
            "retention_ms": self.retention_ms,
        }


def log_rooms(
    bounds: Mapping[TaskKey, LogBounds], reports: ReportTable, plan: Plan, now_ms: int
) -> dict[TaskKey, LogRoom]:
    """Return the room of each task whose log is known. now_ms: the time, in ms since 1970.

    A copy whose node is away counts as long as the plan names it, because it has to come back before its records are
    deleted. A copy that the plan does not name counts if the plan names too few.
    """
    return {
        task: log_room(of, _copies_that_count(reports.copies(task), plan, task), now_ms)
        for task, of in bounds.items()
    }


def _copies_that_count(copies: Iterable[ReportedCopy], plan: Plan, task: TaskKey) -> Iterator[ReportedCopy]:
    planned = {each.copy for each in plan.copies.get(task, ())}
    has_enough = bool(planned) and len(planned) >= plan.wanted
    return (each for each in copies if each.copy in planned or not has_enough)


def log_room(bounds: LogBounds, copies: Iterable[ReportedCopy], now_ms: int) -> LogRoom:
    """Return the room of one task. A copy without a checkpoint has nothing to lose, so it needs no record."""
    oldest = min(
        (each for each in copies if each.status.checkpoint > 0),
        key=lambda each: (each.status.checkpoint, each.copy),
        default=None,
    )
    if oldest is None:
        return LogRoom(bounds.start, None, None, bounds.retention_ms, None, bounds.end)
    needed = oldest.status.checkpoint
    return LogRoom(
        bounds.start,
        needed,
        oldest.copy,
        bounds.retention_ms,
        _left_ms(bounds, oldest, needed, now_ms),
        bounds.end,
    )


def _left_ms(bounds: LogBounds, oldest: ReportedCopy, needed: int, now_ms: int) -> int | None:
    if needed < bounds.start:
        return 0
    if bounds.retention_ms is None:
        return None
    if needed >= bounds.end:
        # The needed record is not appended yet.
        return bounds.retention_ms
    appended_ms = oldest.status.checkpoint_ms or _not_before_ms(oldest)
    return None if appended_ms is None else max(0, min(appended_ms - now_ms, 0) + bounds.retention_ms)


def _not_before_ms(copy: ReportedCopy) -> int | None:
    """Return a time before which the record at a copy's checkpoint was not appended; None if there is none.

    A copy that had caught up when it reported, or closed, had seen the log end there.
    """
    status = copy.status
    has_seen = status.state.is_caught_up or (status.state is CopyState.CLOSED and status.leaving)
    return copy.said_ms if has_seen and copy.said_ms and status.end <= status.checkpoint else None


def short_logs(rooms: Mapping[TaskKey, LogRoom]) -> dict[TaskKey, LogRoom]:
    """Return the logs that are short (`LogRoom.is_short`), those with the least time first."""
    short = [(room.left_ms or 0, task) for task, room in rooms.items() if room.is_short]
    return {task: rooms[task] for _, task in sorted(short)}


def log_warning(rooms: Mapping[TaskKey, LogRoom]) -> str | None:
    """Return a warning about the logs that are short; None if there are none."""
    short = short_logs(rooms)
    lost = [f"{task} ({room.copy})" for task, room in short.items() if room.is_lost]
    losing = [f"{task} ({room.copy}, {_time_left(room)})" for task, room in short.items() if not room.is_lost]
    said = []
    if lost:
        said.append(
            f"{counted(len(lost), 'log has', 'logs have')} lost records that a copy's last checkpoint needs: "
            f"{listed(lost, _SHOWN)}; unless such a copy takes another checkpoint first, it can go on only with data "
            "of a copy on another node"
        )
    if losing:
        said.append(
            f"{counted(len(losing), 'log')} will lose records that a copy's last checkpoint needs, with less than half "
            f"of log_retention left: {listed(losing, _SHOWN)}; have these nodes run and catch up before that, or give "
            "the streams a longer log_retention"
        )
    return "; ".join(said) or None


def _time_left(room: LogRoom) -> str:
    return f"{span_text(room.left_ms)} left" if room.left_ms else "may be lost already"
