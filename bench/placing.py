"""How fast copies of tasks are placed on nodes, how many move when nodes come and go, and how evenly they are spread.

    python -m bench.placing [--scale F]

Prints a table; docs/paper.md has one. Nothing but the computation runs: no node, no broker.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from railgun.catalog.task_key import TaskKey
from railgun.cluster.assignor import assign
from railgun.cluster.copies import CopyName
from railgun.cluster.inventory import ClusterNode, TaskCopies

_COPIES = 2
_UNITS = 8
# Nodes and tasks: a task per unit, as in section 5.3 of the Railgun paper; then large clusters.
_PAPER = tuple((nodes, nodes * _UNITS) for nodes in (1, 2, 5, 10, 20, 35, 50))
_LARGE = ((100, 10_000), (1_000, 100_000))
_TITLES = (
    "nodes",
    "tasks",
    "active/unit",
    "copies/unit",
    "placed s",
    "lost s",
    "had",
    "moved",
    "joins",
    "moved",
)

Assigned = dict[TaskKey, list[CopyName]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.placing", description="Place copies on nodes.")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="F", help="of the large clusters (default: 1)"
    )
    scale = parser.parse_args(arguments).scale
    print("".join(f"{title:>12}" for title in _TITLES))
    large = [(max(2, round(nodes * scale)), max(16, round(tasks * scale))) for nodes, tasks in _LARGE]
    for nodes, tasks in (*_PAPER, *large):
        print("".join(f"{cell:>12}" for cell in _row(nodes, tasks)), flush=True)
    return 0


def _row(nodes: int, tasks: int) -> list[str]:
    """Place the copies on nodes, then on one node less, then on one more. Returns a row of the table."""
    all_nodes = [ClusterNode(f"node-{number}", _UNITS) for number in range(nodes + 1)]
    placed, placed_s = _timed(
        all_nodes[:nodes], [TaskCopies(TaskKey("s", 1, "k", each)) for each in range(tasks)]
    )
    present = [TaskCopies(task, copies, {copy.node: 0 for copy in copies}) for task, copies in placed.items()]
    cells = [f"{nodes:,}", f"{tasks:,}", _greatest(placed, 1), _greatest(placed, _COPIES), f"{placed_s:.2f}"]
    if nodes > 1:
        had = sum(copy.node == all_nodes[0].name for copies in placed.values() for copy in copies)
        without, lost_s = _timed(all_nodes[1:nodes], present)
        cells += [f"{lost_s:.2f}", f"{had:,}", f"{_moved(placed, without):,}"]
    else:
        cells += ["-", "-", "-"]
    joined, joins_s = _timed(all_nodes, present)
    return [*cells, f"{joins_s:.2f}", f"{_moved(placed, joined):,}"]


def most_active(nodes: int, tasks: int) -> int:
    """Return the most active copies on a unit when tasks are placed on nodes."""
    placed, _ = _timed(
        [ClusterNode(f"node-{number}", _UNITS) for number in range(nodes)],
        [TaskCopies(TaskKey("s", 1, "k", each)) for each in range(tasks)],
    )
    return int(_greatest(placed, 1))


def _timed(nodes: Sequence[ClusterNode], tasks: Sequence[TaskCopies]) -> tuple[Assigned, float]:
    began_s = time.perf_counter()
    return assign(nodes, tasks, _COPIES), time.perf_counter() - began_s


def _greatest(assigned: Assigned, ranks: int) -> str:
    """Return the greatest number of copies on one unit. ranks: how many copies of each task count."""
    return str(max(Counter(copy for copies in assigned.values() for copy in copies[:ranks]).values()))


def _moved(before: Assigned, after: Assigned) -> int:
    """Return how many copies are on nodes that had no copy of their task before."""
    return sum(
        copy.node not in {each.node for each in before[task]}
        for task, copies in after.items()
        for copy in copies
    )


if __name__ == "__main__":
    sys.exit(main())
