"""Describes what metrics share, with the same plan and program that a task runs. Pure.

It explains the metrics of a definitions file, and those of a registered stream with metrics that may be added.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from railgun.aggregators import codes
from railgun.aggregators.catalogue import Cell, Recipe, recipe_of
from railgun.catalog.catalog import StreamEntry
from railgun.catalog.definitions import definitions_from_sql
from railgun.catalog.derivations import Statement, define_derived
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.explain.explanation import (
    CellPlan,
    ComputedPlan,
    DerivedPlan,
    EdgePlan,
    Explanation,
    FilterPlan,
    GroupPlan,
    HotColumnPlan,
    MetricPlan,
    PartitionerPlan,
    RowPlan,
    StreamPlan,
    WindowPlan,
    render_json,
)
from railgun.explain.wording import edge_text, group_text
from railgun.language.ast import Derivation, Window, WindowKind
from railgun.language.derive import ResolvedDerived
from railgun.language.parser import parse_statement
from railgun.language.printer import print_window
from railgun.language.resolve import ResolvedMetric
from railgun.language.typed import TypedExpression
from railgun.language.types import Type
from railgun.plan.dag import GroupNode, Plan, WindowNode, build_plan
from railgun.plan.hot import source_index
from railgun.plan.program import Generation, Program, ProgramBuilder
from railgun.state.rows.context import slot_bytes_for
from reservoir.columns import ColumnKind


def explained(entry: StreamEntry, more: Definitions) -> dict[str, Any]:
    """Return what `railgun explain --format json` says of a stream's metrics and of `more`.

    Metrics of `more` replace those of the same name.

    Raises DefinitionError if a derived metric does not fit the types that its operands have by `more`.
    """
    new = {each.name for each in more.metrics} | {each.name for each in more.derived}
    metrics = {name: add.metric for name, add in entry.metrics.items() if name not in new}
    metrics |= {each.name: each for each in more.metrics}
    derived = {name: each for name, each in entry.derived.items() if name not in new}
    derived |= {each.name: each for each in more.derived}
    stream = entry.stream
    if not new.isdisjoint(entry.names):
        types = {name: each.resolved.result_type for name, each in metrics.items()}
        derived = {each.name: each for each in _typed_again(list(derived.values()), stream, types)}
    homes = [
        Home(
            partitioner,
            stream.partitions_of(partitioner),
            [each.resolved for each in metrics.values() if each.home == partitioner],
        )
        for partitioner in stream.partitioners
    ]
    plan = explain_stream(stream, homes, list(derived.values()))
    body: dict[str, Any] = json.loads(render_json(Explanation((plan,))))
    return body


def explained_query(entry: StreamEntry, sql: str) -> dict[str, Any]:
    """Return what `explained` says of a stream with the metrics of a query or a DERIVE. Raises DefinitionError."""
    return explained(entry, definitions_from_sql(sql, entry.stream, entry.known))


def _typed_again(
    derived: Sequence[ResolvedDerived], stream: StreamDefinition, types: Mapping[str, Type]
) -> list[ResolvedDerived]:
    """Return derived metrics over metrics of these types, each after those that it reads. Raises DefinitionError."""
    # A plan does not show the table of a time zone. So one table for each name will do, whatever its release.
    zones = {zone.name: zone for each in derived for zone in each.zones}
    statements = [Statement(_derivation(each.sql), (each.name,)) for each in derived]
    try:
        return define_derived(statements, stream, types, zones.get)
    except DefinitionError as error:
        message = f"the derived metric {error.loc[0]} would no longer fit: {error.message}"
        raise DefinitionError(("sql",), message, error.hint) from error


def _derivation(sql: str) -> Derivation:
    statement = parse_statement(sql)
    assert isinstance(statement, Derivation), "a derived metric's text is a DERIVE"
    return statement


CELL_KINDS = {
    codes.COUNT: "count",
    codes.SUM_DOUBLE: "sum",
    codes.SUM_LONG: "sum",
    codes.SQUARES_DOUBLE: "sum of squares",
    codes.SQUARES_LONG: "sum of squares",
    codes.LATEST: "last two",
    codes.EARLIEST: "first",
    codes.LEAST: "least",
    codes.GREATEST: "greatest",
    codes.DEQUE_MIN: "min candidates",
    codes.DEQUE_MAX: "max candidates",
    codes.QUEUE: "values in order",
    codes.MULTISET: "counted values",
    codes.VALUE_SET: "distinct values",
}
BUCKET_KIND = "bucket"


@dataclass(frozen=True, slots=True)
class Home:
    """A partitioner of a stream, the number of its tasks, and the metrics that are computed there."""

    partitioner: str
    tasks: int
    metrics: Sequence[ResolvedMetric]


def explain_stream(
    stream: StreamDefinition, homes: Sequence[Home], derived: Sequence[ResolvedDerived] = ()
) -> StreamPlan:
    """Return the plan of a stream's tasks, partitioner by partitioner, as if all metrics were registered at once."""
    fields = stream.types
    names = [metric.name for home in homes for metric in home.metrics] + [each.name for each in derived]
    return StreamPlan(
        stream.name,
        tuple(_partitioner(fields, home) for home in homes),
        tuple(
            DerivedPlan(
                each.name,
                each.text,
                str(each.result_type),
                tuple(each.operands),
                tuple(name for name in fields if name in each.event_fields),
                tuple(name for name in names if name in each.names),
            )
            for each in derived
        ),
        tuple(ComputedPlan(each.name, each.text, str(each.type)) for each in stream.computed),
    )


def _partitioner(fields: Mapping[str, Type], home: Home) -> PartitionerPlan:
    plan = build_plan(home.metrics)
    program = _program(fields, plan, home.metrics)
    return PartitionerPlan(
        partitioner=home.partitioner,
        tasks=home.tasks,
        windows=tuple(_window(window) for window in plan.windows),
        edges=_edges(plan),
        hot_columns=_hot_columns(program, home.metrics),
        rows=tuple(
            RowPlan(
                layout.fields,
                layout.words,
                slot_bytes_for(layout.words),
                sum(metric.group_by == layout.fields for metric in home.metrics),
            )
            for layout in program.groups
        ),
        cells_unshared=sum(_cells_alone(metric) for metric in home.metrics),
    )


def _program(fields: Mapping[str, Type], plan: Plan, metrics: Sequence[ResolvedMetric]) -> Program:
    edges = {delta_ms: number for number, delta_ms in enumerate(plan.edges_ms)}
    groups = {group: number for number, group in enumerate(dict.fromkeys(each.group_by for each in metrics))}
    return ProgramBuilder(fields, edges, groups).build([Generation(0, tuple(metrics))])


def _argument(metric: ResolvedMetric) -> str:
    return "*" if metric.argument_text is None else metric.argument_text


def _computed(metric: ResolvedMetric) -> str:
    exclusion = " EXCLUDE CURRENT" if metric.excludes_current else ""
    return f"{metric.aggregator}({_argument(metric)}){exclusion}"


def _recipe(metric: ResolvedMetric) -> Recipe:
    argument = None if metric.argument is None else metric.argument.type
    return recipe_of(metric.aggregator, argument, metric.window.kind)


def _window(node: WindowNode) -> WindowPlan:
    window = node.window
    return WindowPlan(
        text=print_window(window),
        interval=interval(window),
        kind=str(window.kind),
        head_ms=node.head_ms,
        tail_ms=node.tail_ms,
        filters=tuple(
            FilterPlan(
                each.groups[0].metrics[0].predicate_text,
                tuple(_group(group, window.kind) for group in each.groups),
            )
            for each in node.filters
        ),
    )


def _group(node: GroupNode, kind: WindowKind) -> GroupPlan:
    found: dict[tuple[TypedExpression | None, int], tuple[Cell, list[ResolvedMetric]]] = {}
    for metric in node.metrics:
        for cell in _recipe(metric).cells:
            _, users = found.setdefault((metric.argument, cell.op), (cell, []))
            users.append(metric)
    cells = [
        CellPlan(
            CELL_KINDS[cell.op],
            _argument(users[0]),
            cell.words,
            cell.tree_words > 0,
            tuple(metric.name for metric in users),
        )
        for cell, users in found.values()
    ]
    if kind is WindowKind.TUMBLING:
        cells.insert(0, CellPlan(BUCKET_KIND, "*", 1, False, tuple(metric.name for metric in node.metrics)))
    return GroupPlan(
        fields=node.fields,
        metrics=tuple(
            MetricPlan(metric.name, _computed(metric), str(metric.result_type)) for metric in node.metrics
        ),
        cells=tuple(cells),
    )


def _cells_alone(metric: ResolvedMetric) -> int:
    return len(_recipe(metric).cells) + (metric.window.kind is WindowKind.TUMBLING)


def _edges(plan: Plan) -> tuple[EdgePlan, ...]:
    heads: dict[int, list[str]] = {}
    tails: dict[int, list[str]] = {}
    for node in plan.windows:
        heads.setdefault(node.head_ms, []).append(print_window(node.window))
        if node.tail_ms is not None:
            tails.setdefault(node.tail_ms, []).append(print_window(node.window))
    return tuple(
        EdgePlan(
            delta_ms,
            delta_ms in plan.edges_ms,
            tuple(heads.get(delta_ms, ())),
            tuple(tails.get(delta_ms, ())),
        )
        for delta_ms in sorted(heads.keys() | tails.keys())
    )


def _hot_columns(program: Program, metrics: Sequence[ResolvedMetric]) -> tuple[HotColumnPlan, ...]:
    groups = {program.entity_columns[n]: layout.fields for n, layout in enumerate(program.groups)}
    found = []
    for number, column in enumerate(program.hot.columns):
        kind = column.name.partition(":")[0]
        fields = groups.get(number)
        if fields is not None:
            users = tuple(metric.name for metric in metrics if metric.group_by == fields)
            found.append(HotColumnPlan(column.name, kind, group_text(fields), ("entity",), users))
            continue
        expression = program.hot.expressions[_root(program, number)]
        is_bytes = column.kind is ColumnKind.STRING
        arguments = {
            metric.name: _argument(metric)
            for metric in metrics
            if metric.argument == expression and (_recipe(metric).needs_bytes or not is_bytes)
        }
        predicates = {
            metric.name: metric.predicate_text or "" for metric in metrics if metric.predicate == expression
        }
        used = {"argument": arguments, "predicate": predicates}
        text = next(iter((arguments | predicates).values()))
        roles = tuple(role for role, names in used.items() if names)
        found.append(HotColumnPlan(column.name, kind, text, roles, tuple(arguments | predicates)))
    return tuple(found)


def _root(program: Program, column: int) -> int:
    """Return the expression whose values or hashes a column holds."""
    root = program.hot.roots.get(column)
    return source_index(program.hot.hashes[column].sources[0], 0) if root is None else root


def interval(window: Window) -> str:
    """Return the event times that a window holds: `(T − 7d, T]`, or `[B, T]` with B as the beginning of the bucket."""
    end = edge_text(window.delay_ms)
    if window.kind is WindowKind.INFINITE or window.size_ms is None:
        return f"(−∞, {end}]"
    if window.kind is WindowKind.TUMBLING:
        return f"[B, {end}]"
    return f"({edge_text(window.delay_ms + window.size_ms)}, {end}]"
