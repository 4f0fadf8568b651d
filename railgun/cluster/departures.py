"""Finds out how a node has gone, in order or not, and which nodes answer its tasks since. It does no I/O."""

from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.records import NodeRecord
from railgun.cluster.report_table import ReportedCopy, ReportTable
from railgun.cluster.reports import UnitReport
from railgun.cluster.silence import CLOSES_S

# A node that is stopped leaves the group before its units have closed their copies. Later than this nothing is awaited.
_DECIDED_S = 60.0
# The group misses a node later than copies do, and it is called lost only once a stop would have ended. What was taken
# over within this time before belongs to it.
TAKEN_S = 120.0

# Units, each with when it was started.
_Runs = frozenset[tuple[CopyName, int]]


class Departure(Enum):
    """How a node has gone. APART: its units go on. UNKNOWN: it had no unit with copies when it went."""

    STOPPED = auto()
    LOST = auto()
    APART = auto()
    UNKNOWN = auto()


class Departures:
    """Waits until it is known how nodes went that are no members any more. One thread uses it."""

    def __init__(self) -> None:
        # By node: since when it is no member, by the clock of the looks, and the runs of its units by then.
        self._gone: dict[str, tuple[float, _Runs]] = {}

    def look(
        self, observed: ObservedCluster, gone: Iterable[str], now_s: float
    ) -> Iterator[tuple[str, Departure]]:
        """Yield how nodes have gone, each once. gone: those that are members no more since the last look."""
        new = list(gone)
        if not new and not self._gone:
            return
        reports = observed.reports
        said, going_on = _last_reports(reports), _runs(reports.going_on(now_s))
        self._gone |= {node: (now_s, _runs(said.get(node, []))) for node in new}
        heard = {unit.node for unit in reports.units() if reports.is_heard(unit, now_s)}
        for node, (since_s, runs) in sorted(self._gone.items()):
            # If nobody is heard, the front-end lags, or the broker is away: that says nothing of the node.
            is_silent = now_s - since_s > CLOSES_S and node not in heard and bool(heard)
            found = _departure(said.get(node, []), observed.nodes.get(node), is_silent=is_silent)
            is_over = node in observed.members or now_s - since_s > _DECIDED_S
            if found is not None or is_over:
                del self._gone[node]
                yield node, found or (Departure.APART if runs & going_on else Departure.UNKNOWN)


def _departure(
    reports: Iterable[UnitReport], record: NodeRecord | None, *, is_silent: bool
) -> Departure | None:
    """Return how a node has gone; None if that is not known yet.

    reports: the last ones of its units.  record: what the node has said of itself.
    is_silent: whether its units have been silent for longer than a stop takes.
    """
    # Of a unit that was killed its node has said that it closed. That says nothing of the node.
    killed_ms = {} if record is None else {each.unit: each.last_ms for each in record.ended}
    copies = [
        status
        for report in reports
        if killed_ms.get(report.unit, -1) < report.said_ms
        for status in report.copies
    ]
    if not copies:
        return Departure.UNKNOWN
    if all(status.leaving and status.state.has_stopped for status in copies):
        return Departure.STOPPED
    return Departure.LOST if is_silent else None


def _runs(reports: Iterable[UnitReport]) -> _Runs:
    return frozenset((report.copy, report.generation) for report in reports)


def _last_reports(reports: ReportTable) -> dict[str, list[UnitReport]]:
    """Return the last reports of all units, by node."""
    found: dict[str, list[UnitReport]] = {}
    for unit in reports.units():
        report = reports.last(unit)
        if report is not None:
            found.setdefault(unit.node, []).append(report)
    return found


class Takeovers:
    """Notes by which copy each task is answered. One thread uses it."""

    def __init__(self) -> None:
        self._answering: dict[TaskKey, CopyName] = {}
        # By task: the copy that answered it before, the one that does since, and when that was seen.
        self._taken: dict[TaskKey, tuple[CopyName, CopyName, float]] = {}

    def look(self, reports: ReportTable, tasks: Collection[TaskKey], now_s: float) -> None:
        """Compare who answers tasks now with the last look."""
        self._taken = {
            task: each for task, each in self._taken.items() if task in tasks and now_s - each[2] < TAKEN_S
        }
        if len(self._answering) > len(tasks):
            self._answering = {task: copy for task, copy in self._answering.items() if task in tasks}
        for task in tasks:
            answers: ReportedCopy | None = None
            for each in reports.copies(task):
                # The last report of a node that was killed says for ever that it answers.
                if each.status.state is CopyState.ANSWERING and each.is_heard(now_s):
                    if answers is None or each.reported_s > answers.reported_s:
                        answers = each
            known = self._answering.get(task)
            if answers is not None and answers.copy != known:
                self._answering[task] = answers.copy
                if known is not None:
                    self._taken[task] = known, answers.copy, now_s

    def since(self, since_s: float, node: str, unit: int | None) -> dict[TaskKey, str]:
        """Return which tasks other nodes have taken over since a time, each with the one that answers it now.

        node, unit: who answered them before; a unit of None stands for the whole node.
        """
        return {
            task: after.node
            for task, (before, after, seen_s) in self._taken.items()
            if before.node == node != after.node and unit in (None, before.unit) and seen_s >= since_s
        }
