"""Recomputes derived metrics and compares them with recorded ones.

They are recomputed from the recorded results of the metrics that they read, which other checks compare with the logs.
Every row of a run has all of them. A reply of a service has those that are in force in all tasks that answered; of a
service, only events whose ids came once are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.registrations import Registered
from railgun.language.derive import ResolvedDerived
from railgun.language.typed import Apply, Field, TypedExpression
from railgun.language.types import DECIMAL_DIGITS, Kind, Type
from railgun.plan.outputs import is_wide
from railgun.spark.validation.admission import TASK
from railgun.spark.validation.life_rules import is_warming
from railgun.spark.validation.lifetimes import ControlHistory
from railgun.spark.validation.reply_records import IN_NO_LOG
from railgun.spark.validation.reply_source import (
    ABSENT,
    PARTIAL,
    REPLY_ID,
    REPLY_MS,
    REPLY_NUMBER,
    UNFIT,
    ReplyPlace,
    ResultColumn,
)
from railgun.spark.validation.report import EXAMPLES, Example, MetricCheck, shown
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, NUMBER, field_column
from railgun.spark.validation.task_log_source import CONTROL
from railgun.spark.validation.time_range import TimeRange
from railgun.spark.validation.translate import (
    FIELD_PREFIX,
    InexpressibleError,
    quoted,
    sql_of,
    text_literal,
    type_name,
)

_LONGS = f"CAST('{-(1 << 63)}' AS DECIMAL(38,0)) AND CAST('{(1 << 63) - 1}' AS DECIMAL(38,0))"


@dataclass(frozen=True, slots=True)
class Operand:
    """A metric that a derived one reads. column, type: of its recorded results."""

    column: str
    type: Type

    @property
    def sql(self) -> str:
        """SQL of its value as an expression reads it: null if the type of the operand cannot hold it."""
        column = quoted(self.column)
        if not is_wide(self.type):
            return column
        if self.type.kind is Kind.INTEGER128:
            return f"(CASE WHEN {column} BETWEEN {_LONGS} THEN CAST({column} AS BIGINT) END)"
        scale, unscaled = self.type.scale, f"CAST({column} AS DECIMAL({DECIMAL_DIGITS},0))"
        unit = f"CAST('1E-{scale}' AS DECIMAL({max(scale, 1)},{scale}))"
        value = f"CAST({unscaled} * {unit} AS DECIMAL({DECIMAL_DIGITS},{scale}))"
        limit = f"CAST('1E{DECIMAL_DIGITS}' AS DECIMAL(38,0))"
        return f"(CASE WHEN {column} > -{limit} AND {column} < {limit} THEN {value} END)"


@dataclass(frozen=True, slots=True)
class DerivedColumn:
    """A derived metric to check.

    title: its name in the report.  column: the column of its recorded results.  operands: by name.
    is_looked_at: SQL: whether there is a result to compare.
    is_right: SQL: whether the reply is right; null where the values decide.
    """

    derived: ResolvedDerived
    title: str
    column: str
    operands: Mapping[str, Operand]
    is_looked_at: str
    is_right: str = "CAST(NULL AS BOOLEAN)"

    def value(self) -> str:
        """SQL of the result. Raises InexpressibleError."""
        sql = sql_of(_with_columns(self.derived.expression, self.operands))
        return f"CAST({sql} AS {type_name(self.derived.result_type)})"


def _with_columns(expression: TypedExpression, operands: Mapping[str, Operand]) -> TypedExpression:
    """Return the expression with operands read from columns whose names no field can have."""
    if isinstance(expression, Field) and expression.name in operands:
        return Field(expression.type, _column_of(operands[expression.name]))
    if isinstance(expression, Apply):
        arguments = tuple(_with_columns(each, operands) for each in expression.arguments)
        return Apply(expression.type, expression.operation, arguments)
    return expression


def _column_of(operand: Operand) -> str:
    return f" {operand.column}"


def compared(
    rows: DataFrame,
    columns: Sequence[DerivedColumn],
    number: str,
    event_id: str,
    place: ReplyPlace | None = None,
) -> list[MetricCheck]:
    """Compare each derived metric with its value in Spark. number, event_id: the columns that examples name."""
    left: list[MetricCheck] = []
    checked: list[tuple[DerivedColumn, str, str]] = []
    values: dict[str, str] = {}
    for place_in_list, each in enumerate(columns):
        try:
            values[f"d_{place_in_list}"] = each.value()
        except InexpressibleError as error:
            left.append(MetricCheck(each.title, not_checked=str(error)))
            continue
        checked.append((each, f"d_{place_in_list}", f"w_{place_in_list}"))
    if not checked:
        return left
    operands = {
        FIELD_PREFIX + _column_of(operand): operand.sql
        for each, _, _ in checked
        for operand in each.operands.values()
    }
    found = rows.selectExpr("*", *(f"{sql} AS {quoted(name)}" for name, sql in operands.items()))
    found = found.selectExpr("*", *(f"{sql} AS {name}" for name, sql in values.items()))
    found = found.selectExpr(
        "*",
        *(
            f"({each.is_looked_at}) AND NOT coalesce({each.is_right}, {quoted(each.column)} <=> {value}) AS {wrong}"
            for each, value, wrong in checked
        ),
    )
    figures = [
        figure
        for each, _, wrong in checked
        for figure in (F.count_if(F.expr(each.is_looked_at)), F.count_if(F.col(wrong)))
    ]
    counted = found.agg(*figures).collect()[0]
    checks = []
    for at, (each, value, wrong) in enumerate(checked):
        examples: list[Example] = []
        if counted[2 * at + 1]:
            first = found.where(wrong).orderBy(number).limit(EXAMPLES)
            for row in first.select(number, event_id, value, each.column).collect():
                where = None if place is None else place.of_number(row[0])
                examples.append(Example(row[0], row[1], shown(row[2]), shown(row[3]), where))
        checks.append(MetricCheck(each.title, counted[2 * at], counted[2 * at + 1], examples=tuple(examples)))
    return checks + left


# --- of a service


def lives_of(entry: StreamEntry) -> list[Registered]:
    """Return all derived metrics that a stream has had."""
    return [each for each in entry.registered if each.derived is not None]


def answered_columns(entry: StreamEntry) -> list[ResultColumn]:
    """Return the columns of the derived metrics in the table of replies."""
    return [
        ResultColumn.of(_recorded(each), each.name, each.derived.result_type)
        for each in lives_of(entry)
        if each.derived is not None
    ]


def _recorded(registered: Registered) -> str:
    """Return the column of recorded results. Derived metrics have another prefix: a reply of no task may have them,
    too.
    """
    return f"{'r' if registered.derived is None else 'v'}_{registered.added}"


def check_derived(
    replies: DataFrame,
    logs: Mapping[str, DataFrame],
    entry: StreamEntry,
    controls_seen: Mapping[str, ControlHistory],
    times: TimeRange,
    of_id: str,
    place: ReplyPlace,
) -> list[MetricCheck]:
    """Compare recorded replies. of_id: the column with the number of replies to an id."""
    lives = lives_of(entry)
    if not lives:
        return []
    fields = dict.fromkeys(field_column(name) for each in lives for name in _wanted(each).fields)
    alone = [f"{of_id} = 1", f"NOT {IN_NO_LOG}", times.holds(REPLY_MS)]
    rows = replies.where(" AND ".join(alone))
    for number, log in enumerate(logs.values()):
        rows = _beside(rows, log, number, fields)
    once = [f"coalesce(n_{number}, 1) = 1" for number in range(len(logs))]
    sent = " OR ".join(f"n_{number} IS NOT NULL" for number in range(len(logs)))
    rows = rows.where(" AND ".join([*once, f"({sent})"]))
    merged = [
        f"coalesce({', '.join(f'{name}_{number}' for number in range(len(logs)))}) AS {name}"
        for name in fields
    ]
    rows = rows.selectExpr("*", *merged)
    columns = [_column(each, entry, list(controls_seen.values())) for each in lives]
    return compared(rows, columns, REPLY_NUMBER, REPLY_ID, place)


def _wanted(registered: Registered) -> ResolvedDerived:
    assert registered.derived is not None
    return registered.derived


def _beside(rows: DataFrame, log: DataFrame, number: int, fields: Mapping[str, None]) -> DataFrame:
    """Rows joined with the record of their event at one partitioner: the place of the record, and its fields."""
    found = (
        log.where(f"{CONTROL} IS NULL")
        .groupBy(EVENT_ID)
        .agg(
            F.count("*").alias(f"n_{number}"),
            F.first(NUMBER).alias(f"number_{number}"),
            F.first(TASK).alias(f"task_{number}"),
            *(F.first(name).alias(f"{name}_{number}") for name in fields),
        )
    )
    return rows.join(found, rows[REPLY_ID] == found[EVENT_ID], "left").drop(EVENT_ID)


def _column(registered: Registered, entry: StreamEntry, histories: Sequence[ControlHistory]) -> DerivedColumn:
    derived, name = _wanted(registered), text_literal(registered.name)
    metrics = {
        each.name: each
        for each in entry.registered
        if each.derived is None and each.is_in_force(registered.added)
    }
    types = _types_of(histories)
    operands = {
        operand: Operand(_recorded(metrics[operand]), types[metrics[operand].added])
        for operand in derived.operands
    }
    namesakes = [each for each in entry.registered if each.name == registered.name]
    in_force = _in_force(registered, histories)
    is_absent = f"coalesce(array_contains({ABSENT}, {name}), false)"
    is_looked_at = f"({in_force})"
    if namesakes[0] is registered and all(each.derived is not None for each in namesakes):
        # A reply that names it where it is not in force is reported once for a name.
        others = " OR ".join(f"({_in_force(each, histories)})" for each in namesakes)
        is_looked_at = f"({in_force}) OR (NOT {is_absent} AND NOT ({others}))"
    listed = " OR ".join(is_warming(text_literal(each)) for each in operands) or "false"
    bounds = [f"{PARTIAL}[{text_literal(each)}]" for each in operands]
    bound = (
        f"greatest({', '.join(bounds)})" if len(bounds) > 1 else next(iter(bounds), "CAST(NULL AS BIGINT)")
    )
    column = _recorded(registered)
    is_right = (
        f"(CASE WHEN NOT ({in_force}) THEN false WHEN {is_absent} OR {UNFIT}[{text_literal(column)}] IS NOT NULL "
        f"THEN false WHEN {is_warming(name)} <> ({listed}) OR NOT ({PARTIAL}[{name}] <=> {bound}) THEN false "
        f"WHEN {listed} THEN {column} IS NULL END)"
    )
    is_one = len(namesakes) == 1
    title = registered.name if is_one else f"{registered.name} (added at {registered.added})"
    return DerivedColumn(derived, title, column, operands, is_looked_at, is_right)


def _types_of(histories: Sequence[ControlHistory]) -> dict[int, Type]:
    """Return the types of metrics' results by the place of their `add`."""
    return {
        added: life.metric.resolved.result_type for each in histories for added, life in each.lives.items()
    }


def _in_force(registered: Registered, histories: Sequence[ControlHistory]) -> str:
    """SQL: whether it is in force in all tasks that got the event."""
    made = []
    for number, history in enumerate(histories):
        spans = history.derived.get(registered.added, {})
        held = [span.holds(f"task_{number}", f"number_{number}") for span in spans.values()]
        here = " OR ".join(held) or "false"
        made.append(f"(n_{number} IS NULL OR {here})")
    return " AND ".join(made)


# --- of a run


def check_run(
    run: DataFrame, derived: Sequence[ResolvedDerived], types: Mapping[str, Type], times: TimeRange
) -> list[MetricCheck]:
    """Compare the derived metrics of a run. types: of metrics' results, by name."""
    is_looked_at = f"{EVENT_MS} IS NOT NULL AND {times.holds(EVENT_MS)}"
    columns = [
        DerivedColumn(
            each,
            each.name,
            f"r_{each.name}",
            {name: Operand(f"r_{name}", types[name]) for name in each.operands},
            is_looked_at,
        )
        for each in derived
    ]
    return compared(run, columns, NUMBER, EVENT_ID)
