"""Nodes on a real broker: one leads, its plan places every task, and another goes on with it when it is gone."""

import logging
import threading
import time
from dataclasses import replace

import pytest

from railgun.cluster.copies import CopyState
from railgun.cluster.log_room import LogBounds
from railgun.cluster.records import NodeRecord, encode_statement
from railgun.cluster.reports import UnitReport, decode_report, encode_report, unit_key
from railgun.messaging.kafka.membership import GroupMembership
from railgun.node.leader import leading
from railgun.node.parent import UnitEnded
from tests.cluster.some_reports import LEFT_OVER, report, status
from tests.node.leader.leading_nodes import Nodes
from tests.unit.local_units import awaited


def test_one_leads_and_all_see_its_plan(nodes: Nodes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "railgun.node")
    nodes.start(1)
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    nodes.start(2)
    awaited(lambda: nodes.places() == {frozenset({"node-1", "node-2"})})
    assert nodes.leaders() == [1]
    epoch = nodes.running[1].plan.epoch
    # It closes: the other one leads at once, and goes on with its plan.
    nodes.stop(1)
    awaited(lambda: nodes.leaders() == [2])
    assert nodes.running[2].plan.epoch >= epoch
    nodes.start(3)
    awaited(lambda: nodes.leaders() == [2] and any("node-3" in each for each in nodes.places()))
    for said in (
        "this node leads, from plan 0 on; nodes that live: node-1",
        "plan 1: 4 moves, 4 copies to make",
        "node-2 has joined",
        "this node leads no more: it stops",
        "node-3 has joined",
    ):
        assert caplog.messages.count(said) == 1, caplog.messages


def test_nodes_that_say_they_have_data_keep_their_tasks_when_the_plan_is_lost(nodes: Nodes) -> None:
    """No unit has reported a task, and no plan names one. They are not new all the same: what a node said is kept."""
    tasks = list(nodes.player.registry.snapshot().catalog.task_keys)
    nodes.start(2, disk=tasks)
    awaited(lambda: nodes.places() == {frozenset({"node-2"})})
    nodes.stop(2)
    nodes.player.transport.delete_topic(nodes.player.registry.topics.assignment)
    # The first one that leads has no data, and is alone at first.
    first = nodes.start(1)
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    nodes.start(2, disk=tasks)
    awaited(lambda: nodes.places() == {frozenset({"node-1", "node-2"})})
    awaited(lambda: {copies[0].copy.node for copies in first.plan.copies.values()} == {"node-2"})


def test_a_node_whose_configuration_differs_from_the_leaders_says_so_once(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    nodes.start(1)
    awaited(lambda: nodes.leaders() == [1])
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    nodes.start(2, moves_limit=7)
    awaited(lambda: nodes.places() == {frozenset({"node-1", "node-2"})})
    policy = nodes.running[2].plan.policy
    assert policy is not None
    assert policy.moves_limit == 4

    def said() -> list[str]:
        return [text for text in map(logging.LogRecord.getMessage, caplog.records) if "differs" in text]

    awaited(lambda: bool(said()))
    assert len(said()) == 1
    assert "moves_limit is 4, here 7" in said()[0]
    # It leads: what its file says counts now.
    nodes.stop(1)
    awaited(lambda: nodes.running[2].plan.policy == replace(policy, moves_limit=7))


@pytest.mark.parametrize("follows_first", [False, True])
def test_the_leader_deletes_what_was_said_of_nodes_that_are_gone_for_good(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, follows_first: bool
) -> None:
    """Also if it has read all that was said before it learns that it leads: what it forgot, it could not delete."""
    long_ago = NodeRecord(name="gone", folder="f", incarnation=1, host="h", units=1, release="0")
    report = UnitReport(node="gone", unit=0, generation=1, interval_ms=200, copies=[])
    topics = nodes.player.registry.topics
    nodes.start(1)
    awaited(lambda: nodes.leaders() == [1])
    nodes.stop(1)
    nodes.write(topics.nodes, long_ago.key, encode_statement(long_ago))
    nodes.write(topics.positions, unit_key(*report.copy), encode_report(report))
    if follows_first:
        told, asked = threading.Event(), list[None]()

        def leads(member: GroupMembership) -> bool:
            asked.append(None)
            return told.is_set() and member.__dict__["leads"]

        monkeypatch.setattr(
            GroupMembership,
            "leads",
            property(leads, lambda member, value: member.__dict__.update(leads=value)),
            raising=False,
        )
    node = nodes.start(1)
    if follows_first:
        awaited(node.leading._is_informed)
        # Each round asks twice, so whole rounds follow.
        before = len(asked)
        awaited(lambda: len(asked) > before + 8)
        told.set()
    # The node itself may be said of behind that.
    awaited(lambda: {(b"gone", None), (b"gone/drain", None)} <= set(nodes.written(topics.nodes)))
    awaited(lambda: (b"gone/0", None) in nodes.written(topics.positions))
    assert [*node.leading._observed.nodes] == ["node-1"]


def test_what_is_left_over_from_before_copies_is_skipped_silently(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    topic = nodes.player.registry.topics.positions
    for number in range(2):
        nodes.write(topic, b"railgun.s.by.k-%d" % number, LEFT_OVER)
    node = nodes.start(1)
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    assert node.leading._observed.reports.units() == []
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_unit_that_has_ended_is_reported_closed_in_its_name(nodes: Nodes) -> None:
    def reported(unit: int, generation: int, *states: CopyState) -> UnitReport:
        copies = [status(partition=number, state=state, replied=5) for number, state in enumerate(states)]
        return report(*copies, node="node-1", unit=unit, generation=generation)

    topic = nodes.player.registry.topics.positions
    answering, failed, closed = CopyState.ANSWERING, CopyState.FAILED, CopyState.CLOSED
    # The second is closed already, the third has begun anew since.
    reports = [reported(0, 100, answering, failed), reported(1, 100, closed), reported(2, 300, answering)]
    # A new leader forgets the reports of units that its node does not have.
    node = nodes.start(1, units=4)
    awaited(lambda: nodes.leaders() == [1])
    for each in reports:
        nodes.write(topic, unit_key(*each.copy), encode_report(each))
    heard = node.leading._observed.reports
    awaited(lambda: len(heard.units()) == 3)
    node.ended.extend(UnitEnded(unit, 200) for unit in (2, 1, 3, 0))
    awaited(lambda: len(nodes.written(topic)) > 3)
    key, record = nodes.written(topic)[3]
    assert (key, record is not None) == (b"node-1/0", True)
    found = decode_report(record or b"")
    first, second = found.copies
    assert (found.generation, first.state, first.leaving, first.replied) == (100, closed, True, 5)
    assert second == reports[0].copies[1]
    # Nothing is said twice: the next one is of another unit.
    awaited(lambda: heard.last(found.copy) == found)
    node.ended.extend([UnitEnded(0, 200), UnitEnded(2, 400)])
    awaited(lambda: len(nodes.written(topic)) > 4)
    assert [key for key, _ in nodes.written(topic)[3:]] == [b"node-1/0", b"node-1/2"]


def test_a_leader_that_halts_is_replaced_and_writes_nothing_more(nodes: Nodes) -> None:
    first = nodes.start(1)
    awaited(lambda: nodes.leaders() == [1])
    nodes.start(2)
    awaited(lambda: nodes.places() == {frozenset({"node-1", "node-2"})})
    first.is_halted = True
    # A client goes on sending heartbeats while nobody polls: `max.poll.interval.ms` ends its membership.
    awaited(lambda: nodes.leaders() == [2])
    written = nodes.running[2].plan
    first.is_halted = False
    awaited(lambda: not first.leading.leads)
    nodes.start(3)
    nodes.stop(1)
    awaited(lambda: nodes.leaders() == [2] and any("node-3" in each for each in nodes.places()))
    assert nodes.running[2].plan.epoch > written.epoch


def test_the_leader_warns_of_logs_that_will_lose_what_a_copy_needs(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leading, "_LOGS_S", 0.0)
    node = nodes.start(1)
    awaited(lambda: nodes.places() == {frozenset({"node-1"})})
    task, *_ = sorted(node.plan.copies)
    (copy,) = (each.copy for each in node.plan.copies[task])
    said = status(**task._asdict(), checkpoint=5, checkpoint_ms=time.time_ns() // 1_000_000)
    nodes.write(
        nodes.player.registry.topics.positions,
        unit_key(*copy),
        encode_report(report(said, node=copy.node, unit=copy.unit)),
    )
    awaited(lambda: bool([*node.leading._observed.reports.copies(task)]))

    def warned() -> list[str]:
        return [each for each in caplog.messages if "last checkpoint needs" in each]

    def short() -> int:
        health = node.leading.health()
        assert health is not None
        return health.logs_short

    node.logs = {task: LogBounds(0, 9, 3_600_000)}
    assert (short(), warned()) == (0, [])
    node.logs = {task: LogBounds(6, 9, 3_600_000)}
    awaited(lambda: bool(warned()))
    assert short() == 1
    assert f"1 log has lost records that a copy's last checkpoint needs: {task} ({copy}); " in warned()[0]
    rounds = node.leading._cluster_log
    rounds.logs({}, time.monotonic())
    awaited(lambda: len(warned()) == 2)


def test_a_clock_that_is_an_hour_off_is_warned_of_once(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        return [text for text in caplog.messages if "clock" in text]

    now_ms = leading._now_ms
    monkeypatch.setattr(leading, "SAID_AGAIN_S", 0.2)
    nodes.start(1)
    awaited(lambda: nodes.leaders() == [1])
    assert said() == []
    for ahead_ms, words in ((3_600_500, "1 h ahead of"), (0, ""), (-3_700_000, "behind")):
        monkeypatch.setattr(leading, "_now_ms", lambda ahead_ms=ahead_ms: now_ms() + ahead_ms)
        awaited(lambda words=words: words in "".join(said()[-1:]))
        time.sleep(2.0)
    assert [text.partition(":")[0].partition(" is ")[2][:5] for text in said()] == ["1 h a", "1 h 1"]
