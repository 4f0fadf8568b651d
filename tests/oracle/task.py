"""One task by the book: its log is played record by record, replies are computed from all it holds."""

from dataclasses import dataclass, field

from tests.oracle.definitions import Stream, with_field, without_field
from tests.oracle.live_metric import Accepted, LiveMetric
from tests.oracle.records import (
    AddField,
    AddMetric,
    Control,
    DropField,
    DropMetric,
    EventRecord,
    Position,
    Record,
    SetLateness,
    SetRetention,
    Warm,
)
from tests.oracle.types import Row
from tests.oracle.values import Result
from tests.oracle.windows import MINUS_INFINITY


@dataclass(frozen=True)
class TaskReply:
    """What a task says to one event; `late` is None, `rewritten` or `discarded`; `partial` maps to R."""

    values: dict[str, Result] = field(default_factory=dict)
    late: str | None = None
    duplicate: bool = False
    warming: tuple[str, ...] = ()
    partial: dict[str, int] = field(default_factory=dict)


class Task:
    """The state of one (stream, partitioner, partition), as the semantics name it: T, F, R, acceptances.

    `clock`, `floor` and `bound` are whole milliseconds, or minus infinity; `gap` is the greatest G, None without a
    gap; `log` holds what was played, in the order of offsets, each event with its reply.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.lateness_ms = stream.lateness_ms
        self.retention_ms = stream.retention_ms
        self.clock: int | float = MINUS_INFINITY
        self.floor: int | float = MINUS_INFINITY
        self.bound: int | float = MINUS_INFINITY
        self.gap: int | None = None
        self.accepted: list[Accepted] = []
        self.metrics: dict[str, LiveMetric] = {}
        self.log: list[tuple[Record, TaskReply | None]] = []
        # Which acceptance of this task, counted from 1, each id last was.
        self.acceptances: dict[str | int, int] = {}
        self.earliest: int | None = None
        self.committed: dict[int, int] = {}
        self.answered: dict[tuple[int, int], TaskReply] = {}

    def apply(self, record: Record) -> TaskReply | None:
        """Play the next record of the log; an event gives its reply."""
        reply = None
        if isinstance(record, EventRecord):
            reply = self._event(record)
        else:
            self._control(record)
        self.floor = max(self.floor, self.clock - self.lateness_ms)
        if self.retention_ms is not None:
            self.bound = max(self.bound, self.clock - self.retention_ms)
        self.log.append((record, reply))
        return reply

    def cross_gap(self, appended: int, max_future: int) -> None:
        """Go on behind a gap. appended: when the first record that is left was appended."""
        latest = int(max(self.clock, appended)) + max_future
        self.gap = latest if self.gap is None else max(self.gap, latest)

    def values(self, fields: Row) -> TaskReply:
        """What a duplicate with these fields would be answered now. Nothing changes."""
        return self._reply(EventRecord("", 0, fields), duplicate=True)

    # --- events

    def _event(self, event: EventRecord) -> TaskReply:
        position = event.position
        if position is None:
            return self._fresh(event)
        self._commit(position)
        if position.offset < self.committed[position.partition]:
            return self._reply(event, duplicate=True)
        where = (position.partition, position.offset)
        if where not in self.answered:
            self.answered[where] = self._fresh(event)
        return self.answered[where]

    def _commit(self, position: Position) -> None:
        partition, committed = position.partition, position.committed
        self.committed[partition] = max(committed, self.committed.get(partition, committed))

    def _fresh(self, event: EventRecord) -> TaskReply:
        if self._remembers(event.id):
            return self._reply(event, duplicate=True)
        if event.time >= self.floor:
            return self._reply(event, self._accept(event, event.time))
        if self.stream.late_policy == "discard":
            return self._reply(event, late="discarded")
        return self._reply(event, self._accept(event, int(self.floor)), late="rewritten")

    def _remembers(self, identity: str | int) -> bool:
        acceptance = self.acceptances.get(identity)
        return acceptance is not None and acceptance > len(self.accepted) - self.stream.dedup_events

    def _accept(self, event: EventRecord, time: int) -> Accepted:
        accepted = Accepted(time, event.fields)
        self.accepted.append(accepted)
        self.acceptances[event.id] = len(self.accepted)
        self.earliest = time if self.earliest is None else min(self.earliest, time)
        self.clock = max(self.clock, time)
        for metric in self.metrics.values():
            metric.add(accepted)
        return accepted

    def _reply(
        self,
        event: EventRecord,
        current: Accepted | None = None,
        *,
        late: str | None = None,
        duplicate: bool = False,
    ) -> TaskReply:
        """The current values for the groups that an event's own fields name. current: as what it was accepted."""
        reply = TaskReply({}, late, duplicate, tuple(n for n, m in self.metrics.items() if not m.warm), {})
        for name, metric in self.metrics.items():
            reply.values[name] = metric.value(event.fields, self.clock, current) if metric.warm else None
            if metric.warm and (bounds := self._bounds(metric)):
                reply.partial[name] = max(bounds)
        return reply

    def _bounds(self, metric: LiveMetric) -> list[int]:
        """The times up to which the metric's window lacks events."""
        bounds = []
        if self.earliest is not None and metric.lacks(self.earliest, self.clock):
            bounds.append(int(metric.bound))
        if self.gap is not None and metric.reaches(self.gap, self.clock):
            bounds.append(self.gap)
        return bounds

    # --- control records

    def _control(self, record: Control) -> None:
        if isinstance(record, AddMetric):
            self._add(record)
        elif isinstance(record, Warm):
            for metric in self.metrics.values():
                metric.warm = metric.warm or metric.serial == record.serial
        elif isinstance(record, DropMetric):
            del self.metrics[record.name]
        elif isinstance(record, AddField):
            self.stream = with_field(self.stream, record.name, record.declared)
        elif isinstance(record, DropField):
            self.stream = without_field(self.stream, record.name)
        elif isinstance(record, SetLateness):
            self.lateness_ms = record.lateness_ms
        elif isinstance(record, SetRetention):
            self.retention_ms = record.retention_ms

    def _add(self, record: AddMetric) -> None:
        metric = LiveMetric(record.metric, self.stream, record.serial, self.bound)
        metric.warm = not self.accepted
        for accepted in self.accepted:
            metric.add(accepted)
        self.metrics[record.metric.name] = metric
