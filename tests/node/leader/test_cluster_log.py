"""What the leader logs of its cluster: a line for each event, whatever number of tasks it is about."""

import logging
from dataclasses import replace

import pytest

from railgun.cluster.copies import CopyName
from railgun.cluster.log_room import LogRoom
from railgun.cluster.plan import Drain, LostCopy, Plan, PlannedCopy
from railgun.node.leader.cluster_log import ClusterLog
from tests.cluster.clusters import task_names

TASKS = task_names(20)
A, B, C = (CopyName(name, 0) for name in "abc")
ALL = {"a", "b", "c"}
_HERE = (PlannedCopy(A, "f"), PlannedCopy(B, "f"))
PLAN = Plan(3, dict.fromkeys(TASKS, _HERE), dict.fromkeys(TASKS, (A, B)), "cause")


@pytest.fixture
def log() -> ClusterLog:
    return ClusterLog()


def test_nodes_that_come_and_go(log: ClusterLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log.members({"a"}, {"a"})
    log.members({"a"}, {"a", "b", "c"})
    log.members(ALL, {"a", "c"})
    log.members(set(), {f"n{number}" for number in range(9)})
    assert caplog.messages == [
        "b, c have joined",
        "b is away",
        "n0, n1, n2, n3, n4 and 4 more have joined",
    ]


def test_a_drain_from_its_beginning_to_its_end(log: ClusterLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    drains = {"b": Drain(1)}
    begun = replace(PLAN, epoch=4, drains=drains, target=dict.fromkeys(TASKS, (A, C)), cause="other")
    there = (PlannedCopy(A, "f"), PlannedCopy(C, "f"))
    halfway = replace(begun, epoch=5, copies={**PLAN.copies, TASKS[0]: there})
    done = replace(begun, epoch=6, copies=dict.fromkeys(TASKS, there))
    log.plan(
        PLAN, replace(begun, copies={**PLAN.copies, TASKS[0]: (*_HERE, PlannedCopy(C, "f"))}), ALL, 100.0
    )
    log.plan(begun, halfway, ALL, 101.0)
    log.plan(halfway, replace(halfway, epoch=6), ALL, 111.0)
    log.plan(halfway, done, ALL, 112.0)
    log.plan(done, replace(done, epoch=7), ALL, 130.0)
    log.plan(done, replace(done, epoch=8, drains={}), ALL, 131.0)
    refused = replace(done, epoch=9, drains={"c": Drain(2, refusal="1 node would be left")})
    log.plan(replace(done, drains={}), refused, ALL, 132.0)
    log.plan(refused, replace(refused, epoch=10), ALL, 133.0)
    assert caplog.messages == [
        "b is being drained: 20 copies",
        "plan 4: 20 moves, 20 copies to make",
        "plan 6: 19 moves, 19 copies to make",
        "b is drained: it has no copies any more",
        "plan 6: all copies are where they are to be",
        "b is drained no more: it is used again",
        "c is not drained: 1 node would be left",
    ]


def test_copies_that_are_made_elsewhere(log: ClusterLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lost = {task: {"b": LostCopy(1, has_failed=False)} for task in TASKS}
    elsewhere = replace(PLAN, epoch=4, lost=lost, target=dict.fromkeys(TASKS, (A, C)), cause="other")
    log.plan(PLAN, elsewhere, ALL, 100.0)
    (line, _) = caplog.messages
    assert line.startswith(
        "b has lost 20 copies, for longer than cluster.replace_after_s, to be made on other nodes: "
    )
    assert line.endswith("and 15 more")
    caplog.clear()
    log.plan(elsewhere, replace(elsewhere, epoch=5), ALL, 101.0)
    assert caplog.messages == []
    log.plan(PLAN, replace(elsewhere, lost={}), {"a", "c"}, 200.0)
    stays = "b stays away: its 20 copies are made on other nodes, as far as there are some"
    assert caplog.messages[0] == stays


def test_logs_that_will_lose_records_are_logged_when_there_are_others_and_every_hour(
    log: ClusterLog, caplog: pytest.LogCaptureFixture
) -> None:
    rooms = {task: LogRoom(0, 5, A, 1_000, 499) for task in TASKS[:2]}
    log.logs({}, 0.0)
    log.logs(dict([*rooms.items()][:1]), 60.0)
    log.logs(dict([*rooms.items()][:1]), 120.0)
    assert len(caplog.messages) == 1
    log.logs(rooms, 180.0)
    assert [text.split()[0] for text in caplog.messages] == ["1", "2"]
    log.logs(rooms, 180.0 + 3_599.0)
    assert len(caplog.messages) == 2
    log.logs(rooms, 180.0 + 3_600.0)
    assert len(caplog.messages) == 3
    log.logs({}, 4_000.0)
    log.logs(rooms, 4_060.0)
    assert len(caplog.messages) == 4
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
