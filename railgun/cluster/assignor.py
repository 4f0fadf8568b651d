"""Computes where the copies of tasks should be, and which copy should answer first: the target of a cluster's plan.

The rules, each of which outranks those below it:

1. The copies of a task are on distinct nodes, and on as many racks as there are; of four or more, on as few of one rack
   as can be.
2. The greatest number of copies on one unit is the least possible.
3. As many copies as possible stay on their nodes (the sticky assignment of the Railgun paper, section 4.2).
4. A copy that has to be made goes to the node with the least to catch up, then to the unit with the least to do.
5. The greatest number of active copies on one unit is the least that these copies allow.
"""

from collections.abc import Iterable, Sequence

from railgun.catalog.task_key import TaskKey
from railgun.cluster.actives import Actives
from railgun.cluster.copies import CopyName
from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.placement import Placement


def assign(
    nodes: Iterable[ClusterNode], tasks: Sequence[TaskCopies], copies: int
) -> dict[TaskKey, list[CopyName]]:
    """Return the copies of each task in order of preference; the first is the active one.

    copies: how many copies each task has, as far as there are nodes.
    The result depends on nothing but the arguments, and not on their order.
    """
    able = sorted((node for node in nodes if node.is_open and node.units), key=lambda node: node.name)
    ordered = sorted(tasks, key=lambda task: task.task)
    if not able or not ordered:
        return {task.task: [] for task in ordered}
    placement = Placement(able, ordered, copies)
    placement.place()
    units = _units(placement)
    actives = Actives(able, ordered, units)
    return {task.task: actives.order(number) for number, task in enumerate(ordered)}


def _units(placement: Placement) -> list[list[CopyName]]:
    """Return the copies of each task: on each of its nodes the unit that had it, or the one with the least copies."""
    of_task: list[list[CopyName]] = [[] for _ in placement.tasks]
    for index, node in enumerate(placement.nodes):
        load = [0] * node.units
        left = []
        most = max(1, -(-len(placement.on_node[index]) // node.units))
        for task in sorted(placement.on_node[index]):
            unit = next((copy.unit for copy in placement.tasks[task].present if copy.node == node.name), None)
            if unit is not None and unit < node.units and load[unit] < most:
                load[unit] += 1
                of_task[task].append(CopyName(node.name, unit))
            else:
                left.append(task)
        for task in left:
            unit = min(
                range(node.units),
                key=lambda unit: (load[unit] >= most, unit in node.unsteady, load[unit], unit),
            )
            load[unit] += 1
            of_task[task].append(CopyName(node.name, unit))
    return of_task
