"""Computes the next plan: the next steps from where the copies of tasks are to where they should be.

A new copy is made first. Once every copy of the target has caught up, activity moves, and the copies that are not in
the target go last. So a task never has fewer copies that could answer than before.

Units of one node share a task's folder. A copy moves between them in three steps: another copy answers, this one is
closed, and is opened by the other unit. A task's only copy is closed, then opened.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from railgun.catalog.task_key import TaskKey
from railgun.cluster.assignor import assign
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.plan import Copies, Plan, PlannedCopy


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
    """A copy as the leader hears it.

    advances: whether it got nearer to the end of its log, or filled more of a metric, a short time ago.
    """

    state: CopyState
    advances: bool = True


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as the leader sees it.

    heard: its copies that are heard at present.
    lag: how many records each node that lists data of the task has to catch up, by the node's name.
    is_new: whether nobody can have data of it, so that its copies need not be made one after the other.
    waits: whether its log has records, no node lists data of it, and nodes that have it may still come back.
    barred: nodes that had a copy and lost it.
    """

    task: TaskKey
    heard: Mapping[CopyName, CopyView] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)
    is_new: bool = False
    waits: bool = False
    barred: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the leader knows.

    copies: how many copies each task is to have.
    moves_limit: how many copies are made at once.
    """

    nodes: Sequence[NodeView]
    tasks: Sequence[TaskView]
    copies: int
    moves_limit: int


def next_plan(plan: Plan, view: ClusterView) -> Plan:
    """Return the next plan; the same one if there is nothing to do."""
    target, cause = plan.target, _cause(view)
    if cause != plan.cause:
        target = _target(plan, view)
    steps = _Steps(plan, view, target)
    copies = {task.task: steps.next_copies(task) for task in view.tasks}
    following = replace(plan, copies=copies, target=target, cause=cause)
    return plan if following == plan else replace(following, epoch=plan.epoch + 1)


def _cause(view: ClusterView) -> str:
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
    tasks = sorted((task.task, sorted(task.barred)) for task in view.tasks)
    return hashlib.blake2b(repr((nodes, view.copies, tasks)).encode(), digest_size=16).hexdigest()


def _target(plan: Plan, view: ClusterView) -> dict[TaskKey, tuple[CopyName, ...]]:
    folders = {each.node.name: each.folder for each in view.nodes}
    tasks = []
    for task in view.tasks:
        present = [
            each.copy for each in plan.copies.get(task.task, ()) if folders.get(each.copy.node) == each.folder
        ]
        tasks.append(TaskCopies(task.task, present, task.lag, task.barred))
    assigned = assign((each.node for each in view.nodes), tasks, view.copies)
    return {task: tuple(copies) for task, copies in assigned.items()}


class _Steps:
    """The next steps of all tasks. At most `moves_limit` copies are made at once; those that are under way count."""

    def __init__(self, plan: Plan, view: ClusterView, target: Mapping[TaskKey, Sequence[CopyName]]) -> None:
        self._present, self._target = plan.copies, target
        self._nodes = {each.node.name: each for each in view.nodes}
        self._moves_left = view.moves_limit - sum(
            self._is_being_made(task, each.copy)
            for task in view.tasks
            for each in plan.copies.get(task.task, ())
        )

    def next_copies(self, task: TaskView) -> Copies:
        """Return the next copies of a task, in order of preference."""
        present, target = self._present.get(task.task, ()), self._target.get(task.task, ())
        if task.waits or not target:
            return present
        if task.is_new:
            return self._planned(target)
        copies = self._moved_at_once(present, target)
        copies = self._with_the_nearest(task, copies)
        copies = self._with_moved_units(task, copies, target)
        copies = self._with_new(task, copies, target)
        if all(self._has_caught_up(task, copies, copy) for copy in target):
            return self._arrived(task, copies, target)
        return copies

    def _moved_at_once(self, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Move copies of units that their node does not have any more, and of nodes with another data folder."""
        moved = []
        for each in copies:
            node = self._nodes.get(each.copy.node)
            copy, folder = each.copy, each.folder if node is None else node.folder
            if node is not None and copy.unit >= node.node.units:
                copy = next((other for other in target if other.node == copy.node), copy._replace(unit=0))
            moved.append(
                each
                if (copy, folder) == (each.copy, each.folder)
                else replace(each, copy=copy, folder=folder)
            )
        return tuple(moved)

    def _with_the_nearest(self, task: TaskView, copies: Copies) -> Copies:
        """Where no copy of the plan could answer, add the node that has less to catch up than any of them."""
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
        for each in copies:
            unit = units.get(each.copy.node, each.copy.unit)
            if unit == each.copy.unit:
                continue
            others = [other for other in copies if other != each]
            able = [other for other in others if self._is_caught_up(task, other.copy)]
            if not others:
                return (replace(each, copy=each.copy._replace(unit=unit)),)
            if any(self._answers(task, other.copy) for other in able) and not self._answers(task, each.copy):
                moved = replace(each, copy=each.copy._replace(unit=unit))
                return (*others, moved)
            if able:
                return (*able, *(other for other in others if other not in able), each)
            return copies
        return copies

    def _with_new(self, task: TaskView, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Add copies of the target, as far as the limit allows."""
        names = {each.copy.node for each in copies}
        for copy in target:
            if copy.node in names:
                continue
            if self._moves_left <= 0 and task.lag.get(copy.node) != 0:
                continue
            self._moves_left -= 1
            copies = (*copies, *self._planned([copy]))
        return tuple(
            replace(each, is_going=not any(copy.node == each.copy.node for copy in target)) for each in copies
        )

    def _arrived(self, task: TaskView, copies: Copies, target: Sequence[CopyName]) -> Copies:
        """Put the target first; once its first copy answers, drop the others."""
        kept = [next(each for each in copies if each.copy == copy) for copy in target]
        going = [each for each in copies if each not in kept]
        if any(self._answers(task, each.copy) for each in kept):
            going = []
        return (*kept, *going)

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
