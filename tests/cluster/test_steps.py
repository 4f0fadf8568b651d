"""The steps of a plan: copies are made before others go, no more on a node at once than allowed, and the target is
reached.
"""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.inventory import ClusterNode
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DrainOrder
from railgun.cluster.steps import next_plan
from railgun.cluster.view import ClusterView, CopyView, NodeView, TaskView
from tests.cluster.clusters import task_names
from tests.counts import seeds

_RECORDS = 5
"""A copy that is made anew catches up in as many turns."""


@dataclass
class _Cluster:
    """Nodes that do what the plan says.

    data: by task and node, how many records it has.
    folders: the ids of data folders that are not the first ones of their nodes.
    most: the most copies that were made at once.
    """

    nodes: dict[str, ClusterNode]
    tasks: list[TaskKey]
    copies: int = 2
    moves_limit: int = 4
    plan: Plan = field(default_factory=Plan)
    data: dict[tuple[TaskKey, str], int] = field(default_factory=dict)
    opened: dict[tuple[TaskKey, str], int] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    orders: dict[str, DrainOrder] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    records: int = 0
    most: int = 0

    def turn(self) -> bool:
        """Let the leader make a plan, and the nodes follow it. Returns whether it is another plan."""
        before, self.plan = self.plan, next_plan(self.plan, self.view())
        for task in self.tasks:
            units = {
                each.copy.node: each.copy.unit
                for each in self.plan.copies[task]
                if each.folder == self.folder(each.copy.node)
            }
            for name in self.nodes:
                key = task, name
                if name in self.dead or name not in units:
                    self.opened.pop(key, None)
                elif self.opened.get(key) != units[name]:
                    # A folder is held until the unit that had it has closed it: it takes a turn.
                    if self.opened.pop(key, None) is None:
                        self.opened[key] = units[name]
                else:
                    self.data[key] = min(self.records, self.data.get(key, 0) + 1)
        return self.plan is not before

    def heard(self, task: TaskKey) -> dict[CopyName, CopyView]:
        """What the copies of a task report: the first that has caught up answers."""
        found, answers = {}, False
        for each in self.plan.copies.get(task, ()):
            key = task, each.copy.node
            if self.opened.get(key) == each.copy.unit and self._lives(each.copy.node):
                has_all = self.data.get(key, 0) >= self.records
                state = CopyState.SILENT if has_all else CopyState.BEHIND
                if has_all and not answers:
                    state, answers = CopyState.ANSWERING, True
                found[each.copy] = CopyView(state)
        return found

    def opening(self, task: TaskKey) -> dict[CopyName, CopyView]:
        """The copies of a task that are about to be opened."""
        return {
            each.copy: CopyView(CopyState.BEHIND)
            for each in self.plan.copies.get(task, ())
            if self._lives(each.copy.node) and each.folder == self.folder(each.copy.node)
        }

    def folder(self, name: str) -> str:
        """The id of a node's data folder."""
        return self.folders.get(name, f"folder of {name}")

    def empty(self, name: str) -> None:
        """Start a node with an empty data folder."""
        self.folders[name] = f"another {self.folder(name)}"
        for task in self.tasks:
            self.data.pop((task, name), None)
            self.opened.pop((task, name), None)

    def _lives(self, name: str) -> bool:
        return name in self.nodes and name not in self.dead

    def able(self, task: TaskKey) -> int:
        """How many copies of a task could answer."""
        return sum(copy.state.is_caught_up for copy in self.heard(task).values())

    def view(self) -> ClusterView:
        nodes = [
            NodeView(node, self.folder(name), name not in self.dead) for name, node in self.nodes.items()
        ]
        tasks = [
            TaskView(
                task,
                {**self.opening(task), **self.heard(task)},
                {
                    name: self.records - has
                    for (of, name), has in self.data.items()
                    if of == task and name in self.nodes
                },
                is_new=self.records == 0,
            )
            for task in self.tasks
        ]
        return ClusterView(
            nodes, tasks, ClusterPolicy(self.copies, moves_limit=self.moves_limit), self.orders
        )

    def settle(self, least: int = 0) -> int:
        """Let turns pass until nothing changes; returns how many plans it took.

        Asserts that each task has `least` copies that could answer, and that no more copies than allowed are made on a
        node at once.
        """
        plans = still = 0
        while still < _RECORDS + 5:
            changed = self.turn()
            plans, still = plans + changed, 0 if changed else still + 1
            made = Counter(
                copy.node
                for task in self.tasks
                for copy, view in self.heard(task).items()
                if view.state is CopyState.BEHIND
            )
            assert max(made.values(), default=0) <= self.moves_limit
            self.most = max(self.most, made.total())
            assert all(self.able(task) >= least for task in self.tasks), plans
            assert plans < 50 * len(self.tasks)
        for task in self.tasks:
            planned = tuple(each.copy for each in self.plan.copies[task])
            # Copies stay on a node that is being emptied where too few others are left.
            left, further = planned[: len(self.plan.target[task])], planned[len(self.plan.target[task]) :]
            assert left == self.plan.target[task]
            assert not further or (
                len(left) < self.copies and all(self.plan.is_drained(copy.node) for copy in further)
            )
            assert self.able(task) == len(planned)
        return plans

    def copies_on(self, name: str) -> int:
        """How many copies of tasks the plan has on a node."""
        return sum(each.copy.node == name for copies in self.plan.copies.values() for each in copies)


def _started(nodes: int, tasks: int, units: int = 2, copies: int = 2) -> _Cluster:
    cluster = _Cluster(
        {f"node-{number}": ClusterNode(f"node-{number}", units) for number in range(nodes)},
        task_names(tasks),
        copies,
    )
    assert cluster.settle() == 1
    cluster.records = _RECORDS
    for task in cluster.tasks:
        for each in cluster.plan.copies[task]:
            cluster.data[task, each.copy.node] = _RECORDS
    assert cluster.settle(min(copies, nodes)) == 0
    return cluster


def _drain(cluster: _Cluster, name: str, *, fewer_copies: bool = False) -> None:
    asked_ms = 1 + max((order.asked_ms for order in cluster.orders.values()), default=0)
    cluster.orders[name] = DrainOrder(node=name, asked_ms=asked_ms, is_on=True, fewer_copies=fewer_copies)


def _use_again(cluster: _Cluster, name: str) -> None:
    cluster.orders[name] = DrainOrder(node=name, asked_ms=cluster.orders[name].asked_ms + 1, is_on=False)


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_a_node_is_drained_without_a_copy_less_at_any_time(copies: int) -> None:
    cluster = _started(4, 12, copies=copies)
    _drain(cluster, "node-1")
    cluster.settle(least=copies)
    assert cluster.copies_on("node-1") == 0
    _use_again(cluster, "node-1")
    cluster.settle(least=copies)
    # Of one copy each, two on a unit is the least with and without the node.
    assert (cluster.copies_on("node-1") > 0) == (copies > 1)


def test_a_drain_that_would_leave_too_few_nodes_is_refused_unless_that_is_said() -> None:
    cluster = _started(2, 6)
    _drain(cluster, "node-1")
    assert cluster.settle(least=2) == 1
    assert "1 node would be left for 2 copies" in cluster.plan.drains["node-1"].refusal
    assert cluster.copies_on("node-1") == 6
    _use_again(cluster, "node-1")
    cluster.settle(least=2)
    assert cluster.plan.drains == {}
    _drain(cluster, "node-1", fewer_copies=True)
    cluster.settle(least=1)
    assert cluster.copies_on("node-1") == 0
    _drain(cluster, "node-0", fewer_copies=True)
    cluster.settle(least=1)
    assert "no other node" in cluster.plan.drains["node-0"].refusal


def test_a_drain_is_not_taken_back_by_one_more() -> None:
    cluster = _started(2, 6)
    _drain(cluster, "node-1", fewer_copies=True)
    cluster.settle(least=1)
    _drain(cluster, "node-1")
    cluster.settle(least=1)
    assert cluster.plan.drains["node-1"].refusal == ""
    assert cluster.copies_on("node-1") == 0


def test_nodes_that_are_away_take_nothing_over() -> None:
    cluster = _started(3, 6)
    cluster.dead |= {"node-0", "node-2"}
    _drain(cluster, "node-1", fewer_copies=True)
    cluster.turn()
    assert "no other node that lives could take over its tasks" in cluster.plan.drains["node-1"].refusal
    cluster.dead.remove("node-2")
    _drain(cluster, "node-1")
    cluster.turn()
    assert "1 node would be left for 2 copies" in cluster.plan.drains["node-1"].refusal


def test_a_drain_waits_where_another_node_is_gone_meanwhile() -> None:
    cluster = _started(3, 6)
    _drain(cluster, "node-1")
    cluster.turn()
    cluster.dead.add("node-2")
    del cluster.nodes["node-2"]
    cluster.settle()
    # Two copies that have caught up were left of each task, or one where node-2 had the other one.
    assert cluster.copies_on("node-1") > 0
    assert all(cluster.able(task) >= 1 for task in cluster.tasks)
    cluster.nodes["node-3"] = ClusterNode("node-3", 2)
    cluster.settle(least=1)
    assert cluster.copies_on("node-1") == 0
    assert all(cluster.able(task) == 2 for task in cluster.tasks)


def test_a_node_that_joins_gets_its_share() -> None:
    cluster = _started(2, 12)
    cluster.nodes["node-2"] = ClusterNode("node-2", 2)
    cluster.settle(least=2)
    assert sum(each.copy.node == "node-2" for copies in cluster.plan.copies.values() for each in copies) == 8


def test_nodes_are_filled_side_by_side() -> None:
    cluster = _started(2, 24)
    cluster.nodes |= {name: ClusterNode(name, 2) for name in ("node-2", "node-3")}
    cluster.settle(least=2)
    assert cluster.most == 2 * cluster.moves_limit


def test_a_node_with_another_data_folder_is_filled_as_far_as_the_limit_allows() -> None:
    cluster = _started(3, 12)
    cluster.empty("node-1")
    cluster.settle(least=1)
    assert cluster.copies_on("node-1") == 8
    assert cluster.most == cluster.moves_limit


def test_copies_that_go_are_not_made_again_in_another_data_folder() -> None:
    cluster = _started(3, 12)
    cluster.empty("node-1")
    _drain(cluster, "node-1")
    while cluster.turn():
        assert all(
            each.folder != cluster.folder("node-1")
            for copies in cluster.plan.copies.values()
            for each in copies
        )
    cluster.settle(least=1)
    assert cluster.copies_on("node-1") == 0


def test_copies_that_wait_for_their_turn_to_fetch_take_no_move() -> None:
    cluster = _started(2, 12)
    cluster.nodes["node-2"] = ClusterNode("node-2", 2)
    for _ in range(_RECORDS):
        view = cluster.view()
        waiting = [
            replace(
                task,
                heard={
                    copy: replace(each, advances=copy.node != "node-2") for copy, each in task.heard.items()
                },
            )
            for task in view.tasks
        ]
        cluster.plan = next_plan(cluster.plan, replace(view, tasks=waiting))
    assert cluster.copies_on("node-2") == 8


def test_copies_of_a_node_that_is_gone_for_good_are_made_elsewhere() -> None:
    cluster = _started(3, 12)
    cluster.dead.add("node-0")
    for _ in range(5):
        assert not cluster.turn()
    del cluster.nodes["node-0"]
    cluster.settle(least=1)
    assert all(cluster.able(task) == 2 for task in cluster.tasks)


def test_a_node_that_is_away_for_a_moment_moves_nothing() -> None:
    cluster = _started(3, 12)
    cluster.dead.add("node-0")
    cluster.turn()
    cluster.dead.clear()
    assert cluster.settle(least=1) == 0


def test_the_node_with_the_least_to_catch_up_is_added_where_none_could_answer() -> None:
    cluster = _started(4, 4, copies=1)
    task = cluster.tasks[0]
    (copy,) = cluster.plan.copies[task]
    other = next(name for name in cluster.nodes if name != copy.copy.node)
    cluster.data[task, other] = _RECORDS - 1
    cluster.dead.add(copy.copy.node)
    assert cluster.turn()
    assert [each.copy.node for each in cluster.plan.copies[task]] == [other, copy.copy.node]


def test_a_task_that_waits_for_its_data_is_not_placed() -> None:
    cluster = _started(2, 1)
    view, another = cluster.view(), TaskKey("s", 1, "k", 7)
    waits = replace(view, tasks=[TaskView(another, waits=True), *view.tasks])
    assert next_plan(cluster.plan, waits).copies[another] == ()


@pytest.mark.parametrize("copies", [1, 2])
def test_a_node_with_fewer_units_goes_on_with_those_it_has(copies: int) -> None:
    cluster = _started(2, 12, units=4, copies=copies)
    cluster.nodes["node-0"] = replace(cluster.nodes["node-0"], units=1)
    cluster.settle()
    assert {
        each.copy.unit for each in sum(cluster.plan.copies.values(), ()) if each.copy.node == "node-0"
    } == {0}


def test_a_node_with_more_units_uses_them_and_nothing_else_moves() -> None:
    cluster = _started(2, 12, units=1)
    cluster.nodes["node-0"] = replace(cluster.nodes["node-0"], units=3)
    cluster.settle(least=1)
    assert {
        each.copy.unit for each in sum(cluster.plan.copies.values(), ()) if each.copy.node == "node-0"
    } == {0, 1, 2}


@pytest.mark.parametrize("seed", seeds(range(50), range(2_000)))
def test_the_target_is_reached_after_any_changes(seed: int) -> None:
    chance = random.Random(seed)
    cluster = _started(
        chance.randint(1, 4), chance.randint(1, 20), chance.randint(1, 3), chance.randint(1, 3)
    )
    for number in range(6):
        name = chance.choice(list(cluster.nodes))
        change = chance.random()
        if change < 0.3:
            cluster.nodes[f"new-{number}"] = ClusterNode(f"new-{number}", chance.randint(1, 3))
        elif change < 0.5:
            _drain(cluster, name, fewer_copies=chance.random() < 0.3)
        elif change < 0.6:
            cluster.orders.pop(name, None)
        elif change < 0.7:
            cluster.nodes[name] = replace(cluster.nodes[name], units=chance.randint(1, 3))
        elif change < 0.75 and all(
            cluster.able(task) > 1 for task in cluster.tasks if cluster.plan.copies[task]
        ):
            cluster.empty(name)
        elif change < 0.8:
            cluster.copies = chance.randint(1, 3)
        elif len(cluster.nodes) > cluster.copies + 1:
            cluster.dead.add(name)
            del cluster.nodes[name]
            if all(cluster.plan.is_drained(name) for name in cluster.nodes):
                break
        for _ in range(chance.choice((0, 3, 30))):
            cluster.turn()
    if not all(cluster.plan.is_drained(name) for name in cluster.nodes):
        cluster.settle()
