"""Until all copies of a task that are planned on other nodes report that they have caught up, its data is kept here."""

import numpy as np

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import encode_plan
from railgun.cluster.reports import encode_report
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.unit.clock import Clock
from railgun.unit.copies import UnitCopies
from railgun.unit.report_reader import Heard
from railgun.wire.records import Records
from tests.cluster.some_reports import TASK, report, status

KEY = TaskKey(**TASK)
NODES = ("node-1", "node-2", "node-3")


class Unit:
    """A unit of node-1, which hears what a test says."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heard: list[Heard] = []
        self._plan = Plan()
        self.copies = UnitCopies(
            CopyName("node-1", 0), 1, self._drain, "plan", clock=Clock(lambda: self.now_s)
        )

    def plan(self, *nodes: str, wanted: int = 2, takeover_s: float = 1.0) -> None:
        copies = {KEY: tuple(PlannedCopy(CopyName(node, 0), "0" * 16) for node in nodes)}
        plan = Plan(self._plan.epoch + 1, copies, policy=ClusterPolicy(wanted, takeover_s))
        self._hear("plan", *(record for _, record in encode_plan(plan, self._plan, incarnation=1)))
        self._plan = plan

    def report(self, node: str, state: CopyState) -> None:
        self._hear("reports", encode_report(report(status(state=state), node=node)))

    @property
    def is_elsewhere(self) -> bool:
        return self.copies.are_elsewhere(KEY)

    def _hear(self, topic: str, *records: bytes) -> None:
        offsets = np.arange(len(records), dtype=np.int64)
        fetched = Fetched(TopicPartition(topic, 0), offsets, Records.of(list(records)), len(records))
        self._heard.append(Heard(self.now_s, [fetched]))
        self.copies.decide([])

    def _drain(self) -> list[Heard]:
        heard, self._heard = self._heard, []
        return heard


def test_all_that_are_planned_elsewhere_have_to_have_caught_up() -> None:
    unit = Unit()
    assert not unit.is_elsewhere
    unit.plan("node-2", "node-3")
    unit.report("node-2", CopyState.ANSWERING)
    assert not unit.is_elsewhere
    unit.report("node-3", CopyState.BEHIND)
    assert not unit.is_elsewhere
    unit.report("node-3", CopyState.SILENT)
    assert unit.is_elsewhere
    unit.report("node-2", CopyState.FAILED)
    assert not unit.is_elsewhere


def test_fewer_than_are_wanted_are_not_enough() -> None:
    unit = Unit()
    for node in NODES[1:]:
        unit.report(node, CopyState.SILENT)
    unit.plan("node-2")
    assert not unit.is_elsewhere
    unit.plan("node-2", "node-3")
    assert unit.is_elsewhere


def test_a_copy_on_the_node_itself_is_not_elsewhere() -> None:
    unit = Unit()
    for node in NODES:
        unit.report(node, CopyState.SILENT)
    unit.plan("node-2", "node-1")
    assert not unit.is_elsewhere
    unit.plan("node-2", "node-3")
    assert unit.is_elsewhere


def test_what_was_heard_long_ago_says_nothing() -> None:
    unit = Unit()
    unit.plan("node-2", "node-3")
    for node in NODES[1:]:
        unit.report(node, CopyState.SILENT)
    assert unit.is_elsewhere
    unit.now_s += 60.0
    assert not unit.is_elsewhere


def test_how_long_a_copy_may_be_silent_is_what_the_plan_says() -> None:
    unit = Unit()
    unit.plan("node-2", "node-3", takeover_s=20.0)
    for node in NODES[1:]:
        unit.report(node, CopyState.SILENT)
    unit.now_s += 15.0
    assert unit.is_elsewhere
    unit.plan("node-2", "node-3", takeover_s=10.0)
    assert not unit.is_elsewhere
