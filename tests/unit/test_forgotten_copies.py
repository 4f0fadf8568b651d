"""A unit forgets what it heard of copies that are gone, except for the point up to which events were answered."""

from railgun.cluster.copies import CopyName
from railgun.cluster.silence import FORGETS_S, FORGOTTEN_S
from tests.cluster.some_reports import report, status
from tests.unit.hearing_unit import KEY, HearingUnit


def _known(unit: HearingUnit) -> list[str]:
    return sorted(copy.node for copy in unit.copies._heard.get(KEY, {}))


def _let_pass(unit: HearingUnit, seconds: float) -> None:
    until_s = unit.now_s + seconds
    while unit.now_s < until_s:
        unit.now_s += FORGETS_S
        unit.copies.decide([])


def test_a_copy_that_is_silent_for_a_day_and_not_planned_is_forgotten() -> None:
    unit = HearingUnit()
    unit.plan("node-1", "node-2")
    unit.copies.follow({KEY: [CopyName("node-1", 0), CopyName("node-2", 0)]})
    for node, replied in (("node-2", 1), ("node-3", 5), ("node-4", 9)):
        unit.report(report(status(replied=replied), node=node))
    copy = unit.copies._answering[KEY]
    _let_pass(unit, FORGOTTEN_S - FORGETS_S)
    assert _known(unit) == ["node-2", "node-3", "node-4"]
    _let_pass(unit, 2 * FORGETS_S)
    # Nobody may answer below what node-4 has replied to.
    assert _known(unit) == ["node-2", "node-4"]
    assert sorted(other.node for other in copy._others) == ["node-2", "node-4"]
    assert copy.limit.offset == 9
    unit.report(report(status(replied=10), node="node-2"))
    _let_pass(unit, FORGETS_S)
    assert _known(unit) == ["node-2"]
    assert copy.limit.offset == 10


def test_a_task_that_is_gone_is_forgotten() -> None:
    unit = HearingUnit()
    unit.plan("node-1", "node-2")
    unit.report(report(status(partition=1), node="node-2"), report(status(), node="node-3"))
    _let_pass(unit, FORGOTTEN_S + FORGETS_S)
    assert [key.partition for key in unit.copies._heard] == [KEY.partition]
