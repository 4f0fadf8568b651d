"""Random clusters, and a brute-force assignment of small ones."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product

from railgun.catalog.task_key import TaskKey
from railgun.cluster.assignor import assign
from railgun.cluster.copies import CopyName
from railgun.cluster.inventory import ClusterNode, TaskCopies
from tests.cluster.cheapest_flow import CheapestFlow

Assigned = dict[TaskKey, list[CopyName]]


def task_names(count: int) -> list[TaskKey]:
    """Return the names of the tasks of one stream."""
    return [TaskKey("s", 1, "k", number) for number in range(count)]


def random_nodes(chance: random.Random, most: int) -> list[ClusterNode]:
    """Return nodes with unequal units; in every second cluster with racks."""
    racks = chance.choice(("", "ab", "abc"))
    return [
        ClusterNode(f"node-{number}", chance.randint(1, 3), chance.choice(racks) if racks else "")
        for number in range(chance.randint(1, most))
    ]


def tasks_after(assigned: Assigned) -> list[TaskCopies]:
    """Return tasks whose copies are where they were assigned, all with data."""
    return [
        TaskCopies(task, copies, {copy.node: 0 for copy in copies})
        for task, copies in sorted(assigned.items())
    ]


def history(
    chance: random.Random, most_nodes: int, tasks: int, copies: int
) -> Iterator[tuple[list[ClusterNode], list[TaskCopies], Assigned]]:
    """Let nodes join and leave, and yield each time what was there, and what was assigned."""
    nodes = random_nodes(chance, most_nodes)
    present = [TaskCopies(name) for name in task_names(tasks)]
    for step in range(6):
        assigned = assign(nodes, present, copies)
        yield nodes, present, assigned
        present = tasks_after(assigned)
        if len(nodes) > 1 and chance.random() < 0.5:
            nodes = [node for node in nodes if node != chance.choice(nodes)] or nodes
        else:
            nodes = [*nodes, ClusterNode(f"node-{10 + step}", chance.randint(1, 3), chance.choice(("", "a")))]


def moves(present: Sequence[TaskCopies], assigned: Assigned) -> int:
    """Count copies on nodes that had none."""
    return sum(
        copy.node not in {each.node for each in task.present}
        for task in present
        for copy in assigned[task.task]
    )


def held(present: Sequence[TaskCopies], nodes: Collection[str]) -> int:
    """Count the copies that some nodes have."""
    return sum(copy.node in nodes for task in present for copy in task.present)


def greatest(assigned: Assigned, *, active: bool) -> int:
    """Return the greatest number of copies, or of active copies, on one unit."""
    counted = Counter(copy for copies in assigned.values() for copy in (copies[:1] if active else copies))
    return max(counted.values(), default=0)


def racks_of(nodes: Sequence[ClusterNode], copies: Sequence[CopyName]) -> Counter[str]:
    """Count a task's copies on each rack; a node of which none is named is one of its own."""
    racks = {node.name: node.rack or f"alone {node.name}" for node in nodes}
    return Counter(racks[copy.node] for copy in copies)


def least_active(assigned: Assigned) -> int:
    """Return by brute force the least maximum of active copies per unit that some copies allow."""
    return min(max(Counter(chosen).values()) for chosen in product(*assigned.values()))


def best(nodes: Sequence[ClusterNode], tasks: Sequence[TaskCopies], copies: int) -> tuple[int, int]:
    """Return by brute force the least maximum of copies per unit, and the fewest moves with it."""
    found = (len(tasks) * copies + 1, 0)
    for chosen in product(*(_choices(nodes, task, copies) for task in tasks)):
        load = Counter(node for choice in chosen for node in choice)
        most = max((-(-count // nodes[node].units) for node, count in load.items()), default=0)
        moved = sum(
            nodes[node].name not in {each.node for each in task.present}
            for task, choice in zip(tasks, chosen, strict=True)
            for node in choice
        )
        found = min(found, (most, moved))
    return found


def fewest_moves(nodes: Sequence[ClusterNode], tasks: Sequence[TaskCopies], copies: int, most: int) -> int:
    """Return the fewest moves that any assignment needs which keeps the first rule, and has so many copies on a unit.

    It is the least cost of a flow that carries each copy from its task over a rack to a node.
    """
    flow = CheapestFlow()
    of_each = min(copies, len(nodes))
    sizes = Counter(node.rack or f"alone {node.name}" for node in nodes)
    on_a_rack = next(
        n for n in range(1, of_each + 1) if sum(min(n, size) for size in sizes.values()) >= of_each
    )
    for node in nodes:
        flow.add(node.name, "end", most * node.units, 0)
    for task in tasks:
        flow.add("start", task.task, of_each, 0)
        for rack in sizes:
            flow.add(task.task, (task.task, rack), on_a_rack, 0)
        had = {copy.node for copy in task.present}
        for node in nodes:
            flow.add((task.task, node.rack or f"alone {node.name}"), node.name, 1, int(node.name not in had))
    return flow.cost("start", "end", of_each * len(tasks))


def _choices(nodes: Sequence[ClusterNode], task: TaskCopies, copies: int) -> list[tuple[int, ...]]:
    """All ways to place one task by the first rule."""
    able = [number for number, node in enumerate(nodes) if node.name not in task.barred]
    choices = list(combinations(able, min(copies, len(able))))
    spread = min(_most_on_a_rack(nodes, choice) for choice in choices)
    return [choice for choice in choices if _most_on_a_rack(nodes, choice) == spread]


def _most_on_a_rack(nodes: Sequence[ClusterNode], choice: Sequence[int]) -> int:
    return max(racks_of(nodes, [CopyName(nodes[number].name, 0) for number in choice]).values(), default=0)


def drained(nodes: Sequence[ClusterNode], name: str) -> list[ClusterNode]:
    """Return the nodes, of which one is being drained."""
    return [replace(node, is_open=node.name != name) for node in nodes]
