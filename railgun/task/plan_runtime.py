"""The parts of a task that depend on its set of metrics: arrivals, execution, edges, column sets and layouts.

They are made from the stream's definition and the metrics in force. When a control record changes these,
`TaskProcessor` has them made again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from railgun.catalog.model import StreamDefinition
from railgun.interpreter import layout as at
from railgun.language.ast import WindowKind
from railgun.language.program import ProgramCompiler
from railgun.language.resolve import ResolvedMetric
from railgun.plan.layout import GroupLayout
from railgun.plan.program import TIME_MIN, Generation, Program, ProgramBuilder, trial_program
from railgun.state.paged.pool import PagePool
from railgun.state.rows.table import EntityTable
from railgun.task.arrivals import Arrivals
from railgun.task.computed_columns import ColumnComputer
from railgun.task.execution import Execution
from railgun.task.metrics import Fill
from railgun.task.retirement import (
    HeldCell,
    cell_kinds,
    is_retired,
    retire,
    retired_cells,
    without_retired,
)
from railgun.wire.schema import Schema
from reservoir.columns import ColumnKind
from reservoir.cursors.held_frame import Ahead
from reservoir.layout import FRAMES
from reservoir.reservoir import Reservoir

LIVE_SET = 0
FIRST_FILL_SET = 1


def subtract_clamped(clock_ms: int, delta_ms: int) -> int:
    """Return clock_ms - delta_ms, but not less than TIME_MIN."""
    return max(TIME_MIN, clock_ms - delta_ms)


class PlanRuntime:
    """Builds programs over one task's reservoir and state, and keeps the numbers that stay the same in later
    programs.
    """

    def __init__(
        self,
        reservoir: Reservoir,
        table: EntityTable,
        pool: PagePool,
        column_computer: ColumnComputer,
        key: bytes,
    ) -> None:
        self._reservoir, self._table, self._pool = reservoir, table, pool
        self._column_computer, self.key = column_computer, key
        self._compiler = ProgramCompiler()
        self.edges: dict[int, int] = {}
        self.group_numbers: dict[tuple[str, ...], int] = {}
        self.next_group = 0
        self.layouts: dict[int, GroupLayout] = {}
        self.program: Program
        self._builder: ProgramBuilder
        self._built_for: StreamDefinition | None = None
        self.arrivals: Arrivals
        self.execution: Execution

    def build(
        self,
        stream: StreamDefinition,
        schemas: Sequence[Schema],
        generations: Sequence[Generation],
        clock_ms: int,
    ) -> None:
        """Make all parts again. The caller must have sealed the reservoir with the floor in force."""
        self._number_groups(generations)
        fresh = self._set_edges(generations)
        if stream is not self._built_for:
            self._builder = ProgramBuilder(stream.types, self.edges, self.group_numbers)
            self._built_for = stream
        before = getattr(self, "program", None)
        program = self.program = self._builder.build(generations)
        known = (self.arrivals.schemas, self.arrivals.hot) if hasattr(self, "arrivals") else None
        if known != (schemas, program.hot):
            self._column_computer.follow(schemas, program.hot, self.key)
            self.arrivals = Arrivals(schemas, program.hot, self.key, self._compiler.compile)
        self._reservoir.set_hot(program.hot.columns)
        self._reservoir.set_columns(LIVE_SET, _live_columns(program))
        for delta_ms in fresh:
            self._reservoir.seek(self.edges[delta_ms], subtract_clamped(clock_ms, delta_ms))
        self._set_layouts(program, before)
        frames = self._reservoir.words[FRAMES]
        executed = getattr(self, "execution", None)
        self.execution = Execution(program, self._table, self._pool, frames, executed)
        self.execution.bind_changelog(self._reservoir.changelog)

    def prefetch(
        self, stream: StreamDefinition, metrics: Sequence[ResolvedMetric], clock_ms: int
    ) -> list[Ahead]:
        """Decode the chunks that metrics which will be added soon need first. Returns handles that the caller may
        wait for.

        These are the chunks at which their new edges begin. They are also the chunks at the present edges, with the
        new hot columns.
        """
        for delta_ms in sorted(_deltas(metrics) - self.edges.keys()):
            self._reservoir.prefetch(LIVE_SET, subtract_clamped(clock_ms, delta_ms))
        trial = trial_program(self.program.hot, stream.types, metrics)
        columns = trial.hot.columns
        if columns != self.program.hot.columns:
            self._column_computer.follow(self.arrivals.schemas, trial.hot, self.key)
        needed = [columns[column] for column in _live_columns(trial)]
        return self._reservoir.prefetch_columns(LIVE_SET, needed, columns)

    def release_bounds(self, clock_ms: int) -> None:
        """Remove the bound of full nodes whose whole window is after it, so that they need not compare with it.

        A node is full once its fill has ended. The bound is the time at or before which its fill had no events.
        """
        nodes = self.program.nodes
        bound = (nodes[:, at.NODE_KIND] == at.SLIDING) & (nodes[:, at.NODE_FILLED_TIME] == at.FULL)
        for n in np.flatnonzero(bound & (nodes[:, at.NODE_AFTER] != at.NO_BOUND)).tolist():
            tail_ms = int(nodes[n, at.NODE_DELAY] + nodes[n, at.NODE_SIZE])
            if subtract_clamped(clock_ms, tail_ms) >= nodes[n, at.NODE_AFTER]:
                nodes[n, at.NODE_AFTER] = at.NO_BOUND

    def fill_columns(self, generations: Iterable[int]) -> list[int]:
        """Return the numbers of the hot columns that the nodes of generations read."""
        chosen = np.zeros(len(self.program.nodes), np.bool_)
        for generation in generations:
            chosen[slice(*self.program.nodes_of[generation])] = True
        return _columns_of(self.program, chosen, with_bytes=True)

    def mark_filled(self, fills: Mapping[int, Fill]) -> None:
        """Tell the program how far the fill of each generation has come."""
        for generation, fill in fills.items():
            nodes = self.program.nodes[slice(*self.program.nodes_of[generation])]
            nodes[:, at.NODE_FILLED_TIME] = fill.filled_ms
            nodes[:, at.NODE_FILLED_SEQ] = fill.filled_seq

    def seek(self, clock_ms: int) -> None:
        """Move every edge to its place at this clock, after a recovery."""
        for delta_ms, edge in self.edges.items():
            self._reservoir.seek(edge, subtract_clamped(clock_ms, delta_ms))

    def restore(
        self, groups: Mapping[str, int], next_group: int, cells: Mapping[str, Sequence[tuple[str, int, int]]]
    ) -> None:
        """Restore the group numbers and layouts of a checkpoint."""
        self.group_numbers = {_fields(name): number for name, number in groups.items()}
        self.next_group, self._built_for = next_group, None
        for fields, number in self.group_numbers.items():
            found = cells.get(",".join(fields))
            if found is None:
                continue
            layout = GroupLayout(number, fields)
            layout.version = self._table.layouts()[number].version
            layout.cells = {name: (offset, words) for name, offset, words in found}
            layout.words = self._table.layouts()[number].cells
            self.layouts[number] = layout

    def groups_to_json(self) -> dict[str, int]:
        """Return the group numbers for a checkpoint."""
        return {",".join(fields): number for fields, number in self.group_numbers.items()}

    def cells_to_json(self) -> dict[str, list[tuple[str, int, int]]]:
        """Return the layouts for a checkpoint."""
        return {
            ",".join(layout.fields): [(name, offset, words) for name, (offset, words) in layout.cells.items()]
            for layout in self.layouts.values()
        }

    def _number_groups(self, generations: Sequence[Generation]) -> None:
        for generation in generations:
            for metric in generation.metrics:
                if metric.group_by not in self.group_numbers:
                    self.group_numbers[metric.group_by] = self.next_group
                    self.next_group += 1

    def _set_edges(self, generations: Sequence[Generation]) -> list[int]:
        """Remove edges that no metric needs any more, and add new ones. Returns the new ones, which the caller has to
        seek.
        """
        needed = _deltas(metric for generation in generations for metric in generation.metrics)
        for delta_ms in set(self.edges) - needed:
            self._reservoir.remove_edge(self.edges.pop(delta_ms))
        fresh = sorted(needed - set(self.edges))
        for delta_ms in fresh:
            self.edges[delta_ms] = self._reservoir.add_edge(delta_ms, LIVE_SET)
        return fresh

    def retired(self) -> dict[int, list[HeldCell]]:
        """Return the cells that wait until the sweep has emptied them in every row, by group."""
        found = {number: retired_cells(layout) for number, layout in self.layouts.items()}
        return {number: cells for number, cells in found.items() if cells}

    def retired_names(self) -> set[tuple[int, str]]:
        """Return (group, name) of the cells that wait until the sweep has emptied them in every row."""
        return {
            (number, name)
            for number, layout in self.layouts.items()
            for name in layout.cells
            if is_retired(name)
        }

    def release_retired(self, names: Collection[tuple[int, str]]) -> None:
        """Drop these retired cells from the layouts. They must be empty in every row. To be called between batches
        only.
        """
        for number, layout in list(self.layouts.items()):
            own = {name for group, name in names if group == number} & layout.cells.keys()
            if not own:
                continue
            left = without_retired(layout, own)
            if left.cells:
                self._set_layout(left, left.moves_from(layout, {name: name for name in left.cells}))
            else:
                self._drop_group(number)

    def _set_layouts(self, program: Program, before: Program | None) -> None:
        """Replace the layouts of the previous program by those of a program."""
        needed = {layout.group: layout for layout in program.groups}
        for number in self.layouts.keys() - needed.keys():
            needed[number] = GroupLayout(number, self.layouts[number].fields)
        lost = any(
            not layout.cells.keys() <= needed[number].cells.keys() for number, layout in self.layouts.items()
        )
        kinds = cell_kinds(before) if lost and before is not None else {}
        for number, layout in needed.items():
            old = self.layouts.get(number)
            has_pages = self._pool.has_made_pages
            moves = [] if old is None else retire(old, layout, kinds, has_pages=has_pages)
            if old is not None and old.cells == layout.cells:
                layout.version = old.version
                self.layouts[number] = layout
            elif layout.cells:
                layout.version = 1 if old is None else old.version + 1
                self._set_layout(layout, moves)
            else:
                self._drop_group(number)

    def _set_layout(self, layout: GroupLayout, moves: Sequence[tuple[int, int, int]]) -> None:
        self._table.set_layout(layout.group, layout.version, layout.words, moves)
        self.layouts[layout.group] = layout

    def _drop_group(self, number: int) -> None:
        self._table.drop_group(number)
        del self.group_numbers[self.layouts.pop(number).fields]


def _deltas(metrics: Iterable[ResolvedMetric]) -> set[int]:
    """Return how far behind the clock the edges of these metrics are, in ms."""
    found: set[int] = set()
    for metric in metrics:
        window = metric.window
        found.add(window.delay_ms)
        if window.size_ms is not None and window.kind is WindowKind.SLIDING:
            found.add(window.delay_ms + window.size_ms)
    return found - {0}


def _live_columns(program: Program) -> list[int]:
    """Return the columns that are read of crossing rows: all that their nodes need. Bytes of strings are read only
    for rows that are added.
    """
    delayed = program.nodes[:, at.NODE_HEAD] >= 0
    crossing = delayed | (program.nodes[:, at.NODE_TAIL] >= 0)
    found = {
        *_columns_of(program, crossing, with_bytes=False),
        *_columns_of(program, delayed, with_bytes=True),
    }
    return sorted(found)


def _columns_of(program: Program, chosen: npt.NDArray[np.bool_], *, with_bytes: bool) -> list[int]:
    """Return the numbers of the hot columns that the chosen nodes read. chosen: bool[nodes]."""
    nodes, updates = program.nodes, program.updates
    # The updates have the same order as their nodes.
    chosen_updates = np.repeat(chosen, nodes[:, at.NODE_UPDATES_END] - nodes[:, at.NODE_UPDATES])
    read = (
        nodes[chosen, at.NODE_ENTITY],
        nodes[chosen, at.NODE_FILTER],
        updates[chosen_updates, at.UPDATE_COLUMN],
        updates[chosen_updates, at.UPDATE_STRING],
    )
    found = set(np.concatenate(read).tolist()) - {-1}
    kinds = program.hot.columns
    return sorted(column for column in found if with_bytes or kinds[column].kind is not ColumnKind.STRING)


def _fields(name: str) -> tuple[str, ...]:
    return tuple(name.split(",")) if name else ()
