"""From a stream's metrics to passes over its events, and from a pass to what is wrong with the recorded replies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.catalog.model import MetricDefinition
from railgun.language.ast import Aggregator, Window
from railgun.language.types import BOOLEAN, DECIMAL_DIGITS, Kind, Type
from railgun.spark.distinct import with_distinct
from railgun.spark.report import Example, MetricCheck
from railgun.spark.run_source import EVENT_ID, NUMBER, field_column, reply_column
from railgun.spark.states import Expected, expected, states_of
from railgun.spark.translate import InexpressibleError, sql_of
from railgun.spark.windows import Value, with_states

EXAMPLES = 5
_EXPECTED, _TOLERANCE, _GOT = "expected", "tolerance", "got"
_VERDICT, _DIFFERENCE = "verdict", "difference"
_WRONG, _BEYOND = 1, 2
_SAMPLES = 1_000_000


@dataclass(slots=True)
class ValueColumns:
    """The values that metrics of one partitioner aggregate: a column for each argument under each predicate."""

    texts: dict[str, str] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)

    def add(self, metric: MetricDefinition) -> str:
        """The column of a metric. Raises InexpressibleError."""
        resolved = metric.resolved
        text = "true" if resolved.argument is None else sql_of(resolved.argument)
        if resolved.predicate is not None:
            text = f"CASE WHEN {sql_of(resolved.predicate)} THEN {text} END"
        name = self.texts.setdefault(text, f"v{len(self.texts)}")
        self.types[name] = BOOLEAN if resolved.argument is None else resolved.argument.type
        return name

    def selected(self) -> list[str]:
        """SQL of all of them."""
        return [f"{text} AS {name}" for text, name in self.texts.items()]


@dataclass(slots=True)
class Pass:
    """The metrics that share a window and a grouping, each with its value column; count_distinct goes alone."""

    group: tuple[str, ...]
    window: Window
    metrics: list[tuple[MetricDefinition, str]]

    @property
    def is_distinct(self) -> bool:
        """Does it count distinct values?"""
        return self.metrics[0][0].resolved.aggregator is Aggregator.COUNT_DISTINCT


def planned(
    metrics: Sequence[MetricDefinition], values: ValueColumns
) -> tuple[list[Pass], list[tuple[MetricDefinition, str]]]:
    """The passes for metrics of one partitioner, and those that Spark cannot express, with why."""
    shared: dict[tuple[tuple[str, ...], Window], Pass] = {}
    alone: list[Pass] = []
    left: list[tuple[MetricDefinition, str]] = []
    for metric in metrics:
        resolved = metric.resolved
        try:
            column = values.add(metric)
        except InexpressibleError as error:
            left.append((metric, str(error)))
            continue
        group = tuple(field_column(name) for name in resolved.group_by)
        if resolved.aggregator is Aggregator.COUNT_DISTINCT:
            alone.append(Pass(group, resolved.window, [(metric, column)]))
            continue
        key = (group, resolved.window)
        shared.setdefault(key, Pass(group, resolved.window, [])).metrics.append((metric, column))
    return [*shared.values(), *alone], left


def check_pass(
    events: DataFrame, one: Pass, types: dict[str, Type], *, stragglers: bool, sample: float | None
) -> list[MetricCheck]:
    """Compute the metrics of a pass for every event, or every event of some entities, and compare."""
    if sample is not None:
        key = F.xxhash64(*one.group) if one.group else F.lit(0)
        events = events.where(F.pmod(key, F.lit(_SAMPLES)) < int(sample * _SAMPLES))
    carried = [NUMBER, EVENT_ID, *(reply_column(metric.name) for metric, _ in one.metrics)]
    if one.is_distinct:
        column = one.metrics[0][1]
        answered = with_distinct(events, one.group, one.window, column, carried)
        wanted = [Expected(f"{column}_distinct")]
    else:
        values = _values(one, types)
        answered = with_states(events, one.group, one.window, values, carried, stragglers=stragglers)
        wanted = [_wanted(metric, column) for metric, column in one.metrics]
    return _compare(answered, one, wanted)


def _wanted(metric: MetricDefinition, column: str) -> Expected:
    argument = metric.resolved.argument
    return expected(metric.resolved.aggregator, None if argument is None else argument.type, column)


def _values(one: Pass, types: dict[str, Type]) -> list[Value]:
    needed: dict[str, dict[str, None]] = {}
    for metric, column in one.metrics:
        argument = metric.resolved.argument
        states = states_of(metric.resolved.aggregator, None if argument is None else argument.type)
        needed.setdefault(column, {}).update(dict.fromkeys(states))
    return [Value(column, types[column], tuple(states)) for column, states in needed.items()]


def _compare(answered: DataFrame, one: Pass, wanted: Sequence[Expected]) -> list[MetricCheck]:
    made = [NUMBER, EVENT_ID]
    for place, ((metric, _), each) in enumerate(zip(one.metrics, wanted)):
        made.append(f"{each.value} AS {_EXPECTED}{place}")
        made.append(f"{reply_column(metric.name)} AS {_GOT}{place}")
        if each.tolerance is not None:
            made.append(f"{each.tolerance} AS {_TOLERANCE}{place}")
    judged = answered.selectExpr(*made).selectExpr(
        "*", *(_judged(place, each) for place, each in enumerate(wanted))
    )
    figures = [F.count("*").alias("compared")]
    for place in range(len(wanted)):
        verdict = F.col(f"{_VERDICT}{place}.{_VERDICT}")
        for kind in (_WRONG, _BEYOND):
            figures.append(F.count(F.when(verdict == kind, True)).alias(f"count{place}_{kind}"))
        figures.append(F.max(f"{_VERDICT}{place}.{_DIFFERENCE}").alias(f"{_DIFFERENCE}{place}"))
    found = judged.agg(*figures).collect()[0]
    checks = []
    for place, ((metric, _), each) in enumerate(zip(one.metrics, wanted)):
        wrong, beyond = found[f"count{place}_{_WRONG}"], found[f"count{place}_{_BEYOND}"]
        difference = found[f"{_DIFFERENCE}{place}"] if each.tolerance is not None else None
        examples = _examples(judged, place, metric, each) if wrong else ()
        checks.append(
            MetricCheck(metric.name, found["compared"], wrong, beyond, difference, examples=tuple(examples))
        )
    return checks


def _judged(place: int, each: Expected) -> str:
    """SQL of a struct: the verdict, and how far a double is off (null where that cannot be said)."""
    wanted, got, tolerance = f"{_EXPECTED}{place}", f"{_GOT}{place}", f"{_TOLERANCE}{place}"
    if each.tolerance is None:
        return (
            f"struct(CASE WHEN {wanted} <=> {got} THEN 0 ELSE {_WRONG} END AS {_VERDICT}, CAST(NULL AS DOUBLE) AS "
            f"{_DIFFERENCE}) AS {_VERDICT}{place}"
        )
    limit = "CAST('Infinity' AS DOUBLE)"
    beyond = f"NOT (abs({wanted}) < {limit} AND {tolerance} < {limit})"
    compared = f"({got} * {got})" if each.of_square else got
    off = f"abs({got} - {'sqrt(' + wanted + ')' if each.of_square else wanted})"
    is_near = f"{got} IS NOT NULL AND abs({compared} - {wanted}) <= {tolerance}"
    verdict = (
        f"CASE WHEN {wanted} IS NULL THEN CASE WHEN {got} IS NULL THEN 0 ELSE {_WRONG} END "
        f"WHEN {beyond} THEN {_BEYOND} WHEN {is_near} THEN 0 ELSE {_WRONG} END"
    )
    difference = f"CASE WHEN NOT ({beyond}) THEN {off} END"
    return f"struct({verdict} AS {_VERDICT}, {difference} AS {_DIFFERENCE}) AS {_VERDICT}{place}"


def _examples(judged: DataFrame, place: int, metric: MetricDefinition, each: Expected) -> list[Example]:
    """The first rows that are wrong."""
    scale = metric.resolved.result_type.scale if metric.resolved.result_type.kind is Kind.DECIMAL else 0
    is_wide = metric.resolved.result_type.precision > DECIMAL_DIGITS
    wanted = f"{_EXPECTED}{place}"
    rows = (
        judged.where(f"{_VERDICT}{place}.{_VERDICT} = {_WRONG}")
        .orderBy(NUMBER)
        .limit(EXAMPLES)
        .selectExpr(
            NUMBER,
            EVENT_ID,
            f"{'sqrt(' + wanted + ')' if each.of_square else wanted} AS e",
            f"{_GOT}{place} AS g",
        )
        .collect()
    )
    return [
        Example(
            row[NUMBER], row[EVENT_ID], _shown(row["e"], scale * is_wide), _shown(row["g"], scale * is_wide)
        )
        for row in rows
    ]


def _shown(value: object, scale: int) -> str:
    if value is None:
        return "null"
    return f"{value.scaleb(-scale):f}" if isinstance(value, Decimal) else str(value)
