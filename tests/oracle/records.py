"""What stands in a task's log: events and control records."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.oracle.syntax import Metric
from tests.oracle.types import Value


@dataclass(frozen=True)
class Position:
    """Where in a stream's input topic a record came from, and what was committed there when it was written.

    Positions below `committed` were answered for good; `offset` itself never is below it at first.
    """

    partition: int
    offset: int
    committed: int


@dataclass(frozen=True)
class EventRecord:
    """An event as the front-end publishes it: typed fields of the schema in force there, without absent ones.

    `time` is the client's; `fields` holds it too where the stream has a time field.
    """

    id: str | int
    time: int
    fields: Mapping[str, Value] = field(default_factory=dict)
    position: Position | None = None


@dataclass(frozen=True)
class AddMetric:
    """`serial` tells this `add` from another one of the same name."""

    metric: Metric
    serial: int


@dataclass(frozen=True)
class Warm:
    """The metric of that `add` has filled; for an `add` that is warm or dropped it changes nothing."""

    serial: int


@dataclass(frozen=True)
class DropMetric:
    name: str


@dataclass(frozen=True)
class AddField:
    """A schema with one field more; `declared` is what the definitions say of it."""

    name: str
    declared: object


@dataclass(frozen=True)
class DropField:
    """A schema without a computed field."""

    name: str


@dataclass(frozen=True)
class SetLateness:
    lateness_ms: int


@dataclass(frozen=True)
class SetRetention:
    """`retention_ms` None is for ever."""

    retention_ms: int | None


Control = AddMetric | Warm | DropMetric | AddField | DropField | SetLateness | SetRetention
Record = EventRecord | Control
