"""What a unit makes of reports and plans, without a broker and without tasks."""

import numpy as np

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, Cut
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import encode_plan
from railgun.cluster.reports import UnitReport, encode_report
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.unit.clock import Clock
from railgun.unit.copies import UnitCopies
from railgun.unit.report_reader import Heard
from railgun.wire.records import Records
from tests.cluster.some_reports import TASK

KEY = TaskKey(**TASK)


class HearingUnit:
    """A unit of node-1, which hears what a test says."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._heard: list[Heard] = []
        self._plan = Plan()
        self.copies = UnitCopies(
            CopyName("node-1", 0), 1, self._drain, "plan", clock=Clock(lambda: self.now_s)
        )

    def plan(self, *nodes: str, wanted: int = 2, takeover_s: float = 1.0, cut: Cut | None = None) -> None:
        copies = {KEY: tuple(PlannedCopy(CopyName(node, 0), "0" * 16) for node in nodes)}
        cuts = {} if cut is None else {KEY: cut}
        plan = Plan(self._plan.epoch + 1, copies, policy=ClusterPolicy(wanted, takeover_s), cuts=cuts)
        self._hear("plan", *(record for _, record in encode_plan(plan, self._plan, incarnation=1)))
        self._plan = plan

    def report(self, *reports: UnitReport) -> None:
        self.read(*map(encode_report, reports))

    def read(self, *records: bytes) -> None:
        """Have the unit read records of the topic of positions."""
        self._hear("reports", *records)

    def _hear(self, topic: str, *records: bytes) -> None:
        offsets = np.arange(len(records), dtype=np.int64)
        fetched = Fetched(TopicPartition(topic, 0), offsets, Records.of(list(records)), len(records))
        self._heard.append(Heard(self.now_s, [fetched]))
        self.copies.decide([])

    def _drain(self) -> list[Heard]:
        heard, self._heard = self._heard, []
        return heard
