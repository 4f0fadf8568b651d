"""How far the copies of a simulated node are checkpointed."""

from railgun.catalog.task_key import TaskKey
from railgun.host.fetched import is_verified
from railgun.host.place import task_folder
from tests.simulator.node import SimulatedNode
from tests.task.committed import committed_at


def committed(node: SimulatedNode, task: TaskKey) -> int:
    """The position of a node's checkpoint of a task; 0 if it has none, or if that cannot be told."""
    for unit in node.live_units:
        host = unit.loop.hosts.get(task)
        if host is not None:
            return host.durable[0] if host.is_running else 0
    folder = task_folder(node.folder, *task)
    return committed_at(folder) if folder.is_dir() and not node.live_units and not is_verified(folder) else 0
