"""The plan of a cluster: where the copies of each task are, in order of preference, and where they are to be.

The leader writes it to a topic, and all units (the processes that run tasks) follow it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, Cut, Gap
from railgun.cluster.policy import ClusterPolicy


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """A copy that the plan names.

    folder: the id of the data folder of its node. A node that comes back with another folder has other data.
    is_going: the copy goes as soon as another one answers.
    """

    copy: CopyName
    folder: str
    is_going: bool = False


Copies = tuple[PlannedCopy, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """The decision on an order to empty a node.

    asked_ms: the time of the order. A later order is decided again.
    fewer_copies: whether tasks may have fewer copies for it.
    refusal: why the node is not emptied; empty if it is.
    """

    asked_ms: int
    fewer_copies: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class LostCopy:
    """A copy that was lost, and is made elsewhere: its node gets none of the task until it is started again.

    incarnation: that of the node at the loss.
    has_failed: whether it failed by an error of the task, which other copies may meet too.
    """

    incarnation: int
    has_failed: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan that the leader writes.

    epoch: grows with each plan that is written.
    copies: by task, its copies in order of preference; the first is the active one.
    target: by task, the copies that the steps lead to.
    cause: a digest of what the target was computed for; the target is kept until that changes.
    drains: by node, the decision on the order to empty it.
    policy: the leader's policy, which counts for all nodes; None before the first plan.
    lost: by task, the nodes that have lost their copy.
    cuts: by task, the loss of records of its log that an operator has accepted last.
    gaps: by task, the gap of its log that an operator has accepted last.
    """

    epoch: int = 0
    copies: Mapping[TaskKey, Copies] = field(default_factory=dict)
    target: Mapping[TaskKey, tuple[CopyName, ...]] = field(default_factory=dict)
    cause: str = ""
    drains: Mapping[str, Drain] = field(default_factory=dict)
    policy: ClusterPolicy | None = None
    lost: Mapping[TaskKey, Mapping[str, LostCopy]] = field(default_factory=dict)
    cuts: Mapping[TaskKey, Cut] = field(default_factory=dict)
    gaps: Mapping[TaskKey, Gap] = field(default_factory=dict)

    @property
    def wanted(self) -> int:
        """How many copies each task is to have; 0 before the first plan."""
        return 0 if self.policy is None else self.policy.copies

    @property
    def units(self) -> set[CopyName]:
        """The units that have copies."""
        return {each.copy for copies in self.copies.values() for each in copies}

    def most_copies_of_a_unit(self) -> int:
        """Return how many copies a unit may hold once the node with most units is gone; 0 if it is the only node."""
        units: dict[str, int] = {}
        for copies in self.copies.values():
            for each in copies:
                units[each.copy.node] = max(units.get(each.copy.node, 0), each.copy.unit + 1)
        left = sum(units.values()) - max(units.values(), default=0)
        copies_of_all = len(self.copies) * min(self.wanted, len(units) - 1)
        return -(-copies_of_all // left) if left else 0

    def to_make(self, task: TaskKey) -> int:
        """Return how many copies of a task's target the plan does not have yet."""
        return len(set(self.target.get(task, ())) - self._planned(task))

    def moves(self, task: TaskKey) -> int:
        """Return how many copies of a task are still to be made, or to go."""
        planned = self._planned(task)
        target = set(self.target.get(task, planned))
        return max(len(target - planned), len(planned - target))

    def _planned(self, task: TaskKey) -> set[CopyName]:
        return {each.copy for each in self.copies.get(task, ())}

    def is_drained(self, node: str) -> bool:
        """Whether a node is being emptied, or is empty for this reason."""
        drain = self.drains.get(node)
        return drain is not None and not drain.refusal
