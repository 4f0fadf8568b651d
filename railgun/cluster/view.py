"""The leader's view of a cluster, from which it makes the next plan. `ObservedCluster` makes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState, Cut, Gap
from railgun.cluster.histories import Histories
from railgun.cluster.inventory import ClusterNode
from railgun.cluster.plan import LostCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DrainOrder


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the leader sees it: it lives, or left a short time ago.

    folder: the id of its data folder.
    """

    node: ClusterNode
    folder: str
    is_alive: bool = True


@dataclass(frozen=True, slots=True)
class CopyView:
    """A copy as the leader sees it.

    advances: whether it got nearer to the end of its log, or filled more of a metric, a short time ago.
    """

    state: CopyState
    advances: bool = True


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as the leader sees it.

    heard: its copies that are heard at present, and those that are about to be opened, as BEHIND.
    lag: how many records each node that lists data of the task has to catch up, by the node's name.
    is_new: whether no node can have data of it, so that its copies need not be made one after the other.
    waits: whether its log has records, no node lists data of it, and nodes that have it may still come back.
    lost: the nodes that have lost their copy of it, and may not have one.
    unable: the nodes that cannot make a copy of it, because they lack its history, or should not, because none of their
        units is steady.
    """

    task: TaskKey
    heard: Mapping[CopyName, CopyView] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)
    is_new: bool = False
    waits: bool = False
    lost: Mapping[str, LostCopy] = field(default_factory=dict)
    unable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster as the leader sees it.

    policy: the leader's policy.
    orders: the newest order to each node.
    cuts: by task, the loss of records of its log that an operator has accepted last.
    gaps: by task, the gap of its log that an operator has accepted last.
    histories: the histories that tasks have from before their logs.
    """

    nodes: Sequence[NodeView]
    tasks: Sequence[TaskView]
    policy: ClusterPolicy
    orders: Mapping[str, DrainOrder] = field(default_factory=dict)
    cuts: Mapping[TaskKey, Cut] = field(default_factory=dict)
    histories: Histories = field(default_factory=dict)
    gaps: Mapping[TaskKey, Gap] = field(default_factory=dict)
