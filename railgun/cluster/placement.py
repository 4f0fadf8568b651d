"""Places copies of tasks on nodes. What it must hold, and what it prefers, is in `assignor.py`.

A placement is a flow from tasks through racks to nodes. The copies that may stay are a cheapest flow of its size. Each
further copy is placed along a cheapest path, which may move copies that are placed already. So no other placement keeps
more copies.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.least import try_least

_Entry = tuple[float, bytes, int]


class Placement:
    """Places copies on nodes. Tasks, nodes and racks are numbers here.

    unit_copies: the greatest number of copies on one unit; the least possible.
    of_task: the nodes of each task.  on_node: the tasks of each node.
    """

    def __init__(self, nodes: Sequence[ClusterNode], tasks: Sequence[TaskCopies], copies: int) -> None:
        self.nodes, self.tasks = nodes, tasks
        names = sorted({_rack(node) for node in nodes})
        self._racks = [names.index(_rack(node)) for node in nodes]
        self._copies = min(copies, len(nodes))
        self._per_rack = self._most_on_a_rack(set())
        self.of_task: list[list[int]] = [[] for _ in tasks]
        self.on_node: list[set[int]] = [set() for _ in nodes]
        number = {node.name: index for index, node in enumerate(nodes)}
        self._present = [
            list(dict.fromkeys(number[copy.node] for copy in task.present if copy.node in number))
            for task in tasks
        ]
        self._barred = [{number[name] for name in task.barred if name in number} for task in tasks]
        self._per_rack_of = {
            task: self._most_on_a_rack(barred) for task, barred in enumerate(self._barred) if barred
        }
        self._needed = [min(copies, len(nodes) - len(barred)) for barred in self._barred]
        self.unit_copies = self._least_maximum(len(names))
        self._with_data = [
            sorted((lag, number[name]) for name, lag in task.lag.items() if name in number) for task in tasks
        ]

    def place(self) -> None:
        """Place all copies. If nodes are barred, units may have to get more than seemed possible at first."""
        try_least(self.unit_copies, self._is_placed_with)

    def _is_placed_with(self, unit_copies: int) -> bool:
        """Place all copies again, if that is possible with no more than this many on a unit."""
        self.unit_copies = unit_copies
        self.of_task = [[] for _ in self.tasks]
        self.on_node = [set() for _ in self.nodes]
        self._keep()
        return self._fill()

    def _keep(self) -> None:
        """Let copies stay where they are, as far as there is room: first those of tasks that have data nowhere else,
        and of these first the ones that are preferred.
        """
        ranked = sorted(
            (any(other not in present for _, other in self._with_data[task]), rank, task, node)
            for task, present in enumerate(self._present)
            for rank, node in enumerate(present)
        )
        for _, _, task, node in ranked:
            self._put_if_possible(task, node)

    def _fill(self) -> bool:
        """Place the copies that are lacking: where there is data, then where the least is placed. Returns whether that
        is possible with so few copies on a unit.
        """
        by_lag = sorted((lag, task, node) for task, each in enumerate(self._with_data) for lag, node in each)
        for _, task, node in by_lag:
            self._put_if_possible(task, node)
        spare = [self._entry(node) for node in range(len(self.nodes)) if self._has_room(node)]
        heapq.heapify(spare)
        for task in range(len(self.tasks)):
            while self._lacks(task):
                if not self._place(task, spare):
                    if self._fits_somewhere(task):
                        return False
                    break
        return True

    def _place(self, task: int, spare: list[_Entry]) -> bool:
        """Place one more copy of a task on a node with room, or else make room by moving copies of other tasks. Returns
        whether that is possible. It is if no node is barred.
        """
        passed, is_placed = [], True
        while spare:
            entry = heapq.heappop(spare)
            node = entry[-1]
            if not self._has_room(node):
                continue
            if entry != self._entry(node):
                heapq.heappush(spare, self._entry(node))
            elif self._fits(task, node):
                self._put(task, node)
                passed.append(node)
                break
            else:
                passed.append(node)
        else:
            is_placed = self._shift(task)
        for node in passed:
            heapq.heappush(spare, self._entry(node))
        return is_placed

    def _shift(self, task: int) -> bool:
        """Place a copy by moving others, of which as few as possible are where they were (a shortest path). Returns
        whether that is possible.
        """
        before: dict[int, tuple[int, int]] = {}
        reached = [node for node in range(len(self.nodes)) if self._fits(task, node)]
        begin, seen = 0, set(reached)
        while begin < len(reached):
            # Copies that have to move anyway come before those that would have stayed.
            for stays in (False, True):
                end = len(reached)
                for node in reached[begin:] if stays else _growing(reached, begin):
                    for moved in sorted(
                        each for each in self.on_node[node] if (node in self._present[each]) == stays
                    ):
                        for other in range(len(self.nodes)):
                            if other not in seen and self._fits(moved, other, instead_of=node):
                                seen.add(other)
                                reached.append(other)
                                before[other] = node, moved
                                if self._has_room(other):
                                    self._shift_along(task, other, before)
                                    return True
                if stays:
                    begin = end
        return False

    def _shift_along(self, task: int, last: int, before: Mapping[int, tuple[int, int]]) -> None:
        node = last
        while node in before:
            source, moved = before[node]
            self._take(moved, source)
            self._put(moved, node)
            node = source
        self._put(task, node)

    def _most_on_a_rack(self, barred: Collection[int]) -> int:
        """Return on how many nodes of one rack the copies of a task have to be, if some nodes cannot have one."""
        sizes = Counter(rack for node, rack in enumerate(self._racks) if node not in barred)
        copies = min(self._copies, sizes.total())
        return next(n for n in range(1, self._copies + 1) if sum(min(n, s) for s in sizes.values()) >= copies)

    def _least_maximum(self, racks: int) -> int:
        """Return the least number of copies per unit with which every copy may have room."""
        tasks, needed = len(self.tasks), sum(self._needed)
        barred = Counter(node for each in self._barred for node in each)
        per_rack = max([self._per_rack, *self._per_rack_of.values()])
        low, high = 1, tasks
        while low < high:
            middle = (low + high) // 2
            room = [0] * racks
            for number, (rack, node) in enumerate(zip(self._racks, self.nodes, strict=True)):
                room[rack] += min(tasks - barred[number], node.units * middle)
            if sum(min(tasks * per_rack, each) for each in room) >= needed:
                high = middle
            else:
                low = middle + 1
        return low

    def _lacks(self, task: int) -> bool:
        return len(self.of_task[task]) < self._needed[task]

    def _has_room(self, node: int) -> bool:
        return len(self.on_node[node]) < self.nodes[node].units * self.unit_copies

    def _entry(self, node: int) -> _Entry:
        """Return the sort key of a node: the least load first. Nodes with equal load come in an order that looks random
        and differs for each load. So a node shares tasks with all others, and when it goes, each of them gets some.
        """
        count = len(self.on_node[node])
        mixed = hashlib.blake2b(b"%d %d" % (count, node), digest_size=8).digest()
        return count / self.nodes[node].units, mixed, node

    def _fits(self, task: int, node: int, instead_of: int = -1) -> bool:
        """Whether a task may have a copy on a node, beside its others."""
        others = self.of_task[task]
        if node in others or node in self._barred[task]:
            return False
        rack = self._racks[node]
        most = self._per_rack_of.get(task, self._per_rack)
        return sum(self._racks[each] == rack for each in others if each != instead_of) < most

    def _fits_somewhere(self, task: int) -> bool:
        return any(self._fits(task, node) for node in range(len(self.nodes)))

    def _put_if_possible(self, task: int, node: int) -> None:
        if self._lacks(task) and self._has_room(node) and self._fits(task, node):
            self._put(task, node)

    def _put(self, task: int, node: int) -> None:
        self.of_task[task].append(node)
        self.on_node[node].add(task)

    def _take(self, task: int, node: int) -> None:
        self.of_task[task].remove(node)
        self.on_node[node].remove(task)


def _growing(nodes: Sequence[int], begin: int) -> Iterator[int]:
    """Iterate over nodes, and over those that are added meanwhile."""
    while begin < len(nodes):
        yield nodes[begin]
        begin += 1


def _rack(node: ClusterNode) -> str:
    return f"rack {node.rack}" if node.rack else f"node {node.name}"
