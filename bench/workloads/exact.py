"""Whether an engine's values are those of the oracle, for a sample of events whose windows hold many others."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.workloads.generated import GeneratedEvents
from railgun.catalog.model import Definitions
from railgun.engine.offline_tasks import SCHEMA_VERSION
from railgun.ingest.answers import forms_of
from railgun.ingest.routing import Router
from railgun.ingest.stream_tasks import Feed, StreamTasks
from railgun.measuring.measured import MeasuredTasks
from railgun.task.processor import TaskProcessor
from railgun.wire.encode import encode_columns
from tests.oracle.compare import metric_differences
from tests.oracle.definitions import Stream, parse_definitions
from tests.oracle.live_metric import Accepted, LiveMetric
from tests.oracle.query import parse_statement
from tests.oracle.syntax import Metric
from tests.oracle.values import Result, json_value
from tests.oracle.windows import MINUS_INFINITY, interval

Values = dict[str, Any]
"""The metrics in a reply, as JSON has them."""

_EVENTS, _COMPARED = 2_048, 100
_SHOWN = 5


class WrongValuesError(Exception):
    """Values are not those of the oracle, so a speed says nothing."""


def check(tasks: MeasuredTasks, definitions: Definitions, text: str, events: GeneratedEvents) -> int:
    """Process some more events, and compare the replies to a sample of them. Returns how many events were compared.

    text: the definitions, as the oracle reads them.  Raises WrongValuesError.
    """
    rows = np.linspace(0, _EVENTS - 1, _COMPARED).astype(int).tolist()
    got = answered(tasks, definitions, events, _EVENTS, rows)
    taken = events.taken
    exact = expected(text, taken, [len(taken) - _EVENTS + row for row in rows])
    compare([events.position - _EVENTS + row for row in rows], exact, got)
    return len(rows)


def reach_ms(text: str) -> int:
    """Return how far back the windows of definitions reach. Raises ValueError for a window without an end."""
    items = [item for sql in parse_definitions(text).queries for item in parse_statement(sql)]
    windows = [item.window for item in items if isinstance(item, Metric)]
    if any(window.kind == "infinite" for window in windows):
        raise ValueError("an INFINITE window needs all events, and a bench has too many to keep")
    return max(window.size_ms + window.delay_ms for window in windows)


def compare(places: Sequence[int], exact: Sequence[Values], got: Sequence[Values]) -> None:
    """Compare the metrics of some events with the exact ones, bit for bit. Raises WrongValuesError."""
    wrong = [
        f"event {place}: {line}"
        for place, wanted, found in zip(places, exact, got, strict=True)
        for line in metric_differences(wanted, found)
    ]
    if wrong:
        raise WrongValuesError(
            f"{len(wrong)} values differ, of {len(places)} events: {'; '.join(wrong[:_SHOWN])}"
        )


def answered(
    tasks: MeasuredTasks, definitions: Definitions, events: GeneratedEvents, n: int, rows: Sequence[int]
) -> list[Values]:
    """Process the next n events, and return the metrics in the replies to some of them."""
    (stream,) = definitions.streams.values()
    metrics = definitions.metrics_of(stream.name)
    feeds: dict[str, list[Feed]] = {each.partitioner: [partial(_feed, each.task)] for each in tasks.loads}
    stream_tasks, taken = StreamTasks(feeds), events.take(n)
    records = encode_columns(SCHEMA_VERSION, taken)
    batches = stream_tasks.task_batches(records, Router(stream).shares(taken))
    answers = stream_tasks.process(batches, forms_of(stream.partitioners, metrics), n)
    columns = {name: each for own in answers.values() for name, each in own.block().columns().items()}
    return [{name: json_value(column.value(row)) for name, column in columns.items()} for row in rows]


def _feed(task: TaskProcessor, records: Any, deliver: Any, /) -> None:
    task.process(records, task.position, deliver)


def expected(text: str, taken: pa.Table, places: Sequence[int]) -> list[Values]:
    """Return the metrics in the replies to some events, by the oracle. places: theirs among the events.

    taken: events in order of time, all that the windows of those events can hold.
    """
    parsed = parse_definitions(text)
    (stream,) = parsed.streams.values()
    events = _Events(stream, taken, places)
    found: list[Values] = [{} for _ in places]
    for item in (item for sql in parsed.queries for item in parse_statement(sql)):
        if isinstance(item, Metric):
            for values, value in zip(found, events.results(item), strict=True):
                values[item.name] = json_value(value)
    return found


class _Events:
    """Events in order of time, and those whose replies are wanted, in this order."""

    def __init__(self, stream: Stream, taken: pa.Table, places: Sequence[int]) -> None:
        self._stream, self._taken, self._places = stream, taken, places
        self._times = taken.column(str(stream.time)).to_numpy()
        self._rows: Mapping[tuple[int, str | None], tuple[list[int], list[Any]]] = {}

    def results(self, metric: Metric) -> Iterator[Result]:
        """Yield a metric in the reply to each event that is wanted.

        The oracle's metric is given the events that a window can hold and that may be of the same group. As no event is
        late, others change nothing, and the clock is the time of the event.
        """
        wanted, live = set(self._places), LiveMetric(metric, self._stream, 0, MINUS_INFINITY)
        for place, row in zip(*self._that_count(metric), strict=True):
            event = Accepted(int(self._times[place]), row)
            live.add(event)
            if place in wanted:
                yield live.value(row, event.time, event)

    def _that_count(self, metric: Metric) -> tuple[list[int], list[Any]]:
        """Return the places and rows of events that may count in a metric. Those of the last call are kept."""
        begins = interval(metric.window, int(self._times[self._places[0]])).first
        first = int(np.searchsorted(self._times, begins))
        by = next((name for name in metric.group_by if name in self._stream.fields), None)
        if (first, by) not in self._rows:
            part = self._taken.slice(first, self._places[-1] + 1 - first)
            chosen = np.arange(len(part))
            if by is not None:
                keys = self._taken.column(by).take(pa.array(self._places))
                chosen = np.flatnonzero(pc.is_in(part.column(by), keys.combine_chunks()).to_numpy())
            self._rows = {(first, by): ((first + chosen).tolist(), part.take(chosen).to_pylist())}
        return self._rows[first, by]
