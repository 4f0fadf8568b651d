"""Computes the next plan: the next steps from where the copies of tasks are to where they should be.

The node that leads the cluster calls `next_plan` whenever it looks at the cluster (`railgun/node/leader/leading.py`),
and writes the plan if it has changed. It does no I/O.

A new copy is made first. Once every copy of the target has caught up, a copy of the target begins to answer, and the
copies that are not in the target go last. So a task never has fewer copies that could answer than before.

Units of one node share a task's folder. A copy moves between them in three steps: another copy answers, this one is
closed, and is opened by the other unit. A task's only copy is closed, then opened.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from railgun.catalog.task_key import TaskKey
from railgun.cluster.assignor import assign
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.drains import decided, with_drains
from railgun.cluster.inventory import TaskCopies
from railgun.cluster.plan import Copies, Plan, PlannedCopy
from railgun.cluster.view import ClusterView, TaskView


def next_plan(plan: Plan, view: ClusterView) -> Plan:
    """Return the next plan; the same one if there is nothing to do. Its fields are explained at `Plan`."""
    lost = {task.task: task.lost for task in view.tasks if task.lost}
    # An operator may have given two orders to accept one loss. A new leader may have read only the later order; the
    # plan has the first one.
    cuts = {
        task.task: view.cuts[task.task].after(plan.cuts.get(task.task))
        for task in view.tasks
        if task.task in view.cuts
    }
    gaps = {
        task.task: view.gaps[task.task].after(plan.gaps.get(task.task))
        for task in view.tasks
        if task.task in view.gaps
    }
    before = plan
    plan = replace(plan, drains=decided(plan, view), policy=view.policy, lost=lost, cuts=cuts, gaps=gaps)
    view = with_drains(view, plan)
    target, cause = plan.target, _cause(view)
    if cause != plan.cause:
        target = _target(plan, view)
    steps = _Steps(plan, view, target)
    copies = {task.task: steps.next_copies(task) for task in view.tasks}
    following = replace(plan, copies=copies, target=target, cause=cause)
    return before if following == before else replace(following, epoch=plan.epoch + 1)


def _cause(view: ClusterView) -> str:
    """Return a digest of all that the target depends on. The target is computed again only when that has changed."""
    nodes = sorted(
        (
            each.node.name,
            each.folder,
            each.node.units,
            each.node.rack,
            each.node.is_open,
            sorted(each.node.unsteady),
        )
        for each in view.nodes
    )
    tasks = sorted((task.task, sorted({*task.lost, *task.unable})) for task in view.tasks)
    return hashlib.blake2b(repr((nodes, view.policy.copies, tasks)).encode(), digest_size=16).hexdigest()


def _target(plan: Plan, view: ClusterView) -> dict[TaskKey, tuple[CopyName, ...]]:
    """Return where the copies of each task should be, in order of preference."""
    folders = {each.node.name: each.folder for each in view.nodes}
    tasks = []
    for task in view.tasks:
        present = [
            each.copy for each in plan.copies.get(task.task, ()) if folders.get(each.copy.node) == each.folder
        ]
        tasks.append(TaskCopies(task.task, present, task.lag, task.unable.union(task.lost)))
    assigned = assign((each.node for each in view.nodes), tasks, view.policy.copies)
    return {task: tuple(copies) for task, copies in assigned.items()}


class _Steps:
    """Makes the next steps of all tasks. On each node at most `moves_limit` copies are made at once; those under way
    count.
    """

    def __init__(self, plan: Plan, view: ClusterView, target: Mapping[TaskKey, Sequence[CopyName]]) -> None:
        self._present, self._target, self._plan = plan.copies, target, plan
        self._nodes = {each.node.name: each for each in view.nodes}
        # By node, how many more copies may be made on it.
        self._moves_left = dict.fromkeys(self._nodes, view.policy.moves_limit)
        for task in view.tasks:
            for each in plan.copies.get(task.task, ()):
                if each.copy.node in self._nodes and self._is_being_made(task, each.copy):
                    self._moves_left[each.copy.node] -= 1

    def next_copies(self, task: TaskView) -> Copies:
        """Return the next copies of a task, in order of preference."""
        present, target = self._present.get(task.task, ()), self._target.get(task.task, ())
        # A task waits while nodes with its data may still come back.
        if task.waits or not target:
            return present
        if task.is_new:
            return self._planned(target)
        copies = self._moved_at_once(task, present, target)
        copies = self._with_the_nearest(task, copies)
        copies = self._with_moved_units(task, copies, target)
        copies = self._with_new(task, copies, target)
        if all(self._has_caught_up(task, copies, copy) for copy in target):
            return self._arrived(task, copies, target)
        return copies

    def _moved_at_once(self, task: TaskView, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Move copies of units that their node does not have any more, and of nodes with another data folder, as far as
        the limit allows; drop those that cannot be made in that folder.
        """
        moved = []
        for each in copies:
            node = self._nodes.get(each.copy.node)
            copy, folder = each.copy, each.folder if node is None else node.folder
            if folder != each.folder and copy.node in task.unable:
                continue
            is_wanted = any(other.node == copy.node for other in target)
            if folder != each.folder and not (is_wanted and self._takes_move(task, copy.node)):
                # No unit opens this copy. It is dropped, or waits for a move.
                moved.append(each)
                continue
            if node is not None and copy.unit >= node.node.units:
                copy = next((other for other in target if other.node == copy.node), copy._replace(unit=0))
            moved.append(
                each
                if (copy, folder) == (each.copy, each.folder)
                else replace(each, copy=copy, folder=folder)
            )
        # A task whose copies all lack their data keeps its places in the plan, though no unit opens the copies.
        return tuple(moved) or copies

    def _with_the_nearest(self, task: TaskView, copies: Copies) -> Copies:
        """If no copy of the plan could answer, add the node that has less to catch up than any of them."""
        if any(self._is_caught_up(task, each.copy) for each in copies):
            return copies
        lags = {name: lag for name, lag in task.lag.items() if self._is_alive(name)}
        planned = {each.copy.node for each in copies}
        nearest = min(lags, key=lambda name: (lags[name], name not in planned, name), default=None)
        if nearest is None or nearest in planned:
            return copies
        return (*self._planned([CopyName(nearest, 0)]), *copies)

    def _with_moved_units(self, task: TaskView, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Take the next step of copies that move to another unit of their node; one of a task at a time."""
        units = {copy.node: copy.unit for copy in target}
        moving = [each for each in copies if units.get(each.copy.node, each.copy.unit) != each.copy.unit]
        for each in moving:
            others = tuple(other for other in copies if other != each)
            is_covered = any(self._answers(task, other.copy) for other in others) and not self._answers(
                task, each.copy
            )
            # If no other copy can be waited for, events wait for a moment.
            if is_covered or not any(other.copy.node in self._nodes for other in others):
                return (*others, replace(each, copy=each.copy._replace(unit=units[each.copy.node])))
        for each in moving:
            able = [other for other in copies if other != each and self._is_caught_up(task, other.copy)]
            if able:
                return (*able, *(other for other in copies if other != each and other not in able), each)
        return copies

    def _with_new(self, task: TaskView, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Add copies of the target, as far as the limit allows."""
        names = {each.copy.node for each in copies}
        for copy in target:
            if copy.node in names:
                continue
            if self._takes_move(task, copy.node):
                copies = (*copies, *self._planned([copy]))
        return tuple(
            replace(each, is_going=not any(copy.node == each.copy.node for copy in target)) for each in copies
        )

    def _takes_move(self, task: TaskView, node: str) -> bool:
        """Whether a copy of a task may be made on a node now. If so, it takes a move."""
        if self._moves_left[node] <= 0 and task.lag.get(node) != 0:
            return False
        self._moves_left[node] -= 1
        return True

    def _arrived(self, task: TaskView, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Put the target first; once one of its copies answers, drop the others, as far as enough are left."""
        kept = [next(each for each in copies if each.copy == copy) for copy in target]
        going = [each for each in copies if each not in kept]
        if any(self._answers(task, each.copy) for each in kept):
            going = [each for each in going if self._is_needed(task, each, len(kept))]
        return (*kept, *going)

    def _is_needed(self, task: TaskView, going: PlannedCopy, kept: int) -> bool:
        """Whether a copy has to stay on a node that is being emptied, because too few others have caught up."""
        drain = self._plan.drains.get(going.copy.node)
        if drain is None or drain.refusal or drain.fewer_copies:
            return False
        return kept < self._plan.wanted and self._is_caught_up(task, going.copy)

    def _planned(self, copies: Sequence[CopyName]) -> Copies:
        return tuple(PlannedCopy(copy, self._nodes[copy.node].folder) for copy in copies)

    def _has_caught_up(self, task: TaskView, copies: Copies, copy: CopyName) -> bool:
        return any(each.copy == copy for each in copies) and self._is_caught_up(task, copy)

    def _is_caught_up(self, task: TaskView, copy: CopyName) -> bool:
        heard = task.heard.get(copy)
        return heard is not None and heard.state.is_caught_up

    def _answers(self, task: TaskView, copy: CopyName) -> bool:
        heard = task.heard.get(copy)
        return heard is not None and heard.state is CopyState.ANSWERING

    def _is_being_made(self, task: TaskView, copy: CopyName) -> bool:
        heard = task.heard.get(copy)
        return heard is not None and heard.state is CopyState.BEHIND and heard.advances

    def _is_alive(self, node: str) -> bool:
        return node in self._nodes and self._nodes[node].is_alive
