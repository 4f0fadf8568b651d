"""Once another topic was accepted as a task's log, what copies replied to in the one before says nothing."""

from types import SimpleNamespace
from typing import cast

from railgun.cluster.copies import CopyName, Cut, LogPoint
from railgun.host.task_host import TaskHost
from tests.cluster.some_reports import report, status
from tests.unit.hearing_unit import KEY, HearingUnit

NODES = ("node-2", "node-1")


def _limit(unit: HearingUnit) -> LogPoint | None:
    unit.copies.follow({KEY: [CopyName(node, 0) for node in NODES]})
    # Such a host only gets the limit.
    host = SimpleNamespace(place=SimpleNamespace(key=KEY), is_running=True, is_filling=True, limit=None)
    unit.copies.decide([cast(TaskHost, host)])
    return host.limit


def test_points_of_another_log_do_not_count() -> None:
    unit = HearingUnit()
    unit.plan(*NODES)
    unit.report(report(status(replied=300, epoch=0), node="node-2"))
    assert _limit(unit) == LogPoint(300, 0)
    unit.plan(*NODES, cut=Cut(7, -1, "second", 7))
    assert _limit(unit) == LogPoint(0)
    # Nor does what a copy of the other log says later, such as one that has failed.
    unit.report(report(status(replied=301, epoch=0), node="node-3"))
    unit.report(report(status(replied=302, epoch=0, topic_id="first"), node="node-3"))
    assert _limit(unit) == LogPoint(0)
    unit.report(report(status(replied=9, epoch=0, topic_id="second"), node="node-2"))
    assert _limit(unit) == LogPoint(9, 0)
    # A copy that is made later hears the same.
    unit.plan(*NODES, cut=Cut(8, 3, "second", 7))
    assert _limit(unit) == LogPoint(8)


def test_points_count_as_ever_where_a_log_has_lost_its_end() -> None:
    unit = HearingUnit()
    unit.plan(*NODES, cut=Cut(100, 3))
    unit.report(report(status(replied=300, epoch=3), node="node-2"))
    assert _limit(unit) == LogPoint(300, 3)
