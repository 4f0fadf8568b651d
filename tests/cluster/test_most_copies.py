"""How many copies a unit may come to hold."""

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy


def _plan(tasks: int, nodes: int, units: int, wanted: int) -> Plan:
    copies = {}
    for task in range(tasks):
        names = [CopyName(f"n{(task + each) % nodes}", task % units) for each in range(min(wanted, nodes))]
        copies[TaskKey("s", 1, "card", task)] = tuple(PlannedCopy(name, "f") for name in names)
    return Plan(1, copies, policy=ClusterPolicy(wanted))


@pytest.mark.parametrize(
    ("tasks", "nodes", "units", "wanted", "most"),
    [
        (12, 1, 2, 2, 0),
        # Each of two nodes has a copy of every task already.
        (12, 2, 1, 2, 12),
        (12, 2, 2, 2, 6),
        (12, 3, 1, 2, 12),
        (12, 4, 2, 2, 4),
        (0, 0, 0, 2, 0),
    ],
)
def test_the_largest_node_may_be_gone(tasks: int, nodes: int, units: int, wanted: int, most: int) -> None:
    assert _plan(tasks, nodes, units, wanted).most_copies_of_a_unit() == most
