"""SQL rules for the life of a metric: where it is in force, warming or partial, and which events its results lack."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.language.ast import Window, WindowKind
from railgun.spark.validation.admission import ACCEPTED_MS, CLOCK, TASK
from railgun.spark.validation.checking import Checked, held_scale
from railgun.spark.validation.lifetimes import ControlHistory, Lifetime, Span
from railgun.spark.validation.reply_checks import MustBeNull
from railgun.spark.validation.reply_source import ABSENT, PARTIAL, UNFIT, WARMING
from railgun.spark.validation.run_source import NUMBER
from railgun.spark.validation.task_log_source import place_of_number
from railgun.spark.validation.translate import text_literal
from railgun.spark.validation.windows import block_of

_LEAST = -(1 << 63)
_CARRIED = (TASK, CLOCK, ABSENT, UNFIT, WARMING, PARTIAL)


@dataclass(frozen=True, slots=True)
class _Lack:
    """In a task, a metric's results lack the events accepted at or before bound_ms. number: of the first of them."""

    task: int
    bound_ms: int
    number: int


class LifeRules:
    """The rules for one partitioner's metrics.

    events: admitted events. They are read only if a metric was added when there were events.
    elsewhere: the names that metrics at home at other partitioners have, or had.
    """

    def __init__(
        self,
        events: DataFrame,
        controls_seen: ControlHistory,
        columns: Mapping[int, str],
        elsewhere: Set[str] = frozenset(),
    ) -> None:
        self._controls_seen, self._columns, self._elsewhere = controls_seen, columns, elsewhere
        self._clocks = clocks_at(events, self._points())
        bounds = {
            (task, bound)
            for life in controls_seen.lives.values()
            for task, span in life.spans.items()
            if (bound := self._bound(task, span)) is not None
        }
        self._firsts = _firsts(events, sorted(bounds))

    def checked(self) -> list[Checked]:
        """Every metric that the partitioner has had, with its rules."""
        return [self._checked(life) for life in self._controls_seen.lives.values()]

    def must_be_null(self) -> list[MustBeNull]:
        """Return the columns that are null in replies to events that were not sent to the partitioner, once for each
        name.
        """
        made = []
        for life in self._controls_seen.lives.values():
            name, column = text_literal(life.metric.name), self._columns[life.added]
            # A name that has had another home may be in the reply because of that home.
            if self._alike(life)[0] is life and life.metric.name not in self._elsewhere:
                otherwise = (
                    f"coalesce({UNFIT}[{text_literal(column)}], "
                    f"CASE WHEN {is_warming(name)} THEN 'null, warming' END, 'null, partial: ' || {PARTIAL}[{name}])"
                )
                made.append(MustBeNull(self._title(life), column, otherwise, held_scale(life.metric)))
        return made

    def _alike(self, life: Lifetime) -> list[Lifetime]:
        """Return all lifetimes of metrics with its name."""
        return [
            other for other in self._controls_seen.lives.values() if other.metric.name == life.metric.name
        ]

    def _title(self, life: Lifetime) -> str:
        """Its name in the report."""
        name = life.metric.name
        return name if len(self._alike(life)) == 1 else f"{name} (added at {life.added})"

    def _checked(self, life: Lifetime) -> Checked:
        metric, column = life.metric, self._columns[life.added]
        lacks = [lack for task, span in life.spans.items() if (lack := self._lack(task, span)) is not None]
        name = text_literal(metric.name)
        listed = is_warming(name)
        partial = _partial(metric.resolved.window, lacks)
        in_force = self._in_force(life.spans.values())
        alike = self._alike(life)
        # A reply that names a metric where none of its name is in force is reported once, at the first lifetime.
        alone = "false"
        if alike[0] is life and metric.name not in self._elsewhere:
            is_absent = f"coalesce(array_contains({ABSENT}, {name}), false)"
            is_named = f"(NOT {is_absent} OR {listed} OR {PARTIAL}[{name}] IS NOT NULL)"
            alone = " AND ".join(
                [is_named, *(f"NOT ({self._in_force(each.spans.values())})" for each in alike)]
            )
        is_right = (
            f"(CASE WHEN NOT ({in_force}) THEN false WHEN array_contains({ABSENT}, {name}) "
            f"OR {UNFIT}[{text_literal(column)}] IS NOT NULL THEN false "
            f"WHEN {self._warming(life)} THEN {listed} AND {column} IS NULL AND {PARTIAL}[{name}] IS NULL "
            f"WHEN {listed} OR NOT ({PARTIAL}[{name}] <=> {partial}) THEN false END)"
        )
        return Checked(
            metric,
            self._title(life),
            column,
            tuple((lack.task, lack.bound_ms) for lack in lacks),
            f"(({in_force}) OR ({alone}))",
            is_right,
            _CARRIED,
        )

    def _points(self) -> list[int]:
        """Return the numbers of the control records at which the clock has to be known."""
        spans = [span for life in self._controls_seen.lives.values() for span in life.spans.values()]
        adds = {span.added for span in spans if not self._is_first(span.added)}
        if not adds:
            return []
        return sorted(
            adds | {each.number for changes in self._controls_seen.settings.values() for each in changes}
        )

    def _is_first(self, number: int) -> bool:
        """Whether a control record is before all events of its task."""
        partition, offset = place_of_number(number)
        return offset < self._controls_seen.leading.get(partition, 0)

    def _clock(self, number: int) -> int | None:
        """Return the clock T at a control record; None if nothing was accepted before it."""
        return None if self._is_first(number) else self._clocks.get(number)

    def _bound(self, task: int, span: Span) -> int | None:
        """Return the retention bound R at a metric's `add`; None if it is minus infinity."""
        settings = [each for each in self._controls_seen.settings.get(task, ()) if each.number < span.added]
        ends = [each.number for each in settings[1:]] + [span.added]
        found: list[int] = []
        for setting, end in zip(settings, ends):
            retention_ms = setting.stream.retention_ms
            for number in (setting.number, end):
                clock = self._clock(number)
                if clock is not None and retention_ms is not None:
                    found.append(clock - retention_ms)
        return max((each for each in found if each > _LEAST), default=None)

    def _lack(self, task: int, span: Span) -> _Lack | None:
        bound = self._bound(task, span)
        first = None if bound is None else self._firsts.get((task, bound))
        return None if bound is None or first is None else _Lack(task, bound, first)

    def _in_force(self, spans: Iterable[Span]) -> str:
        made = [span.holds(TASK, NUMBER, is_from_first=self._is_first(span.added)) for span in spans]
        return " OR ".join(made) or "false"

    def _warming(self, life: Lifetime) -> str:
        made = []
        for span in life.spans.values():
            if self._clock(span.added) is not None:
                until = "" if span.warm is None else f" AND {NUMBER} < {span.warm}L"
                made.append(f"({TASK} = {place_of_number(span.added)[0]}{until})")
        return "(" + (" OR ".join(made) or "false") + ")"


def is_warming(name: str) -> str:
    """SQL: whether a name (SQL) is listed as warming."""
    return f"coalesce(array_contains({WARMING}, {name}), false)"


def _partial(window: Window, lacks: Iterable[_Lack]) -> str:
    """SQL of the bound that a reply has to name; null if the window does not reach back to it."""
    cases = []
    for lack in lacks:
        head = f"try_subtract({CLOCK}, {window.delay_ms}L)"
        if window.size_ms is None:
            reaches = "true"
        elif window.kind is WindowKind.SLIDING:
            reaches = f"coalesce(try_subtract({head}, {window.size_ms}L) < {lack.bound_ms}L, true)"
        else:
            start = f"try_multiply({block_of(head, window)}, {window.size_ms}L)"
            reaches = f"coalesce({start} <= {lack.bound_ms}L, true)"
        cases.append(
            f"WHEN {TASK} = {lack.task} AND {NUMBER} >= {lack.number}L AND {reaches} THEN {lack.bound_ms}L"
        )
    return f"(CASE {' '.join(cases)} END)" if cases else "CAST(NULL AS BIGINT)"


def clocks_at(events: DataFrame, points: list[int]) -> dict[int, int]:
    """Return the clock T by the number of a control record, for records before which an event was accepted."""
    if not points:
        return {}
    figures = [
        F.max(
            F.expr(
                f"CASE WHEN {TASK} = {place_of_number(number)[0]} AND {NUMBER} < {number}L THEN {CLOCK} END"
            )
        )
        for number in points
    ]
    row = events.agg(*figures).collect()[0]
    return {number: clock for number, clock in zip(points, row) if clock is not None and clock > _LEAST}


def _firsts(events: DataFrame, bounds: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return, by task and bound, the number of the first event accepted at or before the bound, if there is one."""
    if not bounds:
        return {}
    figures = [
        F.min(F.expr(f"CASE WHEN {TASK} = {task} AND {ACCEPTED_MS} <= {bound}L THEN {NUMBER} END"))
        for task, bound in bounds
    ]
    row = events.agg(*figures).collect()[0]
    return {each: number for each, number in zip(bounds, row) if number is not None}
