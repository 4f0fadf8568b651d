"""One metric of a task: which accepted events it holds, group by group, and its value at a clock."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.aggregates import Aggregate
from tests.oracle.definitions import Stream
from tests.oracle.errors import QueryRefused
from tests.oracle.expressions import evaluate, holds
from tests.oracle.inference import infer
from tests.oracle.syntax import Metric
from tests.oracle.types import BOOLEAN, Value
from tests.oracle.values import Result
from tests.oracle.windows import MINUS_INFINITY, interval


@dataclass(frozen=True)
class Accepted:
    """An accepted event: the time it was accepted at, and its fields as they were sent."""

    time: int
    fields: Mapping[str, Value]


@dataclass
class _Group:
    """The events of a group that count, their times and prepared values, in order of time, then offset."""

    events: list[Accepted] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


class LiveMetric:
    """A metric from its `add` record on; `bound` is R there: events at or before it are never in it."""

    def __init__(self, metric: Metric, stream: Stream, serial: int, bound: int | float) -> None:
        fields = stream.types
        self.metric, self.stream = metric, stream
        self.serial = serial
        self.bound = bound
        self.warm = False
        self.argument = None if metric.argument is None else infer(metric.argument, fields)
        self.where = None if metric.where is None else infer(metric.where, fields)
        if self.where is not None and self.where.type != BOOLEAN:
            raise QueryRefused(f"WHERE takes a boolean, not {self.where.type}")
        for name in metric.group_by:
            if name not in fields:
                raise QueryRefused(f"no field {name!r}")
        self.aggregate = Aggregate(metric.aggregator, None if self.argument is None else self.argument.type)
        self.groups: dict[tuple[Value, ...], _Group] = {}

    def add(self, event: Accepted) -> None:
        """Take an accepted event in, which is later in the log than all taken in before."""
        row = self.stream.row(event.fields)
        if event.time <= self.bound or not holds(self.where, row):
            return
        value: Value = True
        if self.argument is not None:
            value = evaluate(self.argument, row)
            if value is None:
                return
        group = self.groups.setdefault(self._key(row), _Group())
        place = bisect_right(group.times, event.time)
        group.events.insert(place, event)
        group.times.insert(place, event.time)
        group.values.insert(place, value if self.argument is None else self.aggregate.prepare(value))

    def value(
        self, fields: Mapping[str, Value], clock: int | float, current: Accepted | None = None
    ) -> Result:
        """The aggregate of what the window holds at `clock` of the group that these fields name.

        current: the event that is answered, where it was accepted.
        """
        group = self.groups.get(self._key(self.stream.row(fields)), _Group())
        times = interval(self.metric.window, clock)
        first, end = bisect_left(group.times, times.first), bisect_right(group.times, times.last)
        excluded = current if self.metric.excludes_current else None
        return self.aggregate.result(
            [
                value
                for event, value in zip(group.events[first:end], group.values[first:end], strict=True)
                if event is not excluded
            ]
        )

    def lacks(self, earliest: int, clock: int | float) -> bool:
        """Whether the window reaches back to the bound, and the task accepted something at or before it."""
        if self.bound == MINUS_INFINITY or earliest > self.bound:
            return False
        return interval(self.metric.window, clock).first <= self.bound

    def reaches(self, time: int, clock: int | float) -> bool:
        """Whether the window begins at or before a time."""
        return isinstance(clock, float) or interval(self.metric.window, clock).first <= time

    def _key(self, fields: Mapping[str, Value]) -> tuple[Value, ...]:
        return tuple(fields.get(name) for name in self.metric.group_by)
