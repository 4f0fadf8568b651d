"""The moving parts of a task under one set of metrics: arrivals, execution, edges, column sets, layouts.

Everything here is made from the stream's definition and the metrics in force; a control record makes it anew.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from railgun.catalog.model import StreamDefinition
from railgun.interpreter import layout as at
from railgun.language.program import ProgramCompiler
from railgun.plan.hot import HotPlan
from railgun.plan.layout import GroupLayout
from railgun.plan.program import TIME_MIN, Generation, Program, ProgramBuilder
from railgun.state.paged.pool import PagePool
from railgun.state.rows.table import EntityTable
from railgun.task.arrivals import Arrivals
from railgun.task.deriver import Deriver
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
from railgun.task.upcoming import Upcoming, columns_of, deltas_of, live_columns, number_groups
from railgun.wire.schema import Schema
from reservoir.layout import FRAMES
from reservoir.prefetch import Ahead
from reservoir.reservoir import Reservoir

LIVE_SET = 0
FIRST_FILL_SET = 1


def less(clock_ms: int, delta_ms: int) -> int:
    """clock - delta, held at the least int64."""
    return max(TIME_MIN, clock_ms - delta_ms)


class Machine:
    """Builds programs over one task's reservoir and state, and keeps the numbers that outlive a program."""

    def __init__(
        self, reservoir: Reservoir, table: EntityTable, pool: PagePool, deriver: Deriver, key: bytes
    ) -> None:
        self._reservoir, self._table, self._pool = reservoir, table, pool
        self._deriver, self._key = deriver, key
        self._compiler = ProgramCompiler()
        self.edges: dict[int, int] = {}
        self.group_numbers: dict[tuple[str, ...], int] = {}
        self.next_group = 0
        self.layouts: dict[int, GroupLayout] = {}
        self.program: Program
        self._builder: ProgramBuilder
        self._built_for: StreamDefinition | None = None
        self.arrivals: Arrivals
        self._schemas: Sequence[Schema] = ()
        self._upcoming: Upcoming | None = None
        self.execution: Execution

    def build(
        self,
        stream: StreamDefinition,
        schemas: Sequence[Schema],
        generations: Sequence[Generation],
        clock_ms: int,
    ) -> None:
        """Make everything anew. The reservoir has been sealed with the floor in force."""
        before = getattr(self, "program", None)
        upcoming, self._upcoming = self._upcoming, None
        is_made = upcoming is not None and self._take_over(upcoming, stream, generations)
        if upcoming is not None and is_made:
            program, fresh, columns = upcoming.program, upcoming.fresh, upcoming.live_columns
        else:
            self.next_group = number_groups(self.group_numbers, self.next_group, generations)
            fresh = self._set_edges(generations)
            if stream is not self._built_for:
                self._builder = ProgramBuilder(stream.types, self.edges, self.group_numbers)
                self._built_for = stream
            program = self._builder.build(generations)
            columns = live_columns(program)
        self.program = program
        if not hasattr(self, "arrivals") or (self._schemas, self.arrivals.hot) != (schemas, program.hot):
            self._deriver.follow(schemas, program.hot, self._key)
            self.arrivals, self._schemas = self._arrivals_for(schemas, program.hot, upcoming), schemas
        self._reservoir.set_hot(program.hot.columns)
        self._reservoir.set_columns(LIVE_SET, columns)
        for delta_ms in fresh:
            self._reservoir.seek(self.edges[delta_ms], less(clock_ms, delta_ms))
        self._set_layouts(program, before)
        made = upcoming.execution if upcoming is not None and is_made else None
        execution = made or Execution(program, self._table, self._pool)
        execution.follow(getattr(self, "execution", None), self._reservoir.words[FRAMES])
        execution.bind_changelog(self._reservoir.changelog)
        self.execution = execution

    def upcoming(self, stream: StreamDefinition) -> Upcoming:
        """What may come behind the program in force. Between batches, as what follows where nothing else is said."""
        return Upcoming(stream, self.program, self._builder, self.edges, self.group_numbers, self.next_group)

    def read_ahead(self, upcoming: Upcoming, clock_ms: int) -> list[Ahead]:
        """Have read ahead what a program that is planned will need: the chunks that its new edges meet first, and its
        new hot columns in all that edges are in. What may be waited for."""
        if not upcoming.comes_behind(self.program, self.group_numbers):
            # Another change came between: what is asked for now would be of a program that nobody runs.
            return []
        for delta_ms in upcoming.fresh:
            self._reservoir.foresee(LIVE_SET, less(clock_ms, delta_ms))
        hot = upcoming.program.hot
        if hot.columns != self.program.hot.columns:
            self._deriver.follow(self._schemas, hot, self._key)
        upcoming.make_open = self._reservoir.foresee_open(hot.columns)
        wanted = [hot.columns[column] for column in upcoming.live_columns]
        return self._reservoir.foresee_columns(LIVE_SET, wanted, hot.columns)

    def prepare(self, upcoming: Upcoming) -> None:
        """Make the moving parts of a program that is planned, for the next change. On any thread, with nothing held."""
        schemas, hot = self._schemas, upcoming.program.hot
        if hot != self.arrivals.hot:
            upcoming.arrivals = Arrivals(schemas, hot, self._key, self._compiler.compile)
        upcoming.execution = Execution(upcoming.program, self._table, self._pool)
        if upcoming.make_open is not None:
            upcoming.make_open()
        self._upcoming = upcoming

    def _take_over(
        self, upcoming: Upcoming, stream: StreamDefinition, generations: Sequence[Generation]
    ) -> bool:
        """Bring numbers and builder of a program that was made beside this one into force, if it is what is wanted."""
        if not (
            upcoming.comes_behind(self.program, self.group_numbers) and upcoming.is_of(stream, generations)
        ):
            return False
        self.group_numbers.update(upcoming.groups)
        self.next_group = upcoming.next_group
        for delta_ms in upcoming.fresh:
            self.edges[delta_ms] = self._reservoir.add_edge(delta_ms, LIVE_SET)
        self._builder = upcoming.builder
        self._builder.number_by(self.edges, self.group_numbers)
        self._builder.note_fills(upcoming.program.nodes, generations)
        assert self.edges == upcoming.edges, "edges get the least numbers that are free"
        return True

    def _arrivals_for(self, schemas: Sequence[Schema], hot: HotPlan, upcoming: Upcoming | None) -> Arrivals:
        """What was made for just this plan, if it was."""
        made = None if upcoming is None else upcoming.arrivals
        if made is not None and (made.schemas, made.hot) == (schemas, hot):
            return made
        return Arrivals(schemas, hot, self._key, self._compiler.compile)

    def release_bounds(self, clock_ms: int) -> None:
        """Full nodes whose window has left the bound of their fill behind need not look at it any more."""
        nodes = self.program.nodes
        bound = (nodes[:, at.NODE_KIND] == at.SLIDING) & (nodes[:, at.NODE_FILLED_TIME] == at.FULL)
        for n in np.flatnonzero(bound & (nodes[:, at.NODE_AFTER] != at.NO_BOUND)).tolist():
            tail_ms = int(nodes[n, at.NODE_DELAY] + nodes[n, at.NODE_SIZE])
            if less(clock_ms, tail_ms) >= nodes[n, at.NODE_AFTER]:
                nodes[n, at.NODE_AFTER] = at.NO_BOUND

    def fill_columns(self, generations: Iterable[int]) -> list[int]:
        """The hot columns, by number, that the nodes of generations read."""
        chosen = np.zeros(len(self.program.nodes), np.bool_)
        for generation in generations:
            chosen[slice(*self.program.nodes_of[generation])] = True
        return columns_of(self.program, chosen, with_bytes=True)

    def mark_filled(self, fills: Mapping[int, Fill]) -> None:
        """Tell the program how far fills have come, by generation."""
        for generation, fill in fills.items():
            nodes = self.program.nodes[slice(*self.program.nodes_of[generation])]
            nodes[:, at.NODE_FILLED_TIME] = fill.filled_ms
            nodes[:, at.NODE_FILLED_SEQ] = fill.filled_seq

    def seek(self, clock_ms: int) -> None:
        """Put every edge where the clock says (after a recovery)."""
        for delta_ms, edge in self.edges.items():
            self._reservoir.seek(edge, less(clock_ms, delta_ms))

    def restore(
        self, groups: Mapping[str, int], next_group: int, cells: Mapping[str, Sequence[tuple[str, int, int]]]
    ) -> None:
        """Take over the numbers and layouts of a checkpoint."""
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
        """Group numbers for a checkpoint."""
        return {",".join(fields): number for fields, number in self.group_numbers.items()}

    def cells_to_json(self) -> dict[str, list[tuple[str, int, int]]]:
        """Layouts for a checkpoint."""
        return {
            ",".join(layout.fields): [(name, offset, words) for name, (offset, words) in layout.cells.items()]
            for layout in self.layouts.values()
        }

    def _set_edges(self, generations: Sequence[Generation]) -> list[int]:
        """Remove edges that nobody needs any more, add those that are new; the new ones are still to be sought."""
        wanted = deltas_of(generations)
        for delta_ms in set(self.edges) - wanted:
            self._reservoir.remove_edge(self.edges.pop(delta_ms))
        fresh = sorted(wanted - set(self.edges))
        for delta_ms in fresh:
            self.edges[delta_ms] = self._reservoir.add_edge(delta_ms, LIVE_SET)
        return fresh

    def retired(self) -> dict[int, list[HeldCell]]:
        """By group, the cells that wait for the sweep to empty them in every row."""
        found = {number: retired_cells(layout) for number, layout in self.layouts.items()}
        return {number: cells for number, cells in found.items() if cells}

    def retired_names(self) -> set[tuple[int, str]]:
        """(group, name) of the cells that wait for the sweep."""
        return {
            (number, name)
            for number, layout in self.layouts.items()
            for name in layout.cells
            if is_retired(name)
        }

    def release_retired(self, names: Collection[tuple[int, str]]) -> None:
        """These retired cells are empty in every row: go on without them. Between batches only."""
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
        """Bring the program's layouts into force, in place of those of the program before."""
        wanted = {layout.group: layout for layout in program.groups}
        for number in self.layouts.keys() - wanted.keys():
            wanted[number] = GroupLayout(number, self.layouts[number].fields)
        lost = any(
            not layout.cells.keys() <= wanted[number].cells.keys() for number, layout in self.layouts.items()
        )
        kinds = cell_kinds(before) if lost and before is not None else {}
        for number, layout in wanted.items():
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


def _fields(name: str) -> tuple[str, ...]:
    return tuple(name.split(",")) if name else ()
