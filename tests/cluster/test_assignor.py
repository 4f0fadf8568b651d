"""The target of a plan: the rules of `assignor.py`, each of them, and brute force on small clusters."""

import random
from dataclasses import replace

import pytest

from railgun.cluster.assignor import assign
from railgun.cluster.copies import CopyName
from railgun.cluster.inventory import ClusterNode, TaskCopies
from railgun.cluster.least import try_least
from tests.cluster.clusters import (
    best,
    drained,
    fewest_moves,
    greatest,
    held,
    history,
    least_active,
    moves,
    racks_of,
    task_names,
    tasks_after,
)
from tests.counts import seeds

(TASK,) = task_names(1)


@pytest.mark.parametrize("seed", seeds(range(100), range(3_000)))
def test_small_clusters_are_assigned_as_brute_force_does(seed: int) -> None:
    chance = random.Random(seed)
    copies = chance.randint(1, 3)
    for nodes, present, assigned in history(chance, 4, chance.randint(1, 4), copies):
        if len(nodes) <= 5:
            most, fewest = best(nodes, present, copies)
            assert greatest(assigned, active=False) == most
            # With three copies on racks one more may move, about once in a thousand times.
            assert fewest <= moves(present, assigned) <= fewest + (copies > 2)
            assert fewest_moves(nodes, present, copies, most) == fewest
            assert greatest(assigned, active=True) == least_active(assigned)


@pytest.mark.parametrize("seed", seeds(range(100), range(10_000)))
def test_the_rules_hold_over_histories_of_joins_and_leaves(seed: int) -> None:
    chance = random.Random(seed)
    copies, before = chance.randint(1, 3), set[str]()
    for nodes, present, assigned in history(chance, 8, chance.randint(1, 60), copies):
        names = {node.name for node in nodes}
        gone, before = before - names, names
        moved = moves(present, assigned)
        if gone and moved > held(present, gone):
            # The rules that come first demand it. With three copies one more may move, as above.
            most = greatest(assigned, active=False)
            assert moved <= fewest_moves(nodes, present, copies, most) + (copies > 2)
        for each in assigned.values():
            on = [copy.node for copy in each]
            assert len(set(on)) == len(on) == min(copies, len(nodes))
            assert set(on) <= names
        racks = {node.rack or node.name for node in nodes}
        if len(racks) >= copies:
            assert all(max(racks_of(nodes, each).values()) == 1 for each in assigned.values())
        shuffled = chance.sample(nodes, len(nodes))
        assert assign(shuffled, chance.sample(present, len(present)), copies) == assigned
        assert assign(nodes, tasks_after(assigned), copies) == assigned


@pytest.mark.parametrize("seed", seeds(range(100), range(3_000)))
def test_nodes_that_are_barred_are_made_up_for(seed: int) -> None:
    """Each task has as many copies as nodes can have one, on as many racks as that allows, as evenly as can be."""
    chance = random.Random(seed)
    copies = chance.randint(1, 3)
    for nodes, present, _ in history(chance, 4, chance.choice((3, 4, 20)), copies):
        names = [node.name for node in nodes]
        tasks = [
            replace(task, barred=frozenset(chance.sample(names, chance.choice((0, 0, 1, len(names))))))
            for task in present
        ]
        assigned = assign(nodes, tasks, copies)
        for task in tasks:
            able = [node for node in nodes if node.name not in task.barred]
            on = [copy.node for copy in assigned[task.task]]
            assert len(set(on)) == len(on) == min(copies, len(able))
            assert not task.barred & set(on)
            spread = {node.rack or node.name for node in able}
            assert len(racks_of(nodes, assigned[task.task])) == min(len(on), len(spread))
        if len(nodes) <= 4 and len(tasks) <= 4:
            most, fewest = best(nodes, tasks, copies)
            assert greatest(assigned, active=False) == most
            assert fewest <= moves(tasks, assigned) <= fewest + 1


def test_a_node_that_a_large_cluster_loses_moves_only_what_it_had() -> None:
    nodes = [ClusterNode(f"node-{number}", 8) for number in range(100)]
    first = assign(nodes, [TaskCopies(name) for name in task_names(10_000)], 2)
    present = tasks_after(first)
    had = held(present, {"node-50"})
    assert had == 200
    after = assign([node for node in nodes if node.name != "node-50"], present, 2)
    assert moves(present, after) <= had
    # On 99 nodes of eight units: as even as can be.
    assert greatest(after, active=False) == 26
    assert greatest(after, active=True) == 13


def test_the_active_copy_stays_and_a_replica_takes_its_place() -> None:
    nodes = [ClusterNode(f"node-{number}", 2) for number in range(3)]
    tasks = [TaskCopies(name) for name in task_names(12)]
    first = assign(nodes, tasks, 2)
    without = assign(nodes[:2], tasks_after(first), 2)
    stays = [task for task, copies in first.items() if copies[0].node != "node-2"]
    assert all(without[task][0] == first[task][0] for task in stays)
    one = {TASK: [CopyName("node-0", 0), CopyName("node-2", 1)]}
    assert assign(nodes[1:], tasks_after(one), 2)[TASK] == [CopyName("node-2", 1), CopyName("node-1", 0)]


def test_a_node_that_comes_back_gets_the_tasks_whose_data_it_has() -> None:
    nodes = [ClusterNode(f"node-{number}", 1) for number in range(3)]
    first = assign(nodes, [TaskCopies(name) for name in task_names(6)], 2)
    had = {task for task, copies in first.items() if any(copy.node == "node-2" for copy in copies)}
    without = assign(nodes[:2], tasks_after(first), 2)
    known = [
        TaskCopies(task.task, task.present, {**task.lag, **({"node-2": 100} if task.task in had else {})})
        for task in tasks_after(without)
    ]
    back = assign(nodes, known, 2)
    there = {task for task, copies in back.items() if any(copy.node == "node-2" for copy in copies)}
    assert len(there) == len(had) == 4
    # That as many copies as possible stay comes first.
    assert len(there & had) >= 3


def test_a_node_that_is_drained_gets_nothing_and_no_other_copy_moves() -> None:
    nodes = [ClusterNode(f"node-{number}", 2) for number in range(4)]
    first = assign(nodes, [TaskCopies(name) for name in task_names(24)], 2)
    after = assign(drained(nodes, "node-1"), tasks_after(first), 2)
    gone = sum(copy.node == "node-1" for copies in first.values() for copy in copies)
    assert not any(copy.node == "node-1" for copies in after.values() for copy in copies)
    assert moves(tasks_after(first), after) == gone


def test_a_unit_that_fails_again_and_again_answers_nothing_if_another_can() -> None:
    nodes = [
        ClusterNode("node-0", 1, unsteady=frozenset({0})),
        ClusterNode("node-1", 2),
        ClusterNode("node-2", 2),
    ]
    present = [TaskCopies(TASK, [CopyName("node-0", 0), CopyName("node-1", 0)], {"node-0": 0, "node-1": 0})]
    assert assign(nodes, present, 2)[TASK] == [CopyName("node-1", 0), CopyName("node-0", 0)]


def test_without_a_node_that_may_have_copies_there_are_none() -> None:
    assert assign([], [TaskCopies(TASK)], 2) == {TASK: []}
    assert assign([ClusterNode("node-0", 1, is_open=False)], [TaskCopies(TASK)], 2) == {TASK: []}
    assert assign([ClusterNode("node-0", 1)], [], 2) == {}


def test_nodes_that_are_barred_from_many_tasks_are_made_up_for_at_once() -> None:
    nodes = [ClusterNode(f"node-{number}", 2) for number in range(6)]
    barred = frozenset({"node-0", "node-1"})
    tasks = [
        TaskCopies(task, barred=barred if number % 10 else frozenset())
        for number, task in enumerate(task_names(2_000))
    ]
    assigned = assign(nodes, tasks, 2)
    # 1,800 tasks have two copies on eight units; the others fit on the four that are left.
    assert greatest(assigned, active=False) == 450
    assert greatest(assigned, active=True) == 225
    # A node that can have none at all is no reason to try long.
    tasks = [TaskCopies(task, barred=barred) for task in task_names(2_000)]
    assert greatest(assign(nodes, tasks, 2), active=True) == 250


@pytest.mark.parametrize("enough", [0, 1, 2, 3, 7, 8, 9, 1_000])
def test_the_least_number_is_tried_last_and_is_found_in_few_steps(enough: int) -> None:
    tried: list[int] = []

    def is_enough(number: int) -> bool:
        tried.append(number)
        return number >= enough

    try_least(0, is_enough)
    assert tried[-1] == enough
    assert len(tried) <= 3 + 2 * enough.bit_length()
