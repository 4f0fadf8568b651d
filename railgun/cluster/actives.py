"""Chooses which copy of each task answers first, and in which order the others are preferred, for `assignor.py`."""

import heapq
from collections.abc import Mapping, Sequence
from itertools import chain

from railgun.cluster.copies import CopyName
from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.least import try_least


class Actives:
    """Chooses the active copy of each task among its copies, so that no unit has more of them than need be.

    A task may have no copies: all nodes that are left may have lost theirs.
    """

    def __init__(
        self, nodes: Sequence[ClusterNode], tasks: Sequence[TaskCopies], copies: Sequence[Sequence[CopyName]]
    ) -> None:
        self._tasks, self._copies = tasks, copies
        self._unsteady = {CopyName(node.name, unit) for node in nodes for unit in node.unsteady}
        # A node that cannot make copies may have none at all.
        units = set(chain.from_iterable(copies))
        try_least(-(-sum(map(bool, copies)) // max(1, len(units))), self._is_chosen_with)

    def order(self, task: int) -> list[CopyName]:
        """Return the copies of a task in order of preference."""
        active = self._active.get(task)
        return sorted(
            self._copies[task],
            key=lambda copy: (copy != active, *self._preference(task, copy), self._load(copy), copy),
        )

    def _is_chosen_with(self, most: int) -> bool:
        """Choose the active copies, if that is possible with no more than this many on a unit."""
        self._most = most
        self._active: dict[int, CopyName] = {}
        self._of_unit: dict[CopyName, set[int]] = {copy: set() for copy in chain.from_iterable(self._copies)}
        for task, copies in enumerate(self._copies):
            first = next(iter(self._tasks[task].present), None)
            if (
                first is not None
                and first in copies
                and first not in self._unsteady
                and self._load(first) < self._most
            ):
                self._set(task, first)
        return all(
            task in self._active or self._place(task) for task, copies in enumerate(self._copies) if copies
        )

    def _place(self, task: int) -> bool:
        """Make one of a task's copies active, by a chain of tasks that change their active copy.

        It is the chain that moves the fewest tasks from where they were active; among these the shortest.
        """
        came: dict[CopyName, tuple[CopyName, int] | None] = {}
        # The number decides between ways to a copy that are equal otherwise.
        heap: list[tuple[int, int, CopyName, int, tuple[CopyName, int] | None]] = []
        for rank, copy in enumerate(self._by_preference(task)):
            heapq.heappush(heap, (0, rank, copy, len(heap), None))
        pushed = len(heap)
        while heap:
            cost, rank, copy, _, step = heapq.heappop(heap)
            if copy in came:
                continue
            came[copy] = step
            if self._load(copy) < self._most:
                self._pass_on(task, copy, came)
                return True
            for other in sorted(self._of_unit[copy]):
                dearer = cost + (copy in self._tasks[other].present[:1])
                for further in self._copies[other]:
                    if further in came:
                        continue
                    pushed += 1
                    further_rank = rank + len(self._copies[other])
                    heapq.heappush(heap, (dearer, further_rank, further, pushed, (copy, other)))
        return False

    def _pass_on(
        self, task: int, last: CopyName, came: Mapping[CopyName, tuple[CopyName, int] | None]
    ) -> None:
        copy = last
        while (step := came[copy]) is not None:
            copy_before, moved = step
            self._of_unit[copy_before].discard(moved)
            self._set(moved, copy)
            copy = copy_before
        self._set(task, copy)

    def _by_preference(self, task: int) -> list[CopyName]:
        return sorted(
            self._copies[task], key=lambda copy: (*self._preference(task, copy), self._load(copy), copy)
        )

    def _preference(self, task: int, copy: CopyName) -> tuple[bool, int, int]:
        """Return the sort key of a copy: first one that was active, then a replica, one with data, one without any.

        Copies with data are ordered by how much they have to catch up. One on an unsteady unit comes last.
        """
        present = list(self._tasks[task].present)
        nodes = [each.node for each in present]
        rank = nodes.index(copy.node) if copy.node in nodes else len(nodes)
        lag = self._tasks[task].lag.get(copy.node)
        return copy in self._unsteady, rank, 1 << 62 if lag is None else lag

    def _load(self, copy: CopyName) -> int:
        return len(self._of_unit[copy])

    def _set(self, task: int, copy: CopyName) -> None:
        self._active[task] = copy
        self._of_unit[copy].add(task)
