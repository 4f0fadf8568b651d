"""Finds out how a node has gone, in order or not, and which nodes answer its tasks since. It does no I/O."""

from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.report_table import ReportedCopy, ReportTable

# A node that is stopped leaves the group before its units have closed their copies. Later than this nothing is awaited.
_DECIDED_S = 60.0
# After an outage of the broker units are heard again within this time.
_SILENT_S = 5.0
# A node is missed by the group later than by copies: what was taken over within this time before belongs to it.
_TAKEN_S = 60.0


class Departure(Enum):
    """How a node has gone. UNKNOWN: no unit of it ran copies, or they report on."""

    STOPPED = auto()
    LOST = auto()
    UNKNOWN = auto()


class Departures:
    """Waits until it is known how nodes went that are no members any more. One thread uses it."""

    def __init__(self) -> None:
        # By node: since when it is no member, by the clock of the looks.
        self._since_s: dict[str, float] = {}

    def look(
        self, observed: ObservedCluster, gone: Iterable[str], now_s: float
    ) -> Iterator[tuple[str, Departure]]:
        """Yield how nodes have gone, each once. gone: those that are members no more since the last look."""
        self._since_s |= dict.fromkeys(gone, now_s)
        for node, since_s in sorted(self._since_s.items()):
            found = _departure(observed, node, now_s, now_s - since_s)
            is_over = node in observed.members or now_s - since_s > _DECIDED_S
            if found is not None or is_over:
                del self._since_s[node]
                yield node, found or Departure.UNKNOWN


def _departure(observed: ObservedCluster, node: str, now_s: float, gone_s: float) -> Departure | None:
    """Return how a node has gone, which was missed so many seconds ago; None if that is not known yet."""
    record = observed.nodes.get(node)
    # Of a unit that was killed its node has said that it closed. That says nothing of the node.
    killed_ms = {} if record is None else {each.unit: each.last_ms for each in record.ended}
    copies = [
        each
        for each in _last_copies(observed.reports, node)
        if killed_ms.get(each.copy.unit, -1) < each.said_ms
    ]
    if not copies:
        return Departure.UNKNOWN
    if all(each.status.leaving and each.status.state.has_stopped for each in copies):
        return Departure.STOPPED
    is_silent = gone_s >= _SILENT_S and not any(each.is_heard(now_s) for each in copies)
    return Departure.LOST if is_silent else None


def _last_copies(reports: ReportTable, node: str) -> Iterator[ReportedCopy]:
    """Yield the last reports of the copies on a node."""
    for unit in reports.units():
        report = reports.last(unit) if unit.node == node else None
        if report is not None:
            for status in report.copies:
                yield from (each for each in reports.copies(status.task) if each.copy == unit)


class Takeovers:
    """Notes by which node each task is answered. One thread uses it."""

    def __init__(self) -> None:
        self._answering: dict[TaskKey, str] = {}
        # By task: the node that answered it before, the one that does since, and when that was seen.
        self._taken: dict[TaskKey, tuple[str, str, float]] = {}

    def look(self, reports: ReportTable, tasks: Collection[TaskKey], now_s: float) -> None:
        """Compare who answers tasks now with the last look."""
        before, self._answering = self._answering, {}
        self._taken = {
            task: each for task, each in self._taken.items() if task in tasks and now_s - each[2] < _TAKEN_S
        }
        for task in tasks:
            newest, known = reports.newest(task), before.get(task)
            answers = newest is not None and newest.status.state is CopyState.ANSWERING
            node = newest.copy.node if newest is not None and answers else known
            if node is not None:
                self._answering[task] = node
                if known is not None and node != known:
                    self._taken[task] = known, node, now_s

    def of(self, node: str) -> dict[TaskKey, str]:
        """Return which tasks of a node others have taken over lately, each with the node that answers it since."""
        return {task: after for task, (before, after, _) in self._taken.items() if before == node}
