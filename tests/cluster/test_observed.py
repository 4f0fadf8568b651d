"""What the leader makes of what it hears: who is there, who is awaited, which copies could answer."""

from dataclasses import asdict, replace

import msgspec
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState, Cut, Gap, LogPoint
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import AcceptedCut, AcceptedGap, DiskCopy, DrainOrder, NodeRecord
from railgun.cluster.reports import Fetching, encode_report
from railgun.cluster.steps import next_plan
from railgun.cluster.view import ClusterView, CopyView, TaskView
from tests.cluster.some_reports import TASK, report, status

NAME = TaskKey(*TASK.values())  # type: ignore[arg-type]
HERE = CopyName("node-1", 0)
PLAN = Plan(1, {NAME: (PlannedCopy(HERE, "f"),)}, {NAME: (HERE,)})


def _node(name: str, incarnation: int = 1, folder: str = "f", disk: tuple[DiskCopy, ...] = ()) -> NodeRecord:
    return NodeRecord(
        name=name, folder=folder, incarnation=incarnation, host="h", units=1, release="0", disk=list(disk)
    )


@pytest.fixture
def observed() -> ObservedCluster:
    made = ObservedCluster(ClusterPolicy(replace_after_s=300.0), 0.0)
    for name, folder in (("node-1", "f"), ("node-2", "g")):
        made.take_statement(_node(name, folder=folder), 0.0)
    made.take_members(["node-1", "node-2"], 0.0)
    return made


def _view(observed: ObservedCluster, now_s: float, *, is_new: bool = False, plan: Plan = PLAN) -> ClusterView:
    return observed.view({NAME: is_new}, plan, now_s)


def _task(observed: ObservedCluster, now_s: float, *, is_new: bool = False) -> TaskView:
    (task,) = _view(observed, now_s, is_new=is_new).tasks
    return task


def _nodes(observed: ObservedCluster, now_s: float) -> dict[str, bool]:
    return {each.node.name: each.is_alive for each in _view(observed, now_s).nodes}


def test_a_node_that_is_away_is_awaited_for_a_while_if_the_plan_names_it(observed: ObservedCluster) -> None:
    observed.take_members([], 10.0)
    assert _nodes(observed, 10.0) == {"node-1": False}
    assert _nodes(observed, 309.0) == {"node-1": False}
    assert _nodes(observed, 310.0) == {}
    observed.take_members(["node-1"], 400.0)
    assert _nodes(observed, 400.0) == {"node-1": True}


def test_a_node_is_not_awaited_whose_folder_another_one_has(observed: ObservedCluster) -> None:
    observed.take_members(["node-2"], 10.0)
    assert _nodes(observed, 11.0) == {"node-1": False, "node-2": True}
    # It was started with another name.
    observed.take_statement(_node("new-name", folder="f"), 12.0)
    assert _nodes(observed, 12.0) == {"node-1": False, "node-2": True}
    observed.take_members(["node-2", "new-name"], 13.0)
    assert _nodes(observed, 13.0) == {"node-2": True, "new-name": True}


def test_nodes_of_earlier_releases_do_not_say_what_they_read(observed: ObservedCluster) -> None:
    observed.take_statement(msgspec.structs.replace(_node("node-1", 2), reads={"plan": 1}), 1.0)
    assert observed.of_earlier_releases() == ["node-2"]
    observed.take_members(["node-1"], 2.0)
    assert observed.of_earlier_releases() == []


def test_what_an_earlier_run_of_a_node_said_is_left_out(observed: ObservedCluster) -> None:
    observed.take_statement(_node("node-1", incarnation=7, folder="g"), 1.0)
    observed.take_statement(_node("node-1", incarnation=6, folder="f"), 2.0)
    assert {each.node.name: each.folder for each in _view(observed, 3.0).nodes}["node-1"] == "g"


def test_a_copy_that_is_not_heard_any_more_could_not_answer(observed: ObservedCluster) -> None:
    observed.take_report(encode_report(report(status(position=5, end=9))), 10.0)
    assert _task(observed, 12.0).heard[HERE].state.is_caught_up
    assert _task(observed, 16.0).heard == {}
    assert _task(observed, 16.0).lag == {"node-1": 4}


def test_a_copy_that_the_plan_has_just_named_counts_as_one_that_is_made(observed: ObservedCluster) -> None:
    assert _task(observed, 10.0).heard == {HERE: CopyView(CopyState.BEHIND)}
    assert _task(observed, 21.0).heard == {}
    observed.take_members(["node-2"], 22.0)
    assert _task(observed, 22.0).heard == {}


def test_the_newest_order_to_a_node_counts(observed: ObservedCluster) -> None:
    for asked_ms, is_on in ((1, True), (2, False)):
        observed.take_statement(DrainOrder(node="node-1", asked_ms=asked_ms, is_on=is_on), 1.0)
    assert [order.asked_ms for order in _view(observed, 1.0).orders.values()] == [2]


def test_a_copy_advances_while_it_comes_nearer(observed: ObservedCluster) -> None:
    behind = {"state": CopyState.BEHIND, "end": 9}
    observed.take_report(encode_report(report(status(position=5, **behind))), 10.0)
    observed.take_report(encode_report(report(status(position=5, **behind))), 19.0)
    assert _task(observed, 19.0).heard[HERE].advances
    observed.take_report(encode_report(report(status(position=5, **behind))), 21.0)
    assert not _task(observed, 21.0).heard[HERE].advances
    # So it does while it fills a metric.
    observed.take_report(encode_report(report(status(position=5, filled={"n": 0.1}, **behind))), 22.0)
    assert _task(observed, 22.0).heard[HERE].advances


def test_a_task_of_which_nobody_lists_data_waits_unless_it_is_new(observed: ObservedCluster) -> None:
    assert _task(observed, 1.0).waits
    assert not _task(observed, 300.0).waits
    assert not _task(observed, 1.0, is_new=True).waits
    assert _task(observed, 1.0, is_new=True).is_new
    copy = DiskCopy(stream=NAME.stream, created=1, partitioner=NAME.partitioner, partition=NAME.partition)
    observed.take_statement(_node("node-2", incarnation=2, disk=(copy,)), 1.0)
    task = _task(observed, 1.0, is_new=True)
    assert (task.waits, task.is_new, list(task.lag)) == (False, False, ["node-2"])


def test_what_an_earlier_folder_of_a_node_reached_does_not_count_for_a_new_one(
    observed: ObservedCluster,
) -> None:
    def hear(unit: int, now_s: float, **of_copy: object) -> None:
        observed.take_report(encode_report(report(status(**of_copy), unit=unit)), now_s)

    hear(1, 9.0, state=CopyState.CLOSED, position=90, end=100, folder_id="a")
    hear(0, 10.0, state=CopyState.BEHIND, position=5, end=100, folder_id="b")
    assert _task(observed, 11.0).lag == {"node-1": 95}
    # What the unit says of the folder that is gone does not count, even if it says it again.
    hear(1, 11.0, state=CopyState.FAILED, position=90, end=100, folder_id="a")
    assert _task(observed, 12.0).lag == {"node-1": 95}
    # Without a folder's id both count, as before.
    hear(1, 12.0, state=CopyState.CLOSED, position=90, end=100)
    assert _task(observed, 13.0).lag == {"node-1": 10}
    # The same folder, moved to another unit.
    hear(1, 13.0, state=CopyState.CLOSED, position=90, end=100, folder_id="b")
    assert _task(observed, 14.0).lag == {"node-1": 10}


def test_of_two_folders_of_closed_copies_the_newest_counts(observed: ObservedCluster) -> None:
    for unit, (now_s, position, folder_id) in enumerate([(11.0, 5, "b"), (10.0, 90, "a")]):
        closed = status(state=CopyState.CLOSED, position=position, end=100, folder_id=folder_id)
        observed.take_report(encode_report(report(closed, unit=unit)), now_s)
    assert _task(observed, 12.0).lag == {"node-1": 95}


def test_a_copy_that_waits_for_its_turn_to_fetch_takes_no_move(observed: ObservedCluster) -> None:
    def hear(now_s: float, fetching: Fetching | None, position: int = 0) -> CopyView:
        behind = status(state=CopyState.BEHIND, position=position, end=9, fetching=fetching)
        observed.take_report(encode_report(report(behind)), now_s)
        return _task(observed, now_s).heard[HERE]

    assert hear(10.0, None).advances
    assert not hear(11.0, Fetching()).advances
    assert hear(12.0, Fetching(donor="node-2/0")).advances
    assert not hear(23.0, Fetching(donor="node-2/0")).advances
    assert hear(24.0, Fetching(donor="node-2/0", fetched=1)).advances


def test_of_two_orders_about_one_topic_the_first_says_where_copies_begin(observed: ObservedCluster) -> None:
    for begin in (100, 140):
        cut = Cut(begin, -1, "second", begin)
        observed.take_statement(AcceptedCut(**TASK, **asdict(cut)), 0.0)
    first = Cut(100, -1, "second", 100)
    assert observed.cuts == {NAME: first}
    # A leader that has read the second one alone goes on with what the plan says.
    other = ObservedCluster(observed.policy, 0.0)
    other.take_statement(AcceptedCut(**TASK, **asdict(cut)), 0.0)
    plan = Plan(1, cuts={NAME: first})
    assert next_plan(plan, other.view({NAME: True}, plan, 1.0)).cuts == {NAME: first}


def test_of_two_orders_about_one_gap_the_first_says_how_copies_cross_it(observed: ObservedCluster) -> None:
    first = Gap(LogPoint(70, 3), 80, 1_000, (90, 94), 12, "topic")
    second = replace(first, gap_ms=2_000, told=(95, 99))
    later = replace(second, offset=85)
    for gap in (first, second):
        observed.take_statement(AcceptedGap(**TASK, gap=gap), 0.0)
    assert observed.gaps == {NAME: first}
    # A leader that has read the second one alone goes on with what the plan says.
    other = ObservedCluster(observed.policy, 0.0)
    other.take_statement(AcceptedGap(**TASK, gap=second), 0.0)
    plan = Plan(1, gaps={NAME: first})
    assert next_plan(plan, other.view({NAME: True}, plan, 1.0)).gaps == {NAME: first}
    # The log has lost more since: it is another gap.
    other.take_statement(AcceptedGap(**TASK, gap=later), 0.0)
    assert next_plan(plan, other.view({NAME: True}, plan, 1.0)).gaps == {NAME: later}
