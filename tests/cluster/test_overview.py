"""What is shown of a cluster, and what a change would move, in a cluster whose copies are known."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cli.cluster import as_text
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.drains import decided
from railgun.cluster.health import ClusterHealth, cluster_health
from railgun.cluster.inventory import ClusterNode
from railgun.cluster.log_room import LogRoom
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.overview import overview
from railgun.cluster.plan import Drain, LostCopy, Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import (
    DrainOrder,
    EndedUnit,
    NodeRecord,
    decode_statement,
    encode_statement,
)
from railgun.cluster.reports import CopyStatus, UnitReport, encode_report
from railgun.cluster.view import ClusterView, NodeView, TaskView
from railgun.cluster.what_if import WhatIfError, what_if
from tests.cluster.clusters import task_names

ONE, OTHER = task_names(2)
A, B, C = (CopyName(f"node-{name}", 0) for name in "abc")
TARGET = {ONE: (A, B), OTHER: (B, A)}
PLAN = Plan(
    3,
    {task: tuple(PlannedCopy(copy, "f") for copy in copies) for task, copies in TARGET.items()},
    TARGET,
    policy=ClusterPolicy(copies=2),
)


def _observed(
    plan: Plan, states: dict[tuple[CopyName, Any], CopyState], members: str = "abc"
) -> ObservedCluster:
    observed = ObservedCluster(ClusterPolicy(), 0.0)
    for name in "abc":
        observed.take_statement(
            NodeRecord(
                name=f"node-{name}",
                folder="f",
                incarnation=1,
                host="h",
                units=1,
                release="1.0",
                transfer="h:7000",
            ),
            0.0,
        )
    observed.take_members([f"node-{name}" for name in members], 0.0)
    for copy in (A, B, C):
        own = [
            CopyStatus(**task._asdict(), state=state, position=5, replied=5, end=9)
            for (of, task), state in states.items()
            if of == copy
        ]
        report = UnitReport(node=copy.node, unit=copy.unit, generation=1, interval_ms=200, copies=own)
        observed.take_report(encode_report(report), 9.0)
    return observed


STATES = {
    (A, ONE): CopyState.ANSWERING,
    (B, ONE): CopyState.SILENT,
    (B, OTHER): CopyState.ANSWERING,
    (A, OTHER): CopyState.BEHIND,
}


def test_nodes_and_copies_are_shown() -> None:
    shown = overview(_observed(PLAN, STATES), PLAN, "node-a", [OTHER, ONE], 10.0)
    assert (shown["leader"], shown["plan"], shown["copies"], shown["moves"], shown["behind"]) == (
        "node-a",
        3,
        2,
        0,
        1,
    )
    assert [(node["name"], node["state"], node["active"], node["copies"]) for node in shown["nodes"]] == [
        ("node-a", "live", 1, 2),
        ("node-b", "live", 1, 2),
        ("node-c", "live", 0, 0),
    ]
    first = {"node": "node-a", "unit": 0, "state": "answering", "lag": 4, "planned": True}
    assert shown["tasks"][0]["copies"][0] == first


def test_a_copy_that_does_not_report_and_one_that_is_not_planned_are_shown_as_such() -> None:
    states = {key: state for key, state in STATES.items() if key != (A, OTHER)} | {(C, ONE): CopyState.SILENT}
    shown = overview(_observed(PLAN, states, members="bc"), PLAN, None, [ONE, OTHER], 10.0)
    assert [copy["state"] for copy in shown["tasks"][1]["copies"]] == ["answering", None]
    assert [copy["planned"] for copy in shown["tasks"][0]["copies"]] == [True, True, False]
    assert shown["unheard"] == 1
    assert "0 copies behind, 1 does not report\n" in as_text(shown)
    assert [node["state"] for node in shown["nodes"]] == ["away", "live", "live"]
    # What was heard long ago is not heard now.
    late = overview(_observed(PLAN, states), PLAN, None, [ONE], 20.0)
    assert [copy["state"] for copy in late["tasks"][0]["copies"]] == [None, None]


def test_units_that_end_by_themselves_are_told_with_their_last_error() -> None:
    observed = _observed(PLAN, STATES)
    ended = EndedUnit(unit=1, times=5, last_ms=7_000, error="No space left on device")
    record = msgspec.structs.replace(observed.nodes["node-b"], ended=[ended])
    observed.take_statement(record, 0.0)
    shown = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0)
    said = "unit 1 of node-b ended 5 times in the last 10 minutes; last: No space left on device"
    assert said in shown["warnings"]
    assert f"WARNING: {said}\n" in as_text(shown)
    own = {**msgspec.structs.asdict(ended), "text": said}
    assert [node.get("ended") for node in shown["nodes"]] == [None, [own], None]
    # What a node said before it was away tells nothing of now.
    observed.take_members(["node-a", "node-c"], 10.0)
    away = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0)
    assert said not in away["warnings"]
    assert "ended" not in away["nodes"][1]


def test_a_record_of_an_earlier_release_says_of_no_unit_that_it_ended() -> None:
    said = msgspec.json.decode(encode_statement(_observed(PLAN, STATES).nodes["node-a"]))
    del said["ended"]
    record = decode_statement(msgspec.json.encode(said))
    assert isinstance(record, NodeRecord)
    assert record.ended == []


def test_a_copy_that_closed_stays_closed_however_long_ago() -> None:
    states = {**STATES, (A, ONE): CopyState.CLOSED, (C, OTHER): CopyState.CLOSED}
    observed = _observed(PLAN, states, members="bc")
    for now_s in (10.0, 1_000.0):
        shown = overview(observed, PLAN, None, [ONE, OTHER], now_s)
        assert shown["tasks"][0]["copies"][0]["state"] == "closed"
        # One that the plan does not name is not shown.
        assert len(shown["tasks"][1]["copies"]) == 2
    # Those that did not say that they closed.
    assert shown["unheard"] == 3
    draining = replace(PLAN, target={ONE: (B, A), OTHER: (B, A)}, drains={"node-c": Drain(1)})
    there = {**draining.copies, ONE: (PlannedCopy(C, "f"), *draining.copies[ONE])}
    shown = overview(observed, replace(draining, copies=there), None, [ONE, OTHER], 10.0)
    assert "s/k/0: node-a/0 is closed" in shown["nodes"][2]["waits"]


def test_the_error_of_a_failed_copy_is_shown_while_another_answers() -> None:
    observed = _observed(PLAN, STATES)
    failed = CopyStatus(
        **ONE._asdict(), state=CopyState.FAILED, failure="a page is damaged", position=5, replied=5, end=9
    )
    report = UnitReport(node=B.node, unit=B.unit, generation=1, interval_ms=200, copies=[failed])
    observed.take_report(encode_report(report), 9.5)
    shown = overview(observed, PLAN, None, [ONE, OTHER], 10.0)
    assert [copy.get("failure") for copy in shown["tasks"][0]["copies"]] == [None, "a page is damaged"]
    line = "  s/k/0 on node-b/0 has failed: a page is damaged\n"
    assert line in as_text(shown, with_tasks=True)
    assert line not in as_text(shown)


def test_one_that_another_has_taken_over_from_is_not_shown_as_answering() -> None:
    observed = _observed(PLAN, STATES)
    answers = CopyStatus(**ONE._asdict(), state=CopyState.ANSWERING, position=9, replied=9, end=9)
    report = UnitReport(node=B.node, unit=B.unit, generation=1, interval_ms=200, copies=[answers])
    observed.take_report(encode_report(report), 9.5)
    both = overview(observed, PLAN, None, [ONE], 10.5)
    assert [copy["state"] for copy in both["tasks"][0]["copies"]] == ["answering", "answering"]
    observed.take_report(encode_report(report), 10.2)
    shown = overview(observed, PLAN, None, [ONE], 10.5)
    assert [copy["state"] for copy in shown["tasks"][0]["copies"]] == [None, "answering"]
    assert [node["active"] for node in shown["nodes"]] == [0, 1, 0]


def test_copies_that_were_lost_are_counted() -> None:
    plan = replace(PLAN, lost={ONE: {"node-c": LostCopy(1, True)}, OTHER: {"node-c": LostCopy(1, False)}})
    shown = overview(_observed(plan, STATES), plan, "node-a", [OTHER, ONE], 10.0)
    assert {node["name"]: node.get("lost") for node in shown["nodes"]} == {
        "node-a": None,
        "node-b": None,
        "node-c": 2,
    }
    assert (
        "WARNING: node-c has lost its copy of 2 tasks, which it gets again when it is started again; its log says why: "
        "s/k/0, s/k/1\n"
    ) in as_text(shown)
    assert [task["wrong"][0] for task in shown["tasks"]] == ["node-c has lost its copy"] * 2


def test_a_copy_that_has_failed_is_named_in_a_warning_and_at_its_task() -> None:
    states = {**STATES, (A, OTHER): CopyState.SILENT, (B, ONE): CopyState.FAILED}
    shown = overview(_observed(PLAN, states), PLAN, "node-a", [ONE, OTHER], 10.0)
    assert shown["warnings"] == [
        f"1 copy has failed: {ONE} on node-b/0",
        f"1 task has {FEWER}: {ONE}; those on node-b could not",
    ]
    assert [task.get("wrong") for task in shown["tasks"]] == [
        ["a copy of it has failed", f"it has {FEWER}"],
        None,
    ]


def test_a_warning_names_the_first_tasks_and_how_many_more_there_are() -> None:
    tasks = task_names(9)
    plan = Plan(3, dict.fromkeys(tasks, ()), policy=ClusterPolicy(copies=2))
    shown = overview(_observed(plan, {}), plan, "node-a", tasks, 10.0, tasks)
    assert shown["warnings"] == [
        "nobody answers 9 tasks: s/k/0, s/k/1, s/k/2 and 6 more",
        f"9 tasks have {FEWER}: s/k/0, s/k/1, s/k/2 and 6 more",
    ]
    assert all(task["wrong"] == ["nobody answers it", f"it has {FEWER}"] for task in shown["tasks"])


def test_a_drain_says_what_it_waits_for() -> None:
    plan = replace(PLAN, target={ONE: (B, C), OTHER: (B, C)}, drains={"node-a": Drain(1)})
    behind = {**STATES, (C, ONE): CopyState.BEHIND}
    shown = overview(_observed(plan, behind), plan, None, [ONE, OTHER], 10.0)
    node = shown["nodes"][0]
    assert (node["state"], shown["moves"]) == ("draining", 2)
    assert node["waits"] == [
        "s/k/0: node-c/0 is behind by 4 records",
        "s/k/1: a copy on node-c/0 is made when others are done",
    ]
    empty = replace(plan, copies={ONE: (), OTHER: ()})
    assert overview(_observed(empty, {}), empty, None, [ONE], 10.0)["nodes"][0]["state"] == "drained"


def test_a_drain_of_a_node_that_is_away_is_shown() -> None:
    plan = replace(PLAN, target={ONE: (B, C), OTHER: (B, C)}, drains={"node-a": Drain(1)})
    shown = overview(_observed(plan, STATES, members="bc"), plan, None, [ONE, OTHER], 10.0)
    assert (shown["nodes"][0]["state"], shown["nodes"][0]["alive"]) == ("draining", False)
    assert "  node-a  draining, away, units go on  " in as_text(shown)
    empty = replace(plan, copies={ONE: (), OTHER: ()})
    shown = overview(_observed(empty, {}, members="bc"), empty, None, [ONE], 10.0)
    assert (shown["nodes"][0]["state"], shown["nodes"][0]["alive"]) == ("drained", False)


def test_a_node_that_cannot_read_the_plan_is_warned_of() -> None:
    observed = _observed(PLAN, STATES)
    old = msgspec.structs.replace(observed.nodes["node-b"], unread="the plan is of version 2")
    observed.take_statement(old, 9.0)
    shown = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0)
    assert "WARNING: node-b follows an older plan: the plan is of version 2\n" in as_text(shown)


def _view(nodes: int, copies: int = 2) -> ClusterView:
    there = [NodeView(ClusterNode(f"node-{name}", 1), "f") for name in "abc"[:nodes]]
    return ClusterView(
        there,
        [TaskView(task, lag={"node-a": 0, "node-b": 0}) for task in (ONE, OTHER)],
        ClusterPolicy(copies),
    )


SIZES = {(ONE, "node-a"): 1_000, (ONE, "node-b"): 900, (OTHER, "node-b"): 50}


def test_what_the_loss_of_a_node_would_move() -> None:
    found = what_if("remove=node-b", PLAN, _view(3), SIZES)
    assert [(each["partition"], each["node"], each["bytes"]) for each in found["made"]] == [
        (0, "node-c", 1_000),
        (1, "node-c", 50),
    ]
    assert (found["bytes"], found["dropped"], found["moves"], found["not_made"]) == (1_050, 2, 1, [])
    found = what_if("remove=node-b", PLAN, _view(2), SIZES)
    assert (found["made"], found["dropped"]) == ([], 2)
    assert found["not_made"] == ["2 tasks would have fewer than 2 copies: there would be 1 node for them"]


def test_a_node_that_is_away_is_reckoned_with_as_if_it_were_back() -> None:
    view = _view(3)
    away = replace(view, nodes=[*view.nodes[:2], replace(view.nodes[2], is_alive=False)])
    found = what_if("remove=node-b", PLAN, away, SIZES)
    assert [each["node"] for each in found["made"]] == ["node-c", "node-c"]
    assert found["not_made"] == ["node-c is away: this is as if it were back"]
    assert what_if("remove=node-c", PLAN, away, SIZES)["not_made"] == []


def test_what_more_nodes_or_copies_would_move() -> None:
    found = what_if("add=2", PLAN, _view(2), SIZES)
    assert [node["name"] for node in found["nodes"]] == ["new-1", "new-2", "node-a", "node-b"]
    assert [node["copies"] for node in found["nodes"]] == [1, 1, 1, 1]
    found = what_if("copies=1", PLAN, _view(2), SIZES)
    assert (found["made"], found["dropped"], found["moves"]) == ([], 2, 0)
    racks = replace(
        _view(2),
        nodes=[
            NodeView(ClusterNode(f"node-{name}", 1, rack), "f")
            for name, rack in zip("abc", "xxy", strict=True)
        ],
    )
    assert what_if("copies=3", PLAN, racks, SIZES)["not_made"] == [
        "2 tasks would have two copies on one rack"
    ]
    # A node that is being emptied gets nothing.
    plan = replace(PLAN, drains={"node-c": Drain(1)})
    assert what_if("copies=3", plan, _view(3), SIZES)["made"] == []


@pytest.mark.parametrize(
    "change", ["", "remove", "remove=x", "add=0", "add=-1", "copies=101", "copies=²", "fly=1"]
)
def test_a_change_that_cannot_be_understood_is_refused(change: str) -> None:
    with pytest.raises(WhatIfError):
        what_if(change, PLAN, _view(2), SIZES)


def test_orders_are_decided_one_after_the_other() -> None:
    orders = {
        f"node-{name}": DrainOrder(node=f"node-{name}", asked_ms=asked_ms, is_on=True)
        for asked_ms, name in enumerate("cb", 1)
    }
    drains = decided(PLAN, replace(_view(3), orders=orders))
    assert [drains[name].refusal == "" for name in ("node-c", "node-b")] == [True, False]
    # What was decided stands, and a later order is decided anew.
    more = [*_view(3).nodes, NodeView(ClusterNode("node-d", 1), "f")]
    view = replace(_view(3), nodes=more, orders=orders)
    assert decided(replace(PLAN, drains=drains), view) == drains
    again = {**orders, "node-b": replace_order(orders["node-b"])}
    assert decided(replace(PLAN, drains=drains), replace(view, orders=again))["node-b"].refusal == ""


def replace_order(order: DrainOrder) -> DrainOrder:
    """The same order once more."""
    return DrainOrder(node=order.node, asked_ms=order.asked_ms + 5, is_on=True)


def _standing(states: dict[tuple[CopyName, Any], CopyState], plan: Plan = PLAN) -> ClusterHealth:
    return cluster_health(_observed(plan, states), plan, 10.0)


def test_how_far_a_cluster_is_from_what_is_wanted() -> None:
    assert _standing(STATES) == ClusterHealth(tasks_short=1, copies_lost=0, copies_to_make=1)
    well = {**STATES, (A, OTHER): CopyState.SILENT}
    assert _standing(well) == ClusterHealth(0, 0, 0)
    # A copy is to move to another node, and one was given up.
    moving = replace(PLAN, target={ONE: (A, C), OTHER: (B, A)}, lost={OTHER: {"node-c": LostCopy(1, False)}})
    assert _standing(well, moving) == ClusterHealth(0, 1, 1)
    # What was heard too long ago counts no more.
    assert cluster_health(_observed(PLAN, well), PLAN, 20.0) == ClusterHealth(2, 0, 4)


SHORT = (
    "2 copies of each task are wanted, on nodes of their own, and 1 can have some; start more nodes, or set "
    "cluster.copies"
)
START = "start what is away, or see its log"
FEWER = "fewer than 2 copies that could answer"


def test_warnings() -> None:
    well = {**STATES, (A, OTHER): CopyState.SILENT}
    observed = _observed(PLAN, well)
    assert overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0)["warnings"] == []
    observed.nodes["node-b"] = msgspec.structs.replace(observed.nodes["node-b"], rack="r1")
    observed.take_members(["node-b", "node-c"], 10.0)
    drained = replace(PLAN, drains={"node-c": Drain(1)})
    shown = overview(observed, drained, None, [ONE, OTHER], 20.0)
    assert shown["warnings"] == [
        "no node leads: nothing is moved, and no copies are made",
        f"1 node is away: node-a; {START}",
        SHORT,
        "some nodes name a rack, and node-c none: set cluster.rack on all nodes, or on none",
        f"2 tasks have {FEWER}: s/k/0, s/k/1; those on node-a, node-b could not",
    ]
    assert [task["wrong"] for task in shown["tasks"]] == [[f"it has {FEWER}"]] * 2
    assert "WARNING: some nodes name a rack" in as_text(shown)


def test_no_node_at_all_is_another_warning_than_one_that_is_away() -> None:
    observed = _observed(PLAN, STATES, members="")
    assert overview(observed, PLAN, None, [ONE, OTHER], 20.0)["warnings"] == [
        "no node runs, so nobody answers; start the nodes: events that come until then count once they run"
    ]
    observed.take_members(["node-a"], 20.0)
    warnings = overview(observed, PLAN, "node-a", [ONE, OTHER], 20.0)["warnings"]
    away = f"1 node is away: node-b; {START}: no other node can have its copies"
    assert warnings == [away, SHORT, f"2 tasks have {FEWER}: s/k/0, s/k/1; those on node-a, node-b could not"]


def test_a_node_that_is_away_was_heard_last_and_is_replaced_after_a_while() -> None:
    observed = _observed(PLAN, STATES, members="bc")
    report = UnitReport(
        node="node-a", unit=0, generation=1, interval_ms=200, copies=[], said_ms=1_700_000_000_999
    )
    observed.take_report(encode_report(report), 9.0)
    shown = overview(observed, PLAN, "node-b", [ONE, OTHER], 20.0)
    assert shown["warnings"][0] == (
        f"1 node is away: node-a, last heard 2023-11-14T22:13:20Z; {START}: 5 min after it went "
        "(cluster.replace_after_s) its copies can be made on other nodes"
    )
    assert [each.get("heard_ms") for each in shown["nodes"]] == [1_700_000_000_999, None, None]


def test_a_failed_copy_is_warned_of_with_its_error_and_shown_at_its_node() -> None:
    observed = _observed(PLAN, STATES)
    for task, copy, failure in ((ONE, B, "a page\nis damaged"), (OTHER, A, "x" * 999)):
        failed = CopyStatus(
            **task._asdict(), state=CopyState.FAILED, failure=failure, position=5, replied=5, end=9
        )
        report = UnitReport(node=copy.node, unit=copy.unit, generation=1, interval_ms=200, copies=[failed])
        observed.take_report(encode_report(report), 9.5)
        shown = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0)
        if task is ONE:
            assert shown["warnings"][0] == f"1 copy has failed: {ONE} on node-b/0: a page is damaged"
    assert shown["warnings"][0] == (
        f"2 copies have failed: {ONE} on node-b/0, {OTHER} on node-a/0; the first: a page is damaged"
    )
    # It is live, and not well.
    assert "  node-b  live, 1 failed, 1 does not report  " in as_text(shown)


def test_tasks_that_nobody_answers_are_those_that_the_server_names() -> None:
    observed = _observed(PLAN, {})
    shown = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0)
    # None of their copies is heard, though not for long yet.
    assert "nobody answers" not in as_text(shown)
    shown = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0, [OTHER])
    assert f"WARNING: nobody answers 1 task: {OTHER}\n" in as_text(shown)


def test_logs_that_will_lose_what_a_copy_needs_are_shown_counted_and_warned_of() -> None:
    room = LogRoom(3, 5, B, retention_ms=604_800_000, left_ms=100_000_000)
    well = replace(room, left_ms=604_800_000)
    observed = _observed(PLAN, {**STATES, (A, OTHER): CopyState.SILENT})
    shown = overview(observed, PLAN, "node-a", [ONE, OTHER], 10.0, (), {ONE: room})
    assert [task["log"] for task in shown["tasks"]] == [room.shown(), None]
    (warning,) = shown["warnings"]
    assert f"{ONE} (node-b/0, 1 d 3 h left)" in warning
    assert f"WARNING: {warning}" in as_text(shown)
    table = as_text(shown, with_tasks=True).splitlines()[-3:]
    assert [line.split()[:5] for line in table] == [
        ["task", "log", "from", "needed", "from"],
        [_text(ONE), "3", "5", "1", "d"],
        [_text(OTHER), "?", "?", "?", "node-b/0"],
    ]
    assert cluster_health(observed, PLAN, 10.0, {ONE: room, OTHER: well}).logs_short == 1
    assert overview(observed, PLAN, "node-a", [ONE], 10.0, (), {ONE: well})["warnings"] == []


def _text(task: TaskKey) -> str:
    return f"{task.stream}/{task.partitioner}/{task.partition}"
