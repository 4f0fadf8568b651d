"""How often units have ended by themselves lately, as a node's record says it."""

from railgun.cluster.records import EndedUnit
from railgun.cluster.silence import ENDED_LATELY_S
from railgun.node.leader.ended_units import EndedUnits
from railgun.node.parent import UnitEnded


def test_ends_of_each_unit_are_counted_for_a_while_with_the_last_error() -> None:
    ends = EndedUnits()
    assert ends.lately(0) == []
    for unit, at_ms, error in (
        (1, 1_000, "no space"),
        (0, 2_000, "killed by signal 9"),
        (1, 3_000, "it hung"),
    ):
        ends.note(UnitEnded(unit, at_ms, error))
    first = EndedUnit(unit=0, times=1, last_ms=2_000, error="killed by signal 9")
    assert ends.lately(3_000) == [first, EndedUnit(unit=1, times=2, last_ms=3_000, error="it hung")]
    later_ms = 1_000 * ENDED_LATELY_S + 1_000
    assert ends.lately(later_ms) == [first, EndedUnit(unit=1, times=1, last_ms=3_000, error="it hung")]
    assert ends.lately(later_ms + 2_000) == []
