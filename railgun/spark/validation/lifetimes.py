"""Reads the lifetimes of metrics, and the settings in force, from the control records of a partitioner's logs.

The number of a record holds its partition and its offset (`place_of_number`). The place of a change is its place in the
sequence of all changes of the catalogue.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from railgun.catalog.changes import (
    AddDerived,
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
    change_from_json,
)
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.spark.errors import RecordError
from railgun.spark.validation.admission import Lateness
from railgun.spark.validation.task_log_source import place_of_number


@dataclass(slots=True)
class Span:
    """A metric's lifetime in one task, by the numbers of its records. warm, dropped: None without such a record."""

    added: int
    warm: int | None = None
    dropped: int | None = None

    def holds(self, task: str, number: str, *, is_from_first: bool = False) -> str:
        """SQL: whether the metric is in force for an event. task, number: the event's columns.

        is_from_first: the `add` is before all events of the log. Then the metric is in force for events of history too.
        """
        after = "" if is_from_first else f" AND {number} > {self.added}L"
        until = "" if self.dropped is None else f" AND {number} < {self.dropped}L"
        return f"({task} = {place_of_number(self.added)[0]}{after}{until})"


@dataclass(slots=True)
class Lifetime:
    """A metric from its `add` to its drop. added: the place of its `add`.  spans: by task."""

    metric: MetricDefinition
    added: int
    spans: dict[int, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """A stream's definition from a record on. number: the record's number.  version: of the schema."""

    number: int
    stream: StreamDefinition
    version: int


@dataclass(frozen=True, slots=True)
class Past:
    """The history that a task's log names.

    number: the number of the record from which on the task has the history.
    history: the id of the history.
    cut_ms: all its events are before this time.
    known_place: the number of the catalogue's last change that the task knows from its beginning.
    deepens: whether a deepening installed it.
    begun: for a deepening, the number of the record at which the task's events were exported; None without such a
    record.
    """

    number: int
    history: str
    cut_ms: int
    deepens: bool
    begun: int | None
    known_place: int


@dataclass(slots=True)
class ControlHistory:
    """The content of a partitioner's control records.

    lives: the lifetimes of metrics by the place of their `add`.  settings: by task.
    leading: by task, the offset before which all records are control records.  pasts: by task, in order.
    derived: the spans of derived metrics, by the place of their `add` and by task.
    """

    lives: dict[int, Lifetime] = field(default_factory=dict)
    settings: dict[int, list[Setting]] = field(default_factory=dict)
    leading: dict[int, int] = field(default_factory=dict)
    pasts: dict[int, list[Past]] = field(default_factory=dict)
    derived: dict[int, dict[int, Span]] = field(default_factory=dict)

    def lateness_changes(self) -> Mapping[int, list[Lateness]]:
        """Return, by task, the settings of lateness in the order of their records."""
        return {
            task: [Lateness.of(each.number, each.stream) for each in changes]
            for task, changes in self.settings.items()
        }


def follow_controls(controls: Iterable[tuple[int, int, str]], partitioner: str) -> ControlHistory:
    """Read control records: (task, number, JSON), in any order. Metrics at home at other partitioners are left out.

    Raises RecordError.
    """
    found = ControlHistory()
    begun: dict[tuple[int, str], int] = {}
    applied: dict[int, int] = {}
    streams: dict[int, dict[str, StreamDefinition]] = {}
    for task, number, body in sorted(controls):
        known = streams.setdefault(task, {})
        if place_of_number(number)[1] == found.leading.get(task, 0):
            found.leading[task] = found.leading.get(task, 0) + 1
        change = _change(number, body, known)
        if isinstance(change, Warm):
            life = found.lives.get(change.added)
            span = None if life is None else life.spans.get(task)
            if span is not None and span.warm is None:
                span.warm = number
            continue
        if change.place <= applied.get(task, 0):
            # A copy of a record, from a writer that completed a change which another one had begun.
            continue
        applied[task] = change.place
        match change:
            case PutStream():
                known[change.stream.name] = change.stream
                found.settings.setdefault(task, []).append(
                    Setting(number, change.stream, change.schema_version)
                )
            case AddMetric() if change.metric.home == partitioner:
                life = found.lives.setdefault(change.place, Lifetime(change.metric, change.place))
                life.spans[task] = Span(number)
            case AddDerived():
                found.derived.setdefault(change.place, {})[task] = Span(number)
            case DropMetric() if change.added in found.lives:
                found.lives[change.added].spans[task].dropped = number
            case DropMetric() if change.added in found.derived:
                found.derived[change.added][task].dropped = number
            case DropStream():
                for life in found.lives.values():
                    span = life.spans.get(task)
                    if span is not None and span.dropped is None:
                        span.dropped = number
            case BeginDeepening():
                begun[task, change.history] = number
            case AddHistory() | Deepen():
                past = _past(number, change, begun.get((task, change.history)))
                found.pasts.setdefault(task, []).append(past)
            case _:
                pass
    return found


def _change(number: int, body: str, known: Mapping[str, StreamDefinition]) -> Change | Warm:
    """Return the change in a control record. known: the streams of its task so far. Raises RecordError."""
    try:
        return change_from_json(json.loads(body), known)
    except DefinitionError as error:
        partition, offset = place_of_number(number)
        raise RecordError(f"partition {partition} offset {offset}: a control record: {error}") from error


def _past(number: int, change: AddHistory | Deepen, begun: int | None) -> Past:
    """Return the history that a record names. begun: see `Past`."""
    place = change.known_place if isinstance(change, AddHistory) else None
    known_place = change.place - 1 if place is None else place
    return Past(number, change.history, change.cut_ms, isinstance(change, Deepen), begun, known_place)
