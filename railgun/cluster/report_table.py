"""The newest report of every copy in a cluster, taken from the records of the topic of positions.

The leader, the front-ends and Spark jobs each fill a table and read from it which copies answer. It does no I/O.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from msgspec import structs

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import CopyStatus, UnitReport, decode_report
from railgun.cluster.silence import EXPIRES_S, FORGOTTEN_S, INTERVALS, NODE_HEARD_S, UNANSWERED_S

# If a task has several copies, the one whose state is first in this order stands for the task.
_RANKS = {state: rank for rank, state in enumerate(CopyState)}


@dataclass(frozen=True, slots=True)
class ReportedCopy:
    """The last report of a copy.

    reported_s: when it was read, in seconds of the reader's clock; -infinity if it was written before the reader
    started.
    interval_s: the next report was to follow within this time.
    said_ms: when it was written, in ms since 1970; 0 if it does not say.
    """

    copy: CopyName
    status: CopyStatus
    reported_s: float
    interval_s: float
    said_ms: int = 0

    @property
    def silence_s(self) -> float:
        """A silence shorter than this, in seconds, means nothing."""
        return INTERVALS * self.interval_s

    def is_heard(self, now_s: float) -> bool:
        """Whether the copy was heard lately, by its own interval."""
        return now_s - self.reported_s <= max(EXPIRES_S, self.silence_s)


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    """The last checkpoint that a copy has reported: its position, when the record there was appended, and the id of the
    task's folder.
    """

    position: int
    appended_ms: int
    folder_id: str


class ReportTable:
    """Keeps the newest report of each copy of each task. One thread writes; others may read.

    A CopyName names a unit; together with a task it names the unit's copy of that task. The table remembers the last
    checkpoint of each copy: a unit that starts again does not know it before it has opened the task.
    """

    def __init__(self) -> None:
        self._of_task: dict[TaskKey, dict[CopyName, ReportedCopy]] = {}
        self._of_unit: dict[CopyName, set[TaskKey]] = {}
        self._of_newest_run: dict[CopyName, UnitReport] = {}
        self._heard_s: dict[CopyName, float] = {}
        # When any unit was heard last, and when one was heard first after nobody had been.
        self._newest_s = self._resumed_s = -math.inf
        self._checkpoints: dict[CopyName, dict[TaskKey, _Checkpoint]] = {}
        self._answered_at_s: dict[TaskKey, float] = {}

    def take(self, record: bytes, reported_s: float = -math.inf) -> UnitReport | None:
        """Take in a record of the topic, and return the report.

        Returns None for a record of version 1, which an earlier release left.

        A report names all copies of its unit: those that it does not name any more are gone. A late report of an
        earlier run of the unit is ignored. Raises ReportError.
        """
        report = decode_report(record)
        if report is None:
            return None
        unit, named = report.copy, {status.task for status in report.copies}
        last = self._of_newest_run.get(unit)
        if last is not None and report.generation < last.generation:
            return report
        self._of_newest_run[unit], self._heard_s[unit] = report, reported_s
        if reported_s - self._newest_s > max(NODE_HEARD_S, INTERVALS * report.announced_s):
            self._resumed_s = reported_s
        self._newest_s = reported_s
        for task in self._of_unit.get(unit, set()) - named:
            self._remove(task, unit)
        self._of_unit[unit] = named
        checkpoints = self._checkpoints.get(unit, {})
        kept = [_with_checkpoint(status, checkpoints.get(status.task)) for status in report.copies]
        if kept:
            self._checkpoints[unit] = {
                status.task: _Checkpoint(
                    status.checkpoint,
                    status.checkpoint_ms,
                    status.folder_id or _folder(checkpoints, status.task),
                )
                for status in kept
                if status.checkpoint > 0
            }
        for status in kept:
            # Another thread may be reading the dictionary, so a new one replaces it.
            heard = ReportedCopy(unit, status, reported_s, report.announced_s, report.said_ms)
            self._of_task[status.task] = {**self._of_task.get(status.task, {}), unit: heard}
            if status.state is CopyState.ANSWERING:
                self._answered_at_s[status.task] = reported_s
        return report

    def units(self) -> list[CopyName]:
        """Return the units that have reported."""
        return list(self._of_newest_run)

    def last(self, unit: CopyName) -> UnitReport | None:
        """Return the last report of a unit's newest run; None if it has not reported."""
        return self._of_newest_run.get(unit)

    def is_heard(self, unit: CopyName, now_s: float) -> bool:
        """Whether a unit was heard lately, by its own interval."""
        report, heard_s = self._of_newest_run.get(unit), self._heard_s.get(unit, -math.inf)
        return report is not None and now_s - heard_s <= max(NODE_HEARD_S, INTERVALS * report.announced_s)

    def silent(self, now_s: float) -> Iterator[UnitReport]:
        """Yield the last reports of units that have been silent for UNANSWERED_S while others were heard.

        While nobody is heard, the broker or the reader is away: that says nothing of a unit.
        """
        if not any(self.is_heard(unit, now_s) for unit in self.units()):
            return
        for unit, report in list(self._of_newest_run.items()):
            since_s = max(self._heard_s.get(unit, -math.inf), self._resumed_s)
            if now_s - since_s > max(UNANSWERED_S, INTERVALS * report.announced_s):
                yield report

    def going_on(self, now_s: float) -> Iterator[UnitReport]:
        """Yield the last reports of units that were heard lately, and have copies that are open and do not leave."""
        for unit, report in list(self._of_newest_run.items()):
            if self.is_heard(unit, now_s) and any(
                not (status.leaving or status.state.has_stopped) for status in report.copies
            ):
                yield report

    def said_ms(self) -> dict[str, int]:
        """Return by node when a unit of it has reported last, by its clock in ms since 1970; 0: not known."""
        last: dict[str, int] = {}
        for unit, report in list(self._of_newest_run.items()):
            last[unit.node] = max(report.said_ms, last.get(unit.node, 0))
        return last

    def forget(self, unit: CopyName) -> None:
        """Drop the reports of a unit."""
        self._of_newest_run.pop(unit, None)
        self._heard_s.pop(unit, None)
        self._checkpoints.pop(unit, None)
        for task in self._of_unit.pop(unit, ()):
            self._remove(task, unit)

    def forget_silent(self, planned: Collection[CopyName], now_s: float) -> None:
        """Drop the reports of units that were silent for a day and are not in the plan."""
        since_s = now_s - FORGOTTEN_S
        silent = {unit for unit, heard_s in self._heard_s.items() if heard_s < since_s}
        for unit in silent.difference(planned):
            self.forget(unit)
        # No copy has answered these tasks for a day. They count as never answered.
        for task in [task for task, at_s in self._answered_at_s.items() if at_s < since_s]:
            del self._answered_at_s[task]

    def _remove(self, task: TaskKey, unit: CopyName) -> None:
        """Drop the copy of a unit. A new dictionary replaces the one that another thread may be reading."""
        left = {copy: heard for copy, heard in self._of_task[task].items() if copy != unit}
        if left:
            self._of_task[task] = left
        else:
            del self._of_task[task]

    def tasks(self, stream: str, created: int) -> list[TaskKey]:
        """Return the reported tasks of a stream. created: the place in the catalogue of its first definition."""
        return [task for task in list(self._of_task) if (task.stream, task.created) == (stream, created)]

    def copies(self, task: TaskKey) -> Iterable[ReportedCopy]:
        """Return what was last heard of each copy of a task."""
        return self._of_task.get(task, {}).values()

    def answered_at_s(self, task: TaskKey) -> float:
        """Return when any copy of a task was last heard answering, in seconds of the reader's clock; -infinity if none
        was since the reader started."""
        return self._answered_at_s.get(task, -math.inf)

    def newest(self, task: TaskKey, since_s: float = -math.inf) -> ReportedCopy | None:
        """Return the copy that stands for a task; None if no copy was heard.

        Copies heard since `since_s` come before others. Among them, the one that answers, or is nearest to answering,
        comes first; then the one heard last.
        """
        return min(
            self.copies(task),
            key=lambda heard: (heard.reported_s < since_s, _RANKS[heard.status.state], -heard.reported_s),
            default=None,
        )


def _folder(checkpoints: Mapping[TaskKey, _Checkpoint], task: TaskKey) -> str:
    known = checkpoints.get(task)
    return "" if known is None else known.folder_id


def _with_checkpoint(status: CopyStatus, before: _Checkpoint | None) -> CopyStatus:
    """Return the status of a copy, with the checkpoint that it reported before if it says none."""
    if status.checkpoint > 0 or before is None:
        return status
    if status.folder_id and before.folder_id and status.folder_id != before.folder_id:
        # The copy has begun again in a new folder.
        return status
    return structs.replace(status, checkpoint=before.position, checkpoint_ms=before.appended_ms)


def replaced(heard: Iterable[ReportedCopy], takeover_s: float) -> list[CopyName]:
    """Return the copies of a task that answered, fell silent, and were replaced by another answering copy.

    takeover_s: a copy is replaced if its last report is older by this time than the newest one of an answering copy, or
        by its own `silence_s` if that is longer.
    """
    answering = [each for each in heard if each.status.state is CopyState.ANSWERING]
    newest_s = max((each.reported_s for each in answering), default=0.0)
    return [each.copy for each in answering if newest_s - each.reported_s >= max(takeover_s, each.silence_s)]
