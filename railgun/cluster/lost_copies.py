"""Finds copies of tasks that are lost though their nodes live, so that the plan has them made elsewhere.

`ObservedCluster` calls it; it does no I/O.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from railgun.cluster.copies import CopyName
from railgun.cluster.plan import Copies, LostCopy


@dataclass(frozen=True, slots=True)
class Losses:
    """Decides whether copies are lost.

    incarnations: the incarnation (start) of each node that has said something.
    folders: the id of the data folder of each of them.
    alive: the nodes that live.
    able: the nodes that could have another copy of some task now.
    after_s: a copy is lost that has been neither able to answer nor advancing for this many seconds.
    """

    incarnations: Mapping[str, int]
    folders: Mapping[str, str]
    alive: Collection[str]
    able: Collection[str]
    after_s: float

    def find(
        self,
        planned: Copies,
        before: Mapping[str, LostCopy],
        unable: Collection[str],
        ill_s: Callable[[CopyName], float],
        has_failed: Callable[[CopyName], bool],
    ) -> dict[str, LostCopy]:
        """Return the nodes that have lost their copy of a task.

        A loss is forgotten when its node is started again. A copy that no other node could have is not lost: each lost
        copy needs a node of its own. Of copies that failed by an error of the task only one is lost: otherwise they
        would fail on one node after another.

        planned: the task's copies in the present plan.
        before: the losses that the present plan names.
        unable: the nodes that cannot make a copy of it.
        ill_s: for how many seconds a copy has been neither able to answer nor advancing.
        has_failed: whether a copy was stopped for an error of its task.
        """
        lost = {
            node: each for node, each in before.items() if self.incarnations.get(node) == each.incarnation
        }
        nodes = {each.copy.node for each in planned}
        for each in planned:
            copy, node = each.copy, each.copy.node
            if each.is_going or node in lost or node not in self.alive or ill_s(copy) <= self.after_s:
                continue
            if self.folders.get(node) != each.folder:
                # No unit opens the copy until the plan names the folder that the node has now.
                continue
            failed = has_failed(copy)
            wanders = failed and any(other.has_failed for other in lost.values())
            others = set(self.able) - nodes - set(lost) - set(unable)
            replaced = sum(other.copy.node in lost and not other.is_going for other in planned)
            if not wanders and len(others) > replaced:
                lost[node] = LostCopy(self.incarnations.get(node, 0), failed)
        return lost
