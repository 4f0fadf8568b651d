"""Nodes and units whose records may be deleted: those that are gone for good, and no others."""

import math
from dataclasses import replace

import msgspec
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.departed import Departed, departed
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Drain, Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import DrainOrder, NodeRecord
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import encode_report
from railgun.cluster.silence import FORGOTTEN_S
from tests.cluster.some_reports import TASK, report, status

TASK_KEY = TaskKey(*TASK.values())  # type: ignore[arg-type]
DAY_MS = 24 * 3_600_000
NOW_MS = 10 * DAY_MS
GONE = NodeRecord(
    name="node-2", folder="f", incarnation=1, host="h", units=2, release="0", said_ms=NOW_MS - DAY_MS - 1
)


@pytest.fixture
def observed() -> ObservedCluster:
    """Of node-1, which lives, and of node-2, which was heard a day ago. Both had two units."""
    made = ObservedCluster(ClusterPolicy(), 0.0)
    made.take_statement(msgspec.structs.replace(GONE, name="node-1"), 0.0)
    made.take_statement(GONE, 0.0)
    made.take_members(["node-1"], 0.0)
    for node in ("node-1", "node-2"):
        for unit in (0, 1):
            made.take_report(encode_report(report(status(), node=node, unit=unit)), 0.0)
    return made


def test_a_node_that_has_said_nothing_for_a_day_and_its_units(observed: ObservedCluster) -> None:
    found = departed(observed, Plan(), NOW_MS)
    assert found == Departed(frozenset({"node-2"}), frozenset({CopyName("node-2", 0), CopyName("node-2", 1)}))
    observed.take_statement(DrainOrder(node="node-2", asked_ms=1, is_on=False), 0.0)
    observed.forget(found.nodes, found.units)
    assert not departed(observed, Plan(), NOW_MS)
    assert [*observed.nodes] == ["node-1"]
    assert not observed.orders
    assert {each.copy.node for each in observed.reports.copies(TASK_KEY)} == {"node-1"}


def test_not_one_that_has_said_something_since(observed: ObservedCluster) -> None:
    assert not departed(observed, Plan(), NOW_MS - 1)


def test_not_a_member_nor_one_in_the_plan_nor_one_that_is_to_be_empty(observed: ObservedCluster) -> None:
    planned = Plan(1, {TASK_KEY: (PlannedCopy(CopyName("node-2", 1), "f"),)})
    assert not departed(observed, planned, NOW_MS)
    drained = replace(Plan(), drains={"node-2": Drain(1)})
    assert not departed(observed, drained, NOW_MS)
    observed.take_members(["node-2"], 1.0)
    assert departed(observed, Plan(), NOW_MS).nodes == {"node-1"}


def test_a_unit_that_its_node_does_not_have_any_more(observed: ObservedCluster) -> None:
    observed.take_statement(msgspec.structs.replace(GONE, name="node-1", units=1, incarnation=2), 1.0)
    observed.take_members(["node-1", "node-2"], 1.0)
    unit = CopyName("node-1", 1)
    assert departed(observed, Plan(), NOW_MS) == Departed(units=frozenset({unit}))
    # The copy there is about to be moved to another unit.
    assert not departed(observed, Plan(1, {TASK_KEY: (PlannedCopy(unit, "f"),)}), NOW_MS)


def test_not_a_unit_of_a_member_whose_record_is_on_its_way() -> None:
    observed = ObservedCluster(ClusterPolicy(), 0.0)
    observed.take_report(encode_report(report(status(), node="node-3", unit=0)), 0.0)
    observed.take_members(["node-3"], 0.0)
    assert not departed(observed, Plan(), NOW_MS)
    observed.take_members([], 1.0)
    assert departed(observed, Plan(), NOW_MS) == Departed(units=frozenset({CopyName("node-3", 0)}))


def test_restarts_under_new_names_leave_nothing_in_memory(observed: ObservedCluster) -> None:
    sizes = set()
    for day in range(1, 50):
        name, now_s = f"node-{day + 2}", 86_400.0 * day
        said_ms = NOW_MS + day * DAY_MS
        observed.take_statement(msgspec.structs.replace(GONE, name=name, said_ms=said_ms), now_s)
        observed.take_members([name], now_s)
        for generation in (1, 2):
            record = report(status(created=day), node=name, unit=0, generation=generation)
            observed.take_report(encode_report(record), now_s)
        gone = departed(observed, Plan(), said_ms)
        observed.forget(gone.nodes, gone.units)
        observed.reports.forget_silent(observed.reports.units(), now_s)
        # Reports of copies are kept by the plan, which names none.
        observed.view({}, Plan(), now_s)
        if day > 3:
            sizes.add(_size(observed))
    assert len(sizes) == 1


def _size(what: object) -> int:
    """The number of entries of all tables in an object of this program, and in what it has."""
    return sum(
        len(each)
        if isinstance(each, dict | set)
        else _size(each)
        if type(each).__module__.startswith("railgun")
        else 0
        for each in getattr(what, "__dict__", {}).values()
    )


def test_a_front_end_forgets_units_that_are_silent_and_not_planned() -> None:
    table, planned = ReportTable(), CopyName("node-2", 1)
    # It was written before the front-end began.
    table.take(encode_report(report(status(), node="node-3")))
    for unit in (0, 1):
        table.take(encode_report(report(status(), node="node-2", unit=unit)), 10.0)
    table.forget_silent({planned, CopyName("node-3", 0)}, 10.0 + FORGOTTEN_S)
    assert len(table.units()) == 3
    table.forget_silent({planned}, 10.0 + FORGOTTEN_S)
    assert table.units() == [CopyName("node-2", 0), planned]
    assert table.answered_at_s(TASK_KEY) == 10.0
    table.forget_silent({planned}, 10.1 + FORGOTTEN_S)
    assert [each.copy for each in table.copies(TASK_KEY)] == [planned]
    assert table.answered_at_s(TASK_KEY) == -math.inf
    table.forget_silent((), 10.1 + FORGOTTEN_S)
    assert _size(table) == 0
