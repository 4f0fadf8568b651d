"""Compiles a plan to a program: tables of nodes, updates and results for the interpreter, and layouts of rows.

A *node* of the program is one (window, filter, group-by) with the metrics that share it. A task's metrics come in
*generations*. Metrics that were registered before its first event share generation 0. A later generation is filled from
stored events, and has cells of its own until it is full, which means that it has all its events.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from railgun.aggregators import codes
from railgun.aggregators.catalogue import Cell, Recipe, recipe_of
from railgun.interpreter import layout as at
from railgun.interpreter.prepared import PREPARED_OPS_MAX
from railgun.language.ast import WindowKind
from railgun.language.resolve import ResolvedMetric
from railgun.language.types import Kind, Type
from railgun.plan.dag import build_plan
from railgun.plan.hot import HotPlan, fields_needed, text_of
from railgun.plan.layout import GroupLayout
from railgun.plan.plain import note_plain

_QUICK_OPS = {codes.COUNT, codes.SUM_DOUBLE, codes.SUM_LONG}
_QUICK_RESULTS = {
    codes.RESULT_COUNT,
    codes.RESULT_SUM_DOUBLE,
    codes.RESULT_AVG_DOUBLE,
    codes.RESULT_SUM_LONG,
    codes.RESULT_AVG_LONG,
    codes.RESULT_AVG_DECIMAL,
}
_FILL_WORDS = [at.NODE_AFTER, at.NODE_FILLED_TIME, at.NODE_FILLED_SEQ]
TIME_MIN, TIME_MAX = -(2**63), 2**63 - 1

_KINDS = {WindowKind.SLIDING: at.SLIDING, WindowKind.TUMBLING: at.TUMBLING, WindowKind.INFINITE: at.INFINITE}


@dataclass(frozen=True, slots=True)
class Generation:
    """Metrics that fill together: they were added at one time, and read the same old events.

    number: grows with each generation; 0 for the metrics from before the first event.
    metrics: in the order in which they were added.
    after_ms: only events after this time are in them.
    filled_ms, filled_seq: the (time, seq) up to which they are filled; (TIME_MAX, TIME_MAX) when they are full.
    """

    number: int
    metrics: tuple[ResolvedMetric, ...]
    after_ms: int = TIME_MIN
    filled_ms: int = TIME_MAX
    filled_seq: int = TIME_MAX


@dataclass(slots=True)
class Program:
    """A program of the interpreter. Tables are int64, with rows as in railgun.interpreter.layout.

    nodes, updates, results: the tables of nodes, of their update ops and of their result ops.
    pairs: int64[p, 3]: each (edge, group, entity column) for which events that cross the edge need rows.
    nodes_of: by generation, the numbers of its nodes, which are adjacent.
    outputs: by metric name, its index among the results.
    types: the type of each result.
    hot: the hot columns, values of an event that are computed once on arrival.
    groups: the layouts of the rows of each group-by.
    entity_columns: for each of `groups`, the hot column with the hash of its fields.
    """

    nodes: npt.NDArray[np.int64]
    updates: npt.NDArray[np.int64]
    results: npt.NDArray[np.int64]
    pairs: npt.NDArray[np.int64]
    nodes_of: dict[int, tuple[int, int]]
    outputs: dict[str, int]
    types: list[Type]
    hot: HotPlan
    groups: list[GroupLayout]
    entity_columns: list[int]


class ProgramBuilder:
    """Builds programs, one after another.

    If metrics were only added behind those of the previous program, it continues from that program: one metric more
    costs little, whatever number there is already.

    edges: by distance behind the clock, the number of the cursor.  groups: by group-by, its number. Both are read for
    each program, and may grow between two of them.
    hot: the hot columns to begin with.
    """

    def __init__(
        self,
        fields: Mapping[str, Type],
        edges: Mapping[int, int],
        groups: Mapping[tuple[str, ...], int],
        hot: HotPlan | None = None,
    ) -> None:
        self._fields = dict(fields)
        self._edges, self._group_numbers = edges, groups
        self._begin(HotPlan() if hot is None else hot)

    def build(self, generations: Sequence[Generation]) -> Program:
        """The program of all these metrics, in the order of generations."""
        if not self._goes_on(generations):
            self._begin(HotPlan(self._fields_of(generations)))
        try:
            self._add(generations[len(self._built) :])
        except BaseException:
            # The next program must not continue one that is only half built.
            self._begin(HotPlan())
            raise
        groups = sorted(self._copies_of_layouts(), key=lambda layout: layout.group)
        nodes = self._node_rows.of(self._nodes)
        self._note_fills(nodes, generations)
        return Program(
            nodes=nodes,
            updates=self._update_rows.of(self._updates),
            results=self._result_rows.of(self._results),
            pairs=_table([list(pair) for pair in self._pairs()], 3),
            nodes_of=dict(self._nodes_of),
            outputs=dict(self._outputs),
            types=list(self._types),
            hot=self._hot.copy(),
            groups=groups,
            entity_columns=[self._entities[layout.fields] for layout in groups],
        )

    def _note_fills(self, nodes: npt.NDArray[np.int64], generations: Sequence[Generation]) -> None:
        """Write into the node table of the last program how far the generations are filled now."""
        if generations:
            fills = np.array(
                [(each.after_ms, each.filled_ms, each.filled_seq) for each in generations], np.int64
            )
            ends = [self._nodes_of[each.number][1] for each in generations]
            nodes[:, _FILL_WORDS] = np.repeat(fills, np.diff(ends, prepend=0), axis=0)

    def _add(self, generations: Sequence[Generation]) -> None:
        for generation in generations:
            for metric in generation.metrics:
                self._outputs[metric.name] = len(self._types)
                self._types.append(metric.result_type)
            first = len(self._nodes)
            self._generation(generation)
            self._nodes_of[generation.number] = first, len(self._nodes)
            self._built.append(generation)

    def _begin(self, hot: HotPlan) -> None:
        self._hot = hot
        self._built: list[Generation] = []
        self._nodes: list[list[int]] = []
        self._updates: list[list[int]] = []
        self._results: list[list[int]] = []
        self._nodes_of: dict[int, tuple[int, int]] = {}
        self._outputs: dict[str, int] = {}
        self._types: list[Type] = []
        self._layouts: dict[tuple[str, ...], GroupLayout] = {}
        self._entities: dict[tuple[str, ...], int] = {}
        self._known_edges: dict[int, int] = {}
        self._crossing: dict[tuple[int, int, int], None] = {}
        self._paired = 0
        self._node_rows = _Table(at.NODE_WORDS)
        self._update_rows, self._result_rows = _Table(at.UPDATE_WORDS), _Table(at.RESULT_WORDS)

    def _goes_on(self, generations: Sequence[Generation]) -> bool:
        """Whether these begin with the generations built before, under the same numbers, and read no further fields."""
        if len(generations) < len(self._built):
            return False
        for built, requested in zip(self._built, generations):
            if built.number != requested.number or len(built.metrics) != len(requested.metrics):
                return False
            if any(one is not other for one, other in zip(built.metrics, requested.metrics)):
                return False
        if any(self._group_numbers.get(fields) != layout.group for fields, layout in self._layouts.items()):
            return False
        if any(self._edges.get(delta_ms) != edge for delta_ms, edge in self._known_edges.items()):
            return False
        known = {name for name, _ in self._hot.fields}
        return all(name in known for name, _ in self._fields_of(generations[len(self._built) :]))

    def _fields_of(self, generations: Sequence[Generation]) -> list[tuple[str, Type]]:
        return fields_needed((metric for each in generations for metric in each.metrics), self._fields)

    def _copies_of_layouts(self) -> list[GroupLayout]:
        return [replace(layout, cells=dict(layout.cells)) for layout in self._layouts.values()]

    def _generation(self, generation: Generation) -> None:
        for window in build_plan(generation.metrics).windows:
            for filtered in window.filters:
                predicate = -1 if filtered.predicate is None else self._hot.value(filtered.predicate)
                message = "" if filtered.predicate is None else text_of(filtered.predicate)
                for group in filtered.groups:
                    w = window.window
                    prefix = f"{generation.number}|{w.kind}|{w.size_ms}|{w.delay_ms}|{message}|"
                    node = [0] * at.NODE_WORDS
                    node[at.NODE_KIND] = _KINDS[w.kind]
                    node[at.NODE_DELAY], node[at.NODE_SIZE] = w.delay_ms, w.size_ms or 0
                    node[at.NODE_HEAD] = self._edge(w.delay_ms) if w.delay_ms else -1
                    node[at.NODE_TAIL] = -1 if window.tail_ms is None else self._edge(window.tail_ms)
                    node[at.NODE_FILTER] = predicate
                    self._node(node, group.fields, group.metrics, prefix, w.kind)

    def _node(
        self,
        node: list[int],
        fields: tuple[str, ...],
        metrics: Sequence[ResolvedMetric],
        prefix: str,
        kind: WindowKind,
    ) -> None:
        layout = self._layouts.get(fields)
        if layout is None:
            layout = self._layouts[fields] = GroupLayout(self._group_numbers[fields], fields)
            self._entities[fields] = self._hot.entity(fields, metrics[0].keys)
        node[at.NODE_GROUP], node[at.NODE_ENTITY] = layout.group, self._entities[fields]
        recipes = [
            recipe_of(metric.aggregator, metric.argument.type if metric.argument else None, kind)
            for metric in metrics
        ]
        named = {
            _cell_name(prefix, metric, cell): cell.words
            for metric, recipe in zip(metrics, recipes)
            for cell in recipe.cells
        }
        layout.hold_together(sum(named.values()) + int(kind is WindowKind.TUMBLING))
        if kind is WindowKind.TUMBLING:
            node[at.NODE_BUCKET] = layout.place(prefix + "bucket", 1)
        node[at.NODE_UPDATES] = len(self._updates)
        made: dict[str, int] = {}
        results: list[list[int]] = []
        before: list[list[int]] = []
        for metric, recipe in zip(metrics, recipes):
            result = self._metric(metric, recipe, layout, prefix, made)
            (before if metric.excludes_current else results).append(result)
        node[at.NODE_UPDATES_END] = len(self._updates)
        node[at.NODE_RESULTS] = len(self._results)
        node[at.NODE_RESULTS_END] = node[at.NODE_BEFORE] = len(self._results) + len(results)
        node[at.NODE_BEFORE_END] = node[at.NODE_BEFORE] + len(before)
        self._results += results + before
        made_here = self._updates[node[at.NODE_UPDATES] :]
        ops = [op[at.UPDATE_OP] for op in made_here]
        quick = kind is not WindowKind.TUMBLING and len(ops) <= PREPARED_OPS_MAX
        quick = quick and all(op[at.UPDATE_TYPE] != codes.TYPE_STRING for op in made_here)
        node[at.NODE_FIRST_CELL] = min(op[at.UPDATE_CELL] for op in made_here)
        quick = quick and {op[at.RESULT_OP] for op in (*results, *before)} <= _QUICK_RESULTS
        node[at.NODE_SIMPLE] = int(quick and set(ops) <= _QUICK_OPS)
        if node[at.NODE_SIMPLE]:
            note_plain(node, made_here, results, before)
        self._nodes.append(node)

    def _metric(
        self, metric: ResolvedMetric, recipe: Recipe, layout: GroupLayout, prefix: str, made: dict[str, int]
    ) -> list[int]:
        """Place the metric's cells that no other metric has placed. Returns the op code of its result."""
        argument = metric.argument
        column, strings = -1, -1
        if argument is not None and argument.type.kind is Kind.STRING:
            column = self._hot.string_hash(argument)
            strings = self._hot.value(argument) if recipe.needs_bytes else -1
        elif argument is not None:
            column = self._hot.value(argument)
        offsets: list[int] = []
        for cell in recipe.cells:
            name = _cell_name(prefix, metric, cell)
            offsets.append(layout.place(name, cell.words))
            if name not in made:
                made[name] = len(self._updates)
                self._updates.append([0] * at.UPDATE_WORDS)
                op = self._updates[-1]
                op[at.UPDATE_OP], op[at.UPDATE_CELL] = cell.op, offsets[-1]
                op[at.UPDATE_COUNT], op[at.UPDATE_COLUMN] = (
                    offsets[recipe.count] if recipe.count >= 0 else 0,
                    column,
                )
                op[at.UPDATE_STRING], op[at.UPDATE_TYPE] = -1, recipe.type_code
            if strings >= 0:
                self._updates[made[name]][at.UPDATE_STRING] = strings
        result = [0] * at.RESULT_WORDS
        result[at.RESULT_OP], result[at.RESULT_CELL] = recipe.result, offsets[recipe.main]
        result[at.RESULT_SQUARES] = offsets[recipe.squares] if recipe.squares >= 0 else 0
        result[at.RESULT_COUNT] = offsets[recipe.count] if recipe.count >= 0 else 0
        result[at.RESULT_TYPE] = recipe.result_type_code
        result[at.RESULT_SCALE] = argument.type.scale if argument is not None else 0
        result[at.RESULT_OUT] = self._outputs[metric.name]
        return result

    def _edge(self, delta_ms: int) -> int:
        edge = self._known_edges[delta_ms] = self._edges[delta_ms]
        return edge

    def _pairs(self) -> list[tuple[int, int, int]]:
        for node in self._nodes[self._paired :]:
            for edge in (node[at.NODE_HEAD], node[at.NODE_TAIL]):
                if edge >= 0:
                    self._crossing[edge, node[at.NODE_GROUP], node[at.NODE_ENTITY]] = None
        self._paired = len(self._nodes)
        return list(self._crossing)


def trial_program(hot: HotPlan, fields: Mapping[str, Type], metrics: Sequence[ResolvedMetric]) -> Program:
    """The program that these metrics would have, to see which columns they read.

    Its hot columns are those of the plan `hot`, then the metrics' own ones. Its edges and groups have no meaning.

    fields: the stream's fields with their types.
    """
    plan = hot.copy()
    known = {name for name, _ in plan.fields}
    plan.fields += [each for each in fields_needed(metrics, dict(fields)) if each[0] not in known]
    builder = ProgramBuilder(fields, defaultdict(int), defaultdict(int), plan)
    return builder.build([Generation(0, tuple(metrics))])


class _Table:
    """A table of int64 rows that only grows."""

    def __init__(self, words: int) -> None:
        self._rows = _table([], words)

    def of(self, rows: list[list[int]]) -> npt.NDArray[np.int64]:
        """All rows as an array of its own. The rows that were given before must not have changed."""
        known = len(self._rows)
        self._rows = np.concatenate([self._rows, _table(rows[known:], self._rows.shape[1])])
        return self._rows.copy()


def _cell_name(prefix: str, metric: ResolvedMetric, cell: Cell) -> str:
    """The name of a cell in layouts. Metrics of one node and one argument share it."""
    return f"{prefix}{'*' if metric.argument is None else text_of(metric.argument)}|{cell.op}"


def _table(rows: list[list[int]], words: int) -> npt.NDArray[np.int64]:
    """Rows as an array that has an address for kernels, even if it has no rows."""
    return np.array(rows, np.int64).reshape(-1, words) if rows else np.zeros((0, words), np.int64)
