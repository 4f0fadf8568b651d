"""Until all copies of a task that are planned on other nodes report that they have caught up, its data is kept here."""

from dataclasses import replace
from pathlib import Path

import pytest

from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.records import encode_plan
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.unit.moved_copies import reading_plan
from tests.cluster.some_reports import report, status
from tests.unit.hearing_unit import KEY, HearingUnit

NODES = ("node-1", "node-2", "node-3")


class _Unit(HearingUnit):
    def say(self, node: str, state: CopyState) -> None:
        """Report the copy of a node."""
        self.report(report(status(state=state), node=node))

    @property
    def is_elsewhere(self) -> bool:
        return self.copies.are_elsewhere(KEY)


def test_all_that_are_planned_elsewhere_have_to_have_caught_up() -> None:
    unit = _Unit()
    assert not unit.is_elsewhere
    unit.plan("node-2", "node-3")
    unit.say("node-2", CopyState.ANSWERING)
    assert not unit.is_elsewhere
    unit.say("node-3", CopyState.BEHIND)
    assert not unit.is_elsewhere
    unit.say("node-3", CopyState.SILENT)
    assert unit.is_elsewhere
    unit.say("node-2", CopyState.FAILED)
    assert not unit.is_elsewhere


def test_fewer_than_are_wanted_are_not_enough() -> None:
    unit = _Unit()
    for node in NODES[1:]:
        unit.say(node, CopyState.SILENT)
    unit.plan("node-2")
    assert not unit.is_elsewhere
    unit.plan("node-2", "node-3")
    assert unit.is_elsewhere


def test_a_copy_on_the_node_itself_is_not_elsewhere() -> None:
    unit = _Unit()
    for node in NODES:
        unit.say(node, CopyState.SILENT)
    unit.plan("node-2", "node-1")
    assert not unit.is_elsewhere
    unit.plan("node-2", "node-3")
    assert unit.is_elsewhere


def test_what_was_heard_long_ago_says_nothing() -> None:
    unit = _Unit()
    unit.plan("node-2", "node-3")
    for node in NODES[1:]:
        unit.say(node, CopyState.SILENT)
    assert unit.is_elsewhere
    unit.now_s += 60.0
    assert not unit.is_elsewhere


def test_how_long_a_copy_may_be_silent_is_what_the_plan_says() -> None:
    unit = _Unit()
    unit.plan("node-2", "node-3", takeover_s=20.0)
    for node in NODES[1:]:
        unit.say(node, CopyState.SILENT)
    unit.now_s += 15.0
    assert unit.is_elsewhere
    unit.plan("node-2", "node-3", takeover_s=10.0)
    assert not unit.is_elsewhere


def test_a_plan_that_was_read_anew_counts() -> None:
    unit = _Unit()
    unit.plan("node-2", "node-3")
    for node in NODES[1:]:
        unit.say(node, CopyState.SILENT)
    plan = unit.copies.plan
    assert unit.copies.are_elsewhere(KEY, plan)
    back = (*plan.copies[KEY], PlannedCopy(CopyName("node-1", 1), "f"))
    assert not unit.copies.are_elsewhere(KEY, replace(plan, copies={KEY: back}))


def test_the_plan_is_read_from_its_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(7, {KEY: (PlannedCopy(CopyName("node-1", 1), "f"),)}, {KEY: ()})
    with EmbeddedLog(tmp_path, Durability.OS) as log:
        log.create_topic("assignment", 1)
        read, reads = log.read, list[int]()

        def counted(topic: str, partition: int, from_offset: int, *limits: int) -> Fetched:
            reads.append(from_offset)
            return read(topic, partition, from_offset, *limits)

        monkeypatch.setattr(log, "read", counted)
        with reading_plan(log, TopicPartition("assignment", 0)) as newest:
            assert newest() == Plan()
            records = [record for _, record in encode_plan(plan, Plan(), 1)]
            log.append("assignment", 0, records)
            assert newest() == newest() == plan
            later = replace(plan, epoch=8, copies={KEY: ()})
            log.append("assignment", 0, [record for _, record in encode_plan(later, plan, 1)])
            assert newest() == later
        # What was read is not read again.
        assert reads == [0, len(records)]
