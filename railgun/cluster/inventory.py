"""The input of an assignment of copies to nodes: the nodes, and the present copies of tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node as the assignment sees it.

    units: how many units it has.
    rack: its rack; empty if none is named. It counts as a rack of its own then.
    is_open: whether it may have copies. A node that is being drained may not.
    unsteady: units that keep failing. All others are preferred to them.
    """

    name: str
    units: int
    rack: str = ""
    is_open: bool = True
    unsteady: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TaskCopies:
    """A task, with its copies and the nodes that have data of it.

    present: its copies in the present plan, in order of preference.
    lag: how many records each node that has data of the task has to catch up, by the node's name.
    barred: nodes that cannot have a copy, because one was lost there, or could not be made. If too few other nodes
        are left, the task has fewer copies.
    """

    task: TaskKey
    present: Sequence[CopyName] = ()
    lag: Mapping[str, int] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
