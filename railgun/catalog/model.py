"""Streams and metrics as plain data, after every check."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from railgun.language.derive import ResolvedDerived
from railgun.language.resolve import ResolvedMetric
from railgun.language.types import Kind, Type
from railgun.wire.schema import Field, FieldType, Schema
from railgun.wire.schema import Kind as WireKind

ALL = "*"
DAY_MS = 86_400_000


class LatePolicy(StrEnum):
    """What becomes of a late event."""

    REWRITE = "rewrite"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class FieldDefinition:
    """A field of a stream."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    """A stream as its definition says it; durations in ms.

    time: None where events are stamped on arrival.  id: None where the front-end makes ids.
    max_future_ms: None where the definition leaves it to `lateness_ms`.  retention_ms: None is for ever.
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

    @property
    def future_limit_ms(self) -> int:
        """How far ahead of the front-end's clock an event may be."""
        return min(1_000, self.lateness_ms) if self.max_future_ms is None else self.max_future_ms

    @property
    def types(self) -> dict[str, Type]:
        """The fields' types by name, in order."""
        return {field.name: field.type for field in self.fields}

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """(partitioner, partition) of all its tasks."""
        return [(name, number) for name in self.partitioners for number in range(self.partitions_of(name))]

    def partitions_of(self, partitioner: str) -> int:
        """How many tasks a partitioner has: `*` is one whatever `partitions` says."""
        return 1 if partitioner == ALL else self.partitions

    def schema(self, version: int) -> Schema:
        """The fields as records carry them, under a version number."""
        return Schema(version, tuple(Field(field.name, wire_type(field.type)) for field in self.fields))


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """One metric. `sql` is the canonical text of a query that makes this metric alone, its name included;
    two definitions are the same metric iff name, stream and sql are equal.  `home` is a partitioner."""

    name: str
    stream: str
    sql: str
    home: str
    resolved: ResolvedMetric


@dataclass(frozen=True, slots=True)
class Definitions:
    """What a definitions file says: streams by name and metrics, in the file's order; and derived metrics, each
    behind those that it reads.
    """

    streams: Mapping[str, StreamDefinition] = dataclasses.field(default_factory=dict)
    metrics: tuple[MetricDefinition, ...] = ()
    derived: tuple[ResolvedDerived, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all metrics, derived ones last."""
        return [each.name for each in self.metrics] + [each.name for each in self.derived]

    def of_stream(self, stream: str) -> "Definitions":
        """One stream, with all its metrics."""
        return Definitions({stream: self.streams[stream]}, self.metrics_of(stream), self.derived_of(stream))

    def metrics_of(self, stream: str) -> tuple[MetricDefinition, ...]:
        """The metrics of one stream."""
        return tuple(metric for metric in self.metrics if metric.stream == stream)

    def derived_of(self, stream: str) -> tuple[ResolvedDerived, ...]:
        """The derived metrics of one stream."""
        return tuple(derived for derived in self.derived if derived.stream == stream)


def home_partitioner(partitioners: tuple[str, ...], group_by: tuple[str, ...]) -> str | None:
    """Where a metric lives: the first partitioner that its GROUP BY names, else `*`, else None: nowhere."""
    for partitioner in partitioners:
        if partitioner in group_by:
            return partitioner
    return ALL if ALL in partitioners else None


def wire_type(type_: Type) -> FieldType:
    """A field's type as the wire names it. Raises KeyError for types that no field has."""
    return FieldType(_WIRE_KINDS[type_.kind], type_.precision, type_.scale)


_WIRE_KINDS = {
    Kind.STRING: WireKind.STRING,
    Kind.LONG: WireKind.LONG,
    Kind.DOUBLE: WireKind.DOUBLE,
    Kind.BOOLEAN: WireKind.BOOLEAN,
    Kind.DECIMAL: WireKind.DECIMAL,
    Kind.TIMESTAMP: WireKind.TIMESTAMP,
}
