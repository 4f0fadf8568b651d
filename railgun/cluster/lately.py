"""Notes what has happened in a cluster lately, by comparing each look at it with the one before.

A front-end looks every few seconds. It does no I/O.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.departures import TAKEN_S, Departure, Departures, Takeovers
from railgun.cluster.health import able_copies, away_nodes, ended_text
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan
from railgun.wording import counted, listed, one_line, span_text

KEPT_MAX = 100
# What happens again within this time is counted in its entry, so that it drives out no other one.
_ONE_MS = 600_000
# A node that has come says a moment later that it was started.
_COMES_S = 30.0
# A front-end looks every few seconds. What happened while it did not look for longer than this is not known in time.
_OVERDUE_S = 30.0
# What was taken over from a unit within this time before and after its entry belongs to that.
_OF_UNIT_S = 30.0
_NAMED = 3
_ERROR_MAX = 500
# Numbers, and random names. Errors that differ in these alone have one cause.
_VARYING = re.compile(r"\b[0-9a-f]*[0-9][0-9a-f]*\b")


class Kind(StrEnum):
    """The kinds of what happens."""

    NODE_AWAY = "node_away"
    NODE_NEW = "node_new"
    NODE_GONE = "node_gone"
    NODE_STOPPED = "node_stopped"
    NODE_LOST = "node_lost"
    NODE_APART = "node_apart"
    NODE_BACK = "node_back"
    NODE_STARTED = "node_started"
    UNIT_ENDED = "unit_ended"
    UNIT_SILENT = "unit_silent"
    UNIT_HEARD = "unit_heard"
    COPY_FAILED = "copy_failed"
    COPY_WELL = "copy_well"
    COPY_MADE = "copy_made"
    NOT_LOOKED = "not_looked"


_OF_DEPARTURES = {
    Departure.STOPPED: Kind.NODE_STOPPED,
    Departure.LOST: Kind.NODE_LOST,
    Departure.APART: Kind.NODE_APART,
    Departure.UNKNOWN: Kind.NODE_GONE,
}
# After these others take over tasks.
_LEAVES = {*_OF_DEPARTURES.values(), Kind.UNIT_ENDED, Kind.UNIT_SILENT}
_OF_NODES = {
    Kind.NODE_AWAY: "was away already when this front-end began to look",
    Kind.NODE_NEW: "is new",
    Kind.NODE_GONE: "is gone",
    Kind.NODE_STOPPED: "has left after closing its copies",
    Kind.NODE_LOST: "was lost: it fell silent without closing its copies",
    Kind.NODE_APART: "has left the group of nodes, and its units went on",
    Kind.NODE_BACK: "is back",
    Kind.NODE_STARTED: "was started again",
}


@dataclass(slots=True, eq=False)
class _Entry:
    """One thing that has happened, once or again and again. What happened to copies on one node is one thing.

    unit: of a unit that ended, fell silent or reports again.  error: the last one, in one line.
    first_ms, last_ms: when it was noted, in ms since 1970.  times: how often it has happened.
    copies: those that failed, were made or are well again, by task.
    taken: by task that the node or unit answered, the node that has taken it over.
    """

    kind: Kind
    node: str
    unit: int | None
    error: str
    first_ms: int
    last_ms: int
    times: int
    copies: dict[TaskKey, CopyName] = field(default_factory=dict)
    taken: dict[TaskKey, str] = field(default_factory=dict)
    cause: tuple[object, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.cause = self.kind, self.node, self.unit, _VARYING.sub("", self.error)

    def is_again(self, other: "_Entry") -> bool:
        """Whether another entry tells of the same, not long before."""
        return other.last_ms - self.last_ms < _ONE_MS and self.cause == other.cause

    @property
    def text(self) -> str:
        """One line."""
        times = f", {counted(self.times, 'time')}" if self.times > 1 else ""
        if self.kind in _OF_NODES:
            return f"{self.node} {_OF_NODES[self.kind]}{times}{self._takers()}"
        if self.kind is Kind.UNIT_ENDED:
            return ended_text(self.node, self.unit or 0, self.times, self.error) + self._takers()
        if self.kind is Kind.UNIT_SILENT:
            return f"unit {self.unit} of {self.node} fell silent{times}{self._takers()}"
        if self.kind is Kind.UNIT_HEARD:
            return f"unit {self.unit} of {self.node} reports again{times}"
        if self.kind is Kind.NOT_LOOKED:
            return f"the cluster could not be looked at for {self.error}{times}"
        return self._of_copies(times)

    def _of_copies(self, times: str) -> str:
        # There may be thousands, and few are shown.
        first = [str(task) for task in islice(self.copies, _NAMED)]
        named = listed(first, _NAMED, len(self.copies))
        if self.kind is Kind.COPY_MADE:
            many = counted(len(self.copies), "copy was", "copies were")
            return f"{many} made on {self.node}: {named}"
        is_one, is_well = len(self.copies) == 1, self.kind is Kind.COPY_WELL
        if is_one:
            copy = f"{first[0]} on {next(iter(self.copies.values()))}"
            last = "; last" if times else ""
            return f"{copy} is well again{times}" if is_well else f"{copy} failed{times}{last}: {self.error}"
        many = f"{len(self.copies):,} copies on {self.node}"
        return f"{many} are well again: {named}" if is_well else f"{many} failed: {named}; last: {self.error}"

    def _takers(self) -> str:
        """Name the nodes that have taken over tasks, those with most first."""
        most = Counter(self.taken.values()).most_common()
        if not most:
            return ""
        (first, tasks), *others = most
        said = [f"{first} took over {counted(tasks, 'task')}", *(f"{node} {more:,}" for node, more in others)]
        return f"; {listed(said, _NAMED)}"

    def shown(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "kind": str(self.kind),
            "at_ms": self.last_ms,
            "first_ms": self.first_ms,
            "times": self.times,
            "text": self.text,
        }


_Ends = dict[tuple[str, int], tuple[int, int]]
_Planned = frozenset[tuple[TaskKey, CopyName, str]]
# A node, or a unit of it.
_Place = tuple[str, int | None]


class Lately:
    """Keeps the last KEPT_MAX entries. One thread uses it.

    since_ms, since_s: from when on it is looked, in ms since 1970, and by the clock of `look`.
    The first look notes nothing but nodes that are away: what else stands then may have happened long ago.
    """

    def __init__(self, since_ms: int, since_s: float) -> None:
        self._since_ms, self._looked_s = since_ms, since_s
        self._looked_ms: int | None = None
        self._entries: deque[_Entry] = deque(maxlen=KEPT_MAX)
        self._members: frozenset[str] = frozenset()
        self._seen: set[str] = set()
        # When nodes have come, by the clock of `look`; and which start of each is known.
        self._came_s: dict[str, float] = {}
        self._starts: dict[str, int] = {}
        # By node and unit: how often it had ended lately, and when it had last.
        self._ends: _Ends = {}
        self._failed: frozenset[tuple[TaskKey, CopyName]] = frozenset()
        # Copies that have failed, and could not answer since.
        self._unwell: set[tuple[TaskKey, CopyName]] = set()
        self._departures, self._takeovers = Departures(), Takeovers()
        # The entries of nodes that are away and, for a while, of units; each with when it was noted.
        self._left: dict[_Place, tuple[_Entry, float]] = {}
        # Units that fell silent and were not heard since, each with which of its runs did.
        self._silent: dict[CopyName, int] = {}
        self._plan = Plan()
        self._planned: _Planned = frozenset()
        # Copies that the plan names since a look, and that could not answer yet.
        self._making: set[tuple[TaskKey, CopyName, str]] = set()

    @property
    def has_looked(self) -> bool:
        """Whether it was looked at all."""
        return self._looked_ms is not None

    def shown(self, now_s: float, most: int = KEPT_MAX) -> dict[str, Any]:
        """Return what `GET /v1/cluster` shows: the newest entries, the newest first.

        now_s: the clock of `look`.  most: how many entries.
        """
        return {
            "since_ms": self._since_ms,
            "looked_ms": self._looked_ms,
            "overdue": now_s - self._looked_s > _OVERDUE_S,
            "entries": [each.shown() for each in islice(reversed(self._entries), most)],
        }

    def look(self, observed: ObservedCluster, plan: Plan, now_s: float, now_ms: int) -> None:
        """Compare what is known now with the last look. now_s: the clock of the reports. now_ms: since 1970."""
        self._takeovers.look(observed.reports, plan.copies.keys(), now_s)
        found = [
            *self._of_looks(now_s, now_ms),
            *self._of_nodes(observed, now_s, now_ms),
            *self._of_units(observed, now_ms),
            *self._of_silent(observed, now_s, now_ms),
            *self._of_failed(observed, plan, now_ms),
            *self._of_well(observed, plan, now_s, now_ms),
            *self._of_made(observed, plan, now_s, now_ms),
        ]
        if not self.has_looked:
            found = list(_of_away(observed, plan, now_ms))
        for entry in found:
            self._note(entry, now_s)
        self._note_takers(now_s)
        self._looked_s, self._looked_ms = now_s, now_ms

    def _note_takers(self, now_s: float) -> None:
        kept = set(self._entries)
        for (node, unit), (entry, noted_s) in list(self._left.items()):
            within_s = TAKEN_S if unit is None else _OF_UNIT_S
            if entry not in kept or (unit is not None and now_s - noted_s > within_s):
                del self._left[node, unit]
            else:
                entry.taken |= self._takeovers.since(noted_s - within_s, node, unit)

    def _note(self, entry: _Entry, now_s: float) -> None:
        known = next((each for each in self._entries if each.is_again(entry)), None)
        if known is None:
            known = entry
        else:
            known.last_ms, known.error, known.times = entry.last_ms, entry.error, known.times + entry.times
            known.copies |= entry.copies
            known.taken = entry.taken
            # The newest is last.
            self._entries.remove(known)
        self._entries.append(known)
        if entry.kind in _LEAVES:
            self._left[entry.node, entry.unit] = known, now_s
        elif entry.kind in (Kind.NODE_BACK, Kind.NODE_NEW):
            self._left.pop((entry.node, None), None)

    def _of_looks(self, now_s: float, now_ms: int) -> Iterator[_Entry]:
        silence_s = now_s - self._looked_s
        if silence_s > _OVERDUE_S:
            yield _entry(Kind.NOT_LOOKED, "", now_ms, span_text(round(1_000 * silence_s)))

    def _of_nodes(self, observed: ObservedCluster, now_s: float, now_ms: int) -> Iterator[_Entry]:
        if not self.has_looked:
            self._seen = set(observed.nodes)
        # Those that are not known any more would be new.
        self._seen &= self._members | observed.nodes.keys()
        before, self._members = self._members, frozenset(observed.members)
        for node, departure in self._departures.look(observed, before - self._members, now_s):
            yield _entry(_OF_DEPARTURES[departure], node, now_ms)
        for node in sorted(self._members - before):
            self._came_s[node] = now_s
            yield _entry(Kind.NODE_BACK if node in self._seen else Kind.NODE_NEW, node, now_ms)
        self._seen |= self._members
        for name in sorted(self._members & observed.nodes.keys()):
            start = observed.nodes[name].incarnation
            known, self._starts[name] = self._starts.get(name, start), start
            if start != known and now_s - self._came_s.get(name, now_s) > _COMES_S:
                yield _entry(Kind.NODE_STARTED, name, now_ms)

    def _of_units(self, observed: ObservedCluster, now_ms: int) -> Iterator[_Entry]:
        before, self._ends = self._ends, {}
        # Those of nodes that are gone are kept in mind: they may come back and say the same.
        for name, record in sorted(observed.nodes.items()):
            for each in record.ended:
                unit = name, each.unit
                times, last_ms = before.get(unit, (0, 0))
                self._ends[unit] = each.times, each.last_ms
                if each.last_ms != last_ms:
                    # Earlier ends may have left the count meanwhile.
                    more = max(1, each.times - times)
                    yield _entry(Kind.UNIT_ENDED, name, now_ms, each.error, unit=each.unit, times=more)

    def _of_silent(self, observed: ObservedCluster, now_s: float, now_ms: int) -> Iterator[_Entry]:
        reports = observed.reports
        for name in [each for each in self._silent if reports.is_heard(each, now_s)]:
            last, generation = reports.last(name), self._silent.pop(name)
            # A newer run is told of by the end of the one before it.
            if last is not None and last.generation == generation:
                yield _entry(Kind.UNIT_HEARD, name.node, now_ms, unit=name.unit)
        for each in observed.silent_units(now_s):
            if self._silent.get(each.copy) != each.generation:
                self._silent[each.copy] = each.generation
                yield _entry(Kind.UNIT_SILENT, each.node, now_ms, unit=each.unit)

    def _of_failed(self, observed: ObservedCluster, plan: Plan, now_ms: int) -> Iterator[_Entry]:
        before = self._failed
        failed = {
            (task, heard.copy): heard.status.failure
            for task in plan.copies
            for heard in observed.reports.copies(task)
            if heard.status.state is CopyState.FAILED
        }
        self._failed = frozenset(failed)
        self._unwell |= self._failed
        for node, copies in _by_node(self._failed - before).items():
            error = failed[copies[-1]]
            yield _entry(Kind.COPY_FAILED, node, now_ms, error, times=len(copies), copies=copies)

    def _of_well(self, observed: ObservedCluster, plan: Plan, now_s: float, now_ms: int) -> Iterator[_Entry]:
        self._unwell = {
            (task, copy)
            for task, copy in self._unwell
            if any(each.copy == copy for each in plan.copies.get(task, ()))
        }
        well = {each for each in self._unwell if each[1] in able_copies(observed, each[0], now_s)}
        self._unwell -= well
        for node, copies in _by_node(well).items():
            yield _entry(Kind.COPY_WELL, node, now_ms, times=len(copies), copies=copies)

    def _of_made(self, observed: ObservedCluster, plan: Plan, now_s: float, now_ms: int) -> Iterator[_Entry]:
        if plan is not self._plan:
            before, self._planned = self._planned, _planned(plan)
            # The first copies of a new task are not news.
            self._making |= {each for each in self._planned - before if self._plan.copies.get(each[0])}
            self._making &= self._planned
            self._plan = plan
        made = {each for each in self._making if each[1] in able_copies(observed, each[0], now_s)}
        self._making -= made
        for node, copies in _by_node((task, copy) for task, copy, _ in made).items():
            yield _entry(Kind.COPY_MADE, node, now_ms, times=len(copies), copies=copies)


def _of_away(observed: ObservedCluster, plan: Plan, now_ms: int) -> Iterator[_Entry]:
    # As long as nobody is a member, it is not known yet who is.
    away = away_nodes(observed, plan) if observed.members else set()
    for node in sorted(away):
        yield _entry(Kind.NODE_AWAY, node, now_ms)


def _entry(
    kind: Kind,
    node: str,
    now_ms: int,
    error: str = "",
    *,
    unit: int | None = None,
    times: int = 1,
    copies: Iterable[tuple[TaskKey, CopyName]] = (),
) -> _Entry:
    return _Entry(kind, node, unit, one_line(error, _ERROR_MAX), now_ms, now_ms, times, dict(copies))


def _by_node(copies: Iterable[tuple[TaskKey, CopyName]]) -> dict[str, list[tuple[TaskKey, CopyName]]]:
    found: dict[str, list[tuple[TaskKey, CopyName]]] = {}
    for task, copy in sorted(copies):
        found.setdefault(copy.node, []).append((task, copy))
    return found


def _planned(plan: Plan) -> _Planned:
    """Return the copies that a plan names. One in another data folder is another copy."""
    return frozenset(
        (task, each.copy, each.folder) for task, copies in plan.copies.items() for each in copies
    )
