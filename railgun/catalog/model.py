"""Streams and metrics as plain data that has passed every check."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from railgun.catalog.input_format import InputFormat
from railgun.language.computed import ComputedField
from railgun.language.derive import ResolvedDerived
from railgun.language.resolve import ResolvedMetric
from railgun.language.typed import Fields, TypedExpression, fields_of
from railgun.language.types import Kind, Type
from railgun.wire.path import Path
from railgun.wire.schema import Field, FieldType, Schema, WireKind

ALL = "*"
DAY_MS = 86_400_000


LOGS_FOREVER: Final = -1
"""As `log_retention_ms`: the broker keeps the logs of a stream's tasks for ever."""


EARLIEST: Final = "earliest"
LATEST: Final = "latest"
"""As `start` of an input: from the oldest record on, and behind the newest one."""


class LatePolicy(StrEnum):
    """The treatment of late events."""

    REWRITE = "rewrite"
    DISCARD = "discard"


class ReplyKey(StrEnum):
    """The key of replies in the output topic: the event's id, or the key of the record that is answered."""

    ID = "id"
    INPUT = "input"


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """The topics to which a front-end writes of a stream, and what is in them. Tasks do not know it.

    topic, dead: the topics of replies and of dead letters; None: those that are named after the stream.
    key: the key of replies.
    include: the fields that replies repeat in the output topic, in order.
    """

    topic: str | None = None
    dead: str | None = None
    key: ReplyKey = ReplyKey.ID
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """A field of a stream.

    path: where events that come in have it; None: under its name.
    unit: what a timestamp's numbers count; empty if only whole milliseconds are taken.

    Only what takes in events knows path and unit. Records and tasks have fields.
    """

    name: str
    type: Type
    path: Path | None = None
    unit: str = ""

    @property
    def says_where(self) -> bool:
        """Whether the definition says more than name and type."""
        return self.path is not None or self.unit != ""


@dataclass(frozen=True, slots=True)
class InputDefinition:
    """What a definition says of the topics that a stream's events come from, and of their records.

    topics: their names; none: the topic `<prefix>.<stream>.in` alone.
    start: where a topic is begun that was never read for the stream: EARLIEST, LATEST, or a time, in ms since 1970.
    where: the condition, over recorded fields, of the records that are taken; None: all are.
    format: the format of records if no framing says it; else None.

    Only front-ends of a cluster read topics. Tasks know nothing of them.
    """

    topics: tuple[str, ...] = ()
    start: str | int = EARLIEST
    where: ComputedField | None = None
    format: InputFormat | None = None


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """The definition of a stream. Durations are in ms.

    fields: the recorded fields of its events in order. New ones come at the end.
    time: the field of the event time; if None, events are stamped on arrival.
    id: the field of the id; if None, the front-end makes ids.
    partitioners: fields; an event goes to one of the tasks of each, by the field's value, if that is not null. ALL: one
        task gets all events.
    lateness_ms, late_policy: how late events may be, and what happens to those that are later.
    max_future_ms: how far an event may be ahead of the clock; if None, `future_limit_ms` says it.
    retention_ms: how long events are kept for metrics that are added later; None keeps them for ever.
    log_retention_ms: how long a broker keeps the logs of the stream's tasks, or LOGS_FOREVER; None: as the setting
        `cluster.log_retention` said when the stream was made, or when it was set back. Tasks do not know it.
    computed: the fields that are computed of recorded ones, each behind those that it reads.
    input: the topics that events come from, and how their records are read. Tasks do not know it.
    output: where replies and dead letters go, and what is in them. Tasks do not know it.
    partitions: the number of tasks of each partitioner but ALL.
    record_replies: whether replies to HTTP clients are written to the stream's output topic too.
    dedup_events: how many of the last accepted events are remembered, to recognise duplicates.
    """

    name: str
    fields: tuple[FieldDefinition, ...]
    time: str | None = None
    id: str | None = None
    partitioners: tuple[str, ...] = (ALL,)
    lateness_ms: int = 5_000
    late_policy: LatePolicy = LatePolicy.REWRITE
    max_future_ms: int | None = None
    retention_ms: int | None = 30 * DAY_MS
    partitions: int = 1
    record_replies: bool = False
    dedup_events: int = 1_000_000
    log_retention_ms: int | None = None
    computed: tuple[ComputedField, ...] = ()
    input: InputDefinition = InputDefinition()
    output: OutputDefinition = OutputDefinition()

    @property
    def future_limit_ms(self) -> int:
        """The longest time that an event may be ahead of the front-end's clock."""
        return min(1_000, self.lateness_ms) if self.max_future_ms is None else self.max_future_ms

    @property
    def types(self) -> dict[str, Type]:
        """The fields' types by name, recorded ones in order, then computed ones."""
        return self.recorded_types | {field.name: field.type for field in self.computed}

    @property
    def recorded_types(self) -> dict[str, Type]:
        """The types of the recorded fields by name, in order."""
        return {field.name: field.type for field in self.fields}

    @property
    def readable(self) -> Fields:
        """The fields as expressions read them."""
        recorded: dict[str, Type | TypedExpression] = dict(self.recorded_types)
        return recorded | {field.name: field.expression for field in self.computed}

    @property
    def recorded_partitioners(self) -> tuple[str, ...]:
        """The recorded fields among the partitioners."""
        return tuple(field.name for field in self.fields if field.name in self.partitioners)

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """(partitioner, partition) of each of the stream's tasks."""
        return [(name, number) for name in self.partitioners for number in range(self.partitions_of(name))]

    def partitions_of(self, partitioner: str) -> int:
        """Returns the number of tasks of a partitioner. `*` has one, whatever `partitions` says."""
        return 1 if partitioner == ALL else self.partitions

    def schema(self, version: int) -> Schema:
        """Returns the schema under which records carry the fields."""
        return Schema(version, tuple(Field(field.name, wire_type(field.type)) for field in self.fields))

    def of_queries(self, version: int) -> Schema:
        """Returns the schema of the records of value queries: with computed fields behind the recorded ones."""
        return Schema(version, tuple(Field(name, wire_type(type_)) for name, type_ in self.types.items()))

    def incoming(self, version: int) -> Schema:
        """Returns the same schema for what takes in events: with the places of the fields, and the units of times."""
        return Schema(
            version,
            tuple(
                Field(each.name, replace(wire_type(each.type), unit=each.unit), each.path)
                for each in self.fields
            ),
        )

    @property
    def of_records_alone(self) -> str | None:
        """Returns why only records of the stream's input topic can be its events; None if others can.

        That is so if its time, its id or a partitioner's field is something that such a record has beside its value.
        """
        read = {each.name: sorted(fields_of(each.expression)) for each in self.computed}
        roles = [("time", self.time), ("id", self.id)]
        roles += [("partitioner", name) for each in self.partitioners for name in read.get(each, [each])]
        paths = {field.name: field.path for field in self.fields}
        for role, name in roles:
            path = None if name is None else paths.get(name)
            if path is not None and path.of_record:
                return (
                    f"events of {self.name} come from its input topic alone: its {role} {name} is the {path} of a "
                    "record"
                )
        return None


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric as its definition says it.

    name, stream: its name, and that of its stream.
    sql: the canonical text of a query that makes this metric alone, with its name.
    home: the partitioner whose tasks compute it (`home_partitioner`).

    Two definitions are of the same metric if, and only if, name, stream and sql are equal.
    """

    name: str
    stream: str
    sql: str
    home: str
    resolved: ResolvedMetric


@dataclass(frozen=True, slots=True)
class Definitions:
    """The content of a definitions file: streams by name, metrics, and derived metrics.

    Streams and metrics are in the file's order. Each derived metric comes after the ones that it reads.
    """

    streams: Mapping[str, StreamDefinition] = dataclasses.field(default_factory=dict)
    metrics: tuple[MetricDefinition, ...] = ()
    derived: tuple[ResolvedDerived, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all metrics, derived ones last."""
        return [each.name for each in self.metrics] + [each.name for each in self.derived]

    def of_stream(self, stream: str) -> "Definitions":
        """Returns the definitions of one stream, with all its metrics."""
        return Definitions({stream: self.streams[stream]}, self.metrics_of(stream), self.derived_of(stream))

    def metrics_of(self, stream: str) -> tuple[MetricDefinition, ...]:
        """Returns the metrics of one stream."""
        return tuple(metric for metric in self.metrics if metric.stream == stream)

    def derived_of(self, stream: str) -> tuple[ResolvedDerived, ...]:
        """Returns the derived metrics of one stream."""
        return tuple(derived for derived in self.derived if derived.stream == stream)


def home_partitioner(partitioners: tuple[str, ...], group_by: tuple[str, ...]) -> str | None:
    """Returns the home of a metric: the first partitioner that its GROUP BY names, else `*` if the stream has it.

    Returns None if the metric has no home.
    """
    for partitioner in partitioners:
        if partitioner in group_by:
            return partitioner
    return ALL if ALL in partitioners else None


def wire_type(type_: Type) -> FieldType:
    """Converts a field's type to the type in records. Raises KeyError for types that no field has."""
    return FieldType(_WIRE_KINDS[type_.kind], type_.precision, type_.scale)


_WIRE_KINDS = {
    Kind.STRING: WireKind.STRING,
    Kind.LONG: WireKind.LONG,
    Kind.DOUBLE: WireKind.DOUBLE,
    Kind.BOOLEAN: WireKind.BOOLEAN,
    Kind.DECIMAL: WireKind.DECIMAL,
    Kind.TIMESTAMP: WireKind.TIMESTAMP,
}
