"""The types for copies of a task: their names, states and reports, points of their logs, and accepted losses.

They do no I/O. A task has copies on several nodes, in units (processes that run tasks). One of them answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple


class CopyName(NamedTuple):
    """Identifies one copy of a task: a unit runs at most one copy of each task."""

    node: str
    unit: int

    def __str__(self) -> str:
        return f"{self.node}/{self.unit}"


class CopyState(StrEnum):
    """The state of a copy. SILENT: it has caught up, and another copy answers. BEHIND: it may not answer yet."""

    ANSWERING = "answering"
    SILENT = "silent"
    BEHIND = "behind"
    FAILED = "failed"
    CLOSED = "closed"

    @property
    def is_caught_up(self) -> bool:
        """Whether the copy could answer the next record."""
        return self in (CopyState.ANSWERING, CopyState.SILENT)

    @property
    def has_stopped(self) -> bool:
        """Whether the copy processes nothing any more until it is opened again."""
        return self in (CopyState.FAILED, CopyState.CLOSED)

    @property
    def shown(self) -> str:
        """The state as `/v1/status` and the metric `railgun_task_state` name it."""
        return _SHOWN.get(self, str(self))


_SHOWN = {CopyState.ANSWERING: "running", CopyState.BEHIND: "recovering", CopyState.CLOSED: "stopped"}


class LogPoint(NamedTuple):
    """A point between two records of a log.

    offset: the offset of the record behind it.
    epoch: the leader epoch of the record before it; -1 if there is none, or if it is not known.
    """

    offset: int
    epoch: int = -1


START = LogPoint(0)


@dataclass(frozen=True, slots=True)
class Cut:
    """A loss of a log, or of records at its end, that an operator has accepted.

    offset: the first record that was lost.
    leader_epoch: records from the offset on, of earlier epochs than this, are lost.
    topic_id: the id of the topic that took the place of another one, if the operator has accepted that; else empty.
    begin: the offset at which every copy begins in that topic. The stream's definitions are there.
    """

    offset: int
    leader_epoch: int
    topic_id: str = ""
    begin: int = 0

    def after(self, before: "Cut | None") -> "Cut":
        """Return this cut as one that is accepted after another one (`before`).

        Two orders that were given at once may each have written the stream's definitions into the topic. Copies have
        begun at the definitions of the first order, so its `begin` is kept.
        """
        if before is None or not self.topic_id or self.topic_id != before.topic_id:
            return self
        return before if self.leader_epoch < 0 else replace(self, begin=before.begin)

    def is_in(self, accepted: "Cut | None") -> bool:
        """Whether a plan with the cut `accepted` accepts what this one does. If a topic is accepted, the definitions in
        it may be those of another order.
        """
        if accepted is None or self.topic_id != accepted.topic_id:
            return False
        if self.topic_id and self.leader_epoch < 0:
            return True
        return (self.offset, self.leader_epoch) == (accepted.offset, accepted.leader_epoch)

    def has_lost(self, point: LogPoint) -> bool:
        """Whether records before a point are lost."""
        return point.offset > self.offset and point.epoch < self.leader_epoch

    def is_before(self, topic_id: str, position: int) -> bool:
        """Whether a state lies before the topic that the operator has accepted: it was made of records of another
        topic, or of the first records of that one, before its definitions.

        topic_id: the id of the topic that the state was made of; empty if that is not known.
        position: the offset of the record that it needs next. A state without a record fits every topic.
        """
        return bool(self.topic_id) and position > 0 and (topic_id != self.topic_id or position < self.begin)


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap that an operator has accepted: the log of a task begins behind what its copies have processed.

    state: the point of the log where the accepted state ends. This state continues behind the gap. The point's epoch is
        -1 if it is not known, or if the state has no record.
    offset: the first record behind the gap.
    gap_ms: no event in the gap is later, in ms.
    told: the offsets of the first definition that applies at the gap, and after the last one.
    place: the number of the catalogue's last change when the gap was accepted.
    topic_id: the id of the topic of the log; empty if it has none.
    """

    state: LogPoint
    offset: int
    gap_ms: int
    told: tuple[int, int]
    place: int
    topic_id: str = ""

    @property
    def crossing(self) -> tuple[LogPoint, int, str]:
        """The state before the gap, and the record and the topic behind it."""
        return self.state, self.offset, self.topic_id

    def is_crossing_of(self, other: "Gap | None") -> bool:
        """Whether this gap leads from the same state to the same record of the same topic as another one."""
        return other is not None and self.crossing == other.crossing

    def after(self, before: "Gap | None") -> "Gap":
        """Return this gap as one that is accepted after another one. Of two orders at once the first one stands:
        copies may have crossed by its time and its definitions.
        """
        return before if before is not None and self.crossing == before.crossing else self


@dataclass(frozen=True, slots=True)
class CopyReport:
    """A copy's report of itself.

    copy, state: its name, and what it does.
    is_leaving: whether it has been asked to stop, and waits for another copy to answer.
    generation: when its unit started, in ms since 1970. It tells the unit's runs apart.
    position: the offset of the next record that it will process.
    replied: no reply to a record before this point is owed.
    end: the end of its log, as far as it knows.
    interval_s: the next report comes within this time.
    filled: by metric that does not answer yet, how far its fill has come (0 to 1).
    topic_id: the id of the topic of its log, if an operator has accepted that topic in place of another one.
    checkpoint: the position of its last durable checkpoint; 0 if it has none.
    gives: whether its release gives data to other nodes.
    replaced: the id of the topic that its data was made of, if another one has taken that one's place and nobody has
        accepted that; empty if the id is not known; None else.
    """

    copy: CopyName
    generation: int
    state: CopyState
    is_leaving: bool
    position: int
    replied: LogPoint
    end: int
    interval_s: float
    filled: Mapping[str, float] = field(default_factory=dict)
    topic_id: str = ""
    checkpoint: int = 0
    gives: bool = True
    replaced: str | None = None

    @property
    def is_departing(self) -> bool:
        """Whether the copy stops answering soon, or has stopped for good."""
        return self.is_leaving or self.state.has_stopped
