"""The program of metrics that will be added soon, made beside the one in force: nobody waits for that."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from railgun.catalog.model import StreamDefinition
from railgun.interpreter import layout as at
from railgun.language.ast import WindowKind
from railgun.plan.program import Generation, Program, ProgramBuilder
from railgun.task.arrivals import Arrivals
from railgun.task.execution import Execution
from reservoir.columns import Kind


class Upcoming:
    """What comes behind a program, under the numbers that edges and groups will have if nothing else changes before.

    stream, before: those in force.  edges, groups: their numbers, in the end those of the program that comes.
    `fresh`: the distances of edges that are new.  `builder`, `program`, `live_columns`: once it is planned.
    `arrivals`, `execution`: once they are made; a change makes what is not.  `make_open`: makes its new hot
    columns of rows that no chunk holds yet.
    """

    def __init__(
        self,
        stream: StreamDefinition,
        before: Program,
        builder: ProgramBuilder,
        edges: Mapping[int, int],
        groups: Mapping[tuple[str, ...], int],
        next_group: int,
    ) -> None:
        """builder: the one that has built `before`."""
        self._stream, self._before, self._groups_before = stream, before, dict(groups)
        self.edges, self.groups, self.next_group = dict(edges), dict(groups), next_group
        self.builder = builder.fork(self.edges, self.groups)
        self.fresh: list[int] = []
        self.program: Program
        self.live_columns: list[int]
        self.arrivals: Arrivals | None = None
        self.execution: Execution | None = None
        self.make_open: Callable[[], None] | None = None

    def plan(self, generations: Sequence[Generation]) -> None:
        """Build the program. On any thread, with nothing held."""
        self.next_group = number_groups(self.groups, self.next_group, generations)
        self.fresh = sorted(deltas_of(generations) - self.edges.keys())
        for delta_ms in self.fresh:
            self.edges[delta_ms] = _least_free(self.edges.values())
        self.program = self.builder.build(generations)
        self.live_columns = live_columns(self.program)

    def comes_behind(self, program: Program, groups: Mapping[tuple[str, ...], int]) -> bool:
        """Is this still the program in force, and are groups numbered as they were?"""
        return program is self._before and groups == self._groups_before

    def is_of(self, stream: StreamDefinition, generations: Sequence[Generation]) -> bool:
        """Is its program of just these?"""
        return stream is self._stream and self.builder.has_built(generations)


def number_groups(
    groups: dict[tuple[str, ...], int], next_group: int, generations: Iterable[Generation]
) -> int:
    """Number the groups that are new, in place; the number that the next one gets."""
    for generation in generations:
        for metric in generation.metrics:
            if metric.group_by not in groups:
                groups[metric.group_by] = next_group
                next_group += 1
    return next_group


def deltas_of(generations: Iterable[Generation]) -> set[int]:
    """How far behind the clock the edges of these metrics are, ms."""
    found: set[int] = set()
    for generation in generations:
        for metric in generation.metrics:
            window = metric.window
            found.add(window.delay_ms)
            if window.size_ms is not None and window.kind is WindowKind.SLIDING:
                found.add(window.delay_ms + window.size_ms)
    return found - {0}


def live_columns(program: Program) -> list[int]:
    """What crossing rows are read for: everything their nodes need; strings' bytes only where rows are added."""
    delayed = program.nodes[:, at.NODE_HEAD] >= 0
    crossing = delayed | (program.nodes[:, at.NODE_TAIL] >= 0)
    found = {
        *columns_of(program, crossing, with_bytes=False),
        *columns_of(program, delayed, with_bytes=True),
    }
    return sorted(found)


def columns_of(program: Program, chosen: npt.NDArray[np.bool_], *, with_bytes: bool) -> list[int]:
    """Hot columns that the chosen nodes read, by number. chosen: bool[nodes]."""
    nodes, updates = program.nodes, program.updates
    # Updates lie in the order of their nodes.
    chosen_updates = np.repeat(chosen, nodes[:, at.NODE_UPDATES_END] - nodes[:, at.NODE_UPDATES])
    read = (
        nodes[chosen, at.NODE_ENTITY],
        nodes[chosen, at.NODE_FILTER],
        updates[chosen_updates, at.UPDATE_COLUMN],
        updates[chosen_updates, at.UPDATE_STRING],
    )
    found = set(np.concatenate(read).tolist()) - {-1}
    kinds = program.hot.columns
    return sorted(column for column in found if with_bytes or kinds[column].kind is not Kind.STRING)


def _least_free(used: Iterable[int]) -> int:
    taken = set(used)
    return next(number for number in range(len(taken) + 1) if number not in taken)
