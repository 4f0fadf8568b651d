"""How far the copies of a simulated node are checkpointed."""

from railgun.catalog.task_key import TaskKey
from railgun.host.fetched import is_verified
from railgun.host.place import task_folder
from tests.simulator.node import SimulatedNode
from tests.task.committed import committed_at

DAMAGED = "DAMAGED"
"""A file that the simulation puts into a folder of which it has damaged another file."""


def committed(node: SimulatedNode, task: TaskKey) -> int:
    """The position of a node's checkpoint of a task; 0 if it has none, or if that cannot be told."""
    for unit in node.live_units:
        host = unit.loop.hosts.get(task)
        if host is not None:
            return host.durable[0] if host.is_running else 0
    folder = task_folder(node.folder, *task)
    if not folder.is_dir() or node.live_units or is_verified(folder) or (folder / DAMAGED).exists():
        return 0
    return committed_at(folder)
