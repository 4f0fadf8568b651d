"""Groups a stream's metrics into passes over its events, and compares the results of a pass with recorded replies."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.catalog.model import MetricDefinition
from railgun.language.ast import Aggregator, Window
from railgun.language.typed import Field, TypedExpression
from railgun.language.types import BOOLEAN, DECIMAL_DIGITS, Kind, Type
from railgun.spark.validation.admission import ACCEPTED_MS, TASK
from railgun.spark.validation.distinct import with_distinct
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, NUMBER, field_column
from railgun.spark.validation.states import Expected, expected, states_of
from railgun.spark.validation.translate import InexpressibleError, sql_of
from railgun.spark.validation.windows import Value, with_states
from reservoir.layout import INT64_MIN

_EXPECTED, _TOLERANCE = "expected", "tolerance"
WRONGLY_SAID = " (its absence, or what is said of warming or partial, is wrong)"
_VERDICT, _DIFFERENCE = "verdict", "difference"
_WRONG, _BEYOND = 1, 2
_SAMPLES = 1_000_000


@dataclass(frozen=True, slots=True)
class Checked:
    """A metric to check.

    name: its name in the report.  column: the column of its recorded results.
    bounds: pairs (task, ms). Results of the task lack the events that were accepted at or before this time.
    in_force: SQL. Nothing is compared where it is false.
    is_right: SQL over events and their replies: whether the reply is right; null where the result's value decides.
    Empty where the value always decides.
    carried: the columns that the SQL needs.
    """

    metric: MetricDefinition
    name: str
    column: str
    bounds: tuple[tuple[int, int], ...] = ()
    in_force: str = ""
    is_right: str = ""
    carried: tuple[str, ...] = ()


@dataclass(slots=True)
class ValueColumns:
    """The values that one partitioner's metrics aggregate: a column for each argument under each predicate."""

    texts: dict[str, str] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def add(self, metric: MetricDefinition) -> str:
        """Return the column of a metric. Raises InexpressibleError."""
        resolved = metric.resolved
        text = "true" if resolved.argument is None else sql_of(resolved.argument)
        if resolved.predicate is not None:
            text = f"CASE WHEN {sql_of(resolved.predicate)} THEN {text} END"
        name = self.texts.setdefault(text, f"v{len(self.texts)}")
        self.types[name] = BOOLEAN if resolved.argument is None else resolved.argument.type
        return name

    def add_keys(self, metric: MetricDefinition) -> tuple[str, ...]:
        """The columns of a metric's group: those of recorded fields, and own ones of computed fields.

        Raises InexpressibleError.
        """
        # A computed field may be another name of a recorded one.
        return tuple(dict.fromkeys(self._key(each) for each in metric.resolved.keys))

    def _key(self, key: TypedExpression) -> str:
        if isinstance(key, Field):
            return field_column(key.name)
        # The parentheses keep it apart from an equal argument, whose column counts fewer events.
        name = self.texts.setdefault(f"({sql_of(key)})", f"v{len(self.texts)}")
        self.types[name] = key.type
        return name

    def try_add(self, metric: MetricDefinition) -> None:
        """Add the column of a metric, if Spark can express it."""
        with contextlib.suppress(InexpressibleError):
            self.add(metric)
            self.add_keys(metric)

    def selected(self) -> list[str]:
        """Return the SQL of all columns."""
        return [f"{text} AS {name}" for text, name in self.texts.items()]


@dataclass(slots=True)
class Pass:
    """The metrics that share a window and a grouping, each with its column of values. count_distinct has its own pass.

    apart: columns that separate events in addition to those of the grouping.
    group, window, excludes_current: the grouping and the window, and whether an event is left out of its own result.
    bounds: pairs (task, ms), as in `Checked`.
    metrics: the metrics, each with the name of its column.
    """

    apart: tuple[str, ...]
    group: tuple[str, ...]
    window: Window
    excludes_current: bool
    bounds: tuple[tuple[int, int], ...]
    metrics: list[tuple[Checked, str]]

    @property
    def carried(self) -> list[str]:
        """The columns of events that are needed to compare results."""
        return [name for each, _ in self.metrics for name in (each.column, *each.carried)]

    @property
    def is_distinct(self) -> bool:
        """Whether it counts distinct values."""
        return self.metrics[0][0].metric.resolved.aggregator is Aggregator.COUNT_DISTINCT


def planned(
    metrics: Sequence[Checked], values: ValueColumns, apart: tuple[str, ...] = ()
) -> tuple[list[Pass], list[tuple[Checked, str]]]:
    """Return the passes for one partitioner's metrics; and, with reasons, those that Spark cannot express. apart: see
    Pass.
    """
    shared: dict[tuple[object, ...], Pass] = {}
    alone: list[Pass] = []
    left: list[tuple[Checked, str]] = []
    for each in metrics:
        resolved = each.metric.resolved
        try:
            column, group = values.add(each.metric), values.add_keys(each.metric)
        except InexpressibleError as error:
            left.append((each, str(error)))
            continue
        if resolved.aggregator is Aggregator.COUNT_DISTINCT:
            alone.append(
                Pass(apart, group, resolved.window, resolved.excludes_current, each.bounds, [(each, column)])
            )
            continue
        key = (group, resolved.window, resolved.excludes_current, each.bounds)
        one = shared.setdefault(key, Pass(apart, *key, []))
        one.metrics.append((each, column))
    return [*shared.values(), *alone], left


def answered(
    events: DataFrame, one: Pass, types: Mapping[str, Type], carried: Sequence[str], *, stragglers: bool
) -> DataFrame:
    """Return a row for every event: `carried`, and for metric i of the pass expected_i, and tolerance_i for doubles."""
    if one.bounds:
        bound = _by_task(one.bounds)
        counts = f"CASE WHEN {ACCEPTED_MS} > {bound} THEN"
        events = events.withColumns({name: F.expr(f"{counts} {name} END") for _, name in one.metrics})
    group = (*one.apart, *one.group)
    if one.is_distinct:
        column = one.metrics[0][1]
        made = with_distinct(
            events, group, one.window, column, carried, excludes_current=one.excludes_current
        )
    else:
        made = with_states(
            events,
            group,
            one.window,
            _values(one, types),
            carried,
            excludes_current=one.excludes_current,
            stragglers=stragglers,
        )
    columns = list(carried)
    for place, each in enumerate(wanted(one)):
        columns.append(f"{each.value} AS {_EXPECTED}{place}")
        if each.tolerance is not None:
            columns.append(f"{each.tolerance} AS {_TOLERANCE}{place}")
    return made.selectExpr(*columns)


def sampled(events: DataFrame, one: Pass, sample: float | None) -> DataFrame:
    """Return the events of some entities of a pass's grouping."""
    if sample is None:
        return events
    key = F.xxhash64(*one.group) if one.group else F.lit(0)
    return events.where(F.pmod(key, F.lit(_SAMPLES)) < int(sample * _SAMPLES))


def reached(one: Pass, clocks: tuple[int, int]) -> str:
    """SQL: whether an event can be in a window of a pass while the clock is between these two, in ms."""
    first_ms, last_ms = (clock - one.window.delay_ms for clock in clocks)
    made = [f"{ACCEPTED_MS} <= {_within_long(last_ms)}"]
    if one.window.size_ms is not None:
        made.append(f"{ACCEPTED_MS} > {_within_long(first_ms - one.window.size_ms)}")
    return " AND ".join(made)


def _within_long(time_ms: int) -> str:
    """SQL of a time; of the least long if the time is below it."""
    return f"CAST('{max(time_ms, INT64_MIN)}' AS BIGINT)"


def wanted(one: Pass) -> list[Expected]:
    """Return the expected values of the metrics of a pass."""
    if one.is_distinct:
        return [Expected(f"{one.metrics[0][1]}_distinct")]
    return [_wanted(each.metric, column) for each, column in one.metrics]


def _by_task(bounds: Sequence[tuple[int, int]]) -> str:
    cases = " ".join(f"WHEN {task} THEN {bound}L" for task, bound in bounds)
    return f"(CASE {TASK} {cases} ELSE CAST('-9223372036854775808' AS BIGINT) END)"


def _wanted(metric: MetricDefinition, column: str) -> Expected:
    argument = metric.resolved.argument
    return expected(metric.resolved.aggregator, None if argument is None else argument.type, column)


def _values(one: Pass, types: Mapping[str, Type]) -> list[Value]:
    needed: dict[str, dict[str, None]] = {}
    for each, column in one.metrics:
        argument = each.metric.resolved.argument
        states = states_of(each.metric.resolved.aggregator, None if argument is None else argument.type)
        needed.setdefault(column, {}).update(dict.fromkeys(states))
    return [Value(column, types[column], tuple(states)) for column, states in needed.items()]


def judged(answers: DataFrame, one: Pass) -> DataFrame:
    """Return the rows of `answered` with a verdict_i for each metric, null where nothing is compared."""
    return answers.selectExpr(
        "*",
        *(
            _judged(place, each, checked)
            for place, ((checked, _), each) in enumerate(zip(one.metrics, wanted(one)))
        ),
    )


def counted(judgements: DataFrame, one: Pass) -> list[MetricCheck]:
    """Return the check of each metric of a pass: its verdicts, counted."""
    figures = []
    for place in range(len(one.metrics)):
        verdict = F.col(f"{_VERDICT}{place}.{_VERDICT}")
        figures.append(F.count(verdict).alias(f"compared{place}"))
        for kind in (_WRONG, _BEYOND):
            figures.append(F.count(F.when(verdict == kind, True)).alias(f"count{place}_{kind}"))
        figures.append(F.max(f"{_VERDICT}{place}.{_DIFFERENCE}").alias(f"{_DIFFERENCE}{place}"))
    found = judgements.agg(*figures).collect()[0]
    checks = []
    for place, ((checked, _), each) in enumerate(zip(one.metrics, wanted(one))):
        wrong, beyond = found[f"count{place}_{_WRONG}"], found[f"count{place}_{_BEYOND}"]
        difference = found[f"{_DIFFERENCE}{place}"] if each.tolerance is not None else None
        examples = _examples(judgements, place, checked, each) if wrong else ()
        checks.append(
            MetricCheck(
                checked.name, found[f"compared{place}"], wrong, beyond, difference, examples=tuple(examples)
            )
        )
    return checks


def wrong_values(one: Pass) -> str:
    """SQL over the rows of `judged`: the number of wrong values in a reply."""
    verdicts = [
        f"CASE WHEN {_VERDICT}{place}.{_VERDICT} = {_WRONG} THEN 1 ELSE 0 END"
        for place in range(len(one.metrics))
    ]
    return " + ".join(verdicts)


def _judged(place: int, each: Expected, checked: Checked) -> str:
    """SQL of a struct: the verdict, and the difference of a double (null where there is none)."""
    verdict, difference = _value_verdict(place, each, checked.column)
    if checked.is_right:
        verdict = (
            f"CASE WHEN NOT ({checked.in_force}) THEN NULL WHEN {checked.is_right} IS NULL THEN {verdict} "
            f"WHEN {checked.is_right} THEN 0 ELSE {_WRONG} END"
        )
        difference = f"CASE WHEN {checked.in_force} AND {checked.is_right} IS NULL THEN {difference} END"
    return f"struct({verdict} AS {_VERDICT}, {difference} AS {_DIFFERENCE}) AS {_VERDICT}{place}"


def _value_verdict(place: int, each: Expected, got: str) -> tuple[str, str]:
    wanted, tolerance = f"{_EXPECTED}{place}", f"{_TOLERANCE}{place}"
    if each.tolerance is None:
        return f"CASE WHEN {wanted} <=> {got} THEN 0 ELSE {_WRONG} END", "CAST(NULL AS DOUBLE)"
    limit = "CAST('Infinity' AS DOUBLE)"
    beyond = f"NOT (abs({wanted}) < {limit} AND {tolerance} < {limit})"
    compared = f"({got} * {got})" if each.of_square else got
    off = f"abs({got} - {'sqrt(' + wanted + ')' if each.of_square else wanted})"
    is_near = f"{got} IS NOT NULL AND abs({compared} - {wanted}) <= {tolerance}"
    verdict = (
        f"CASE WHEN {wanted} IS NULL THEN CASE WHEN {got} IS NULL THEN 0 ELSE {_WRONG} END "
        f"WHEN {beyond} THEN {_BEYOND} WHEN {is_near} THEN 0 ELSE {_WRONG} END"
    )
    return verdict, f"CASE WHEN NOT ({beyond}) THEN {off} END"


def held_scale(metric: MetricDefinition) -> int:
    """Return the scale of results that are held as whole numbers of their last digit; 0 for all other results."""
    result = metric.resolved.result_type
    return result.scale if result.kind is Kind.DECIMAL and result.precision > DECIMAL_DIGITS else 0


def _examples(judgements: DataFrame, place: int, checked: Checked, each: Expected) -> list[Example]:
    """Return the first wrong rows."""
    scale = held_scale(checked.metric)
    wanted = f"{_EXPECTED}{place}"
    rows = (
        judgements.where(f"{_VERDICT}{place}.{_VERDICT} = {_WRONG}")
        .orderBy(NUMBER)
        .limit(EXAMPLES)
        .selectExpr(
            NUMBER,
            EVENT_ID,
            f"{'sqrt(' + wanted + ')' if each.of_square else wanted} AS e",
            f"{checked.column} AS g",
            f"{checked.is_right or 'CAST(NULL AS BOOLEAN)'} AS said",
        )
        .collect()
    )
    return [
        Example(
            row[NUMBER],
            row[EVENT_ID],
            shown(row["e"], scale),
            shown(row["g"], scale) + ("" if row["said"] is None else WRONGLY_SAID),
        )
        for row in rows
    ]
