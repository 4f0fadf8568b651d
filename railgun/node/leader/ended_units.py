"""Counts how often the units of a node have ended by themselves lately, for the node's record about itself."""

from collections import deque

from railgun.cluster.records import EndedUnit
from railgun.cluster.silence import ENDED_LATELY_S
from railgun.node.parent import UnitEnded

# More than units that are started again at once can end within that time.
_KEPT_MAX = 4_096


class EndedUnits:
    """Keeps what a node has told of units that ended. Any thread may call every method.

    unreported: those for which no last report was written yet. Who writes it takes them out.
    """

    def __init__(self) -> None:
        self.unreported = deque[UnitEnded]()
        self._told = deque[UnitEnded](maxlen=_KEPT_MAX)

    def note(self, ended: UnitEnded) -> None:
        """Note that a unit has ended."""
        self.unreported.append(ended)
        self._told.append(ended)

    def lately(self, now_ms: int) -> list[EndedUnit]:
        """Return the units that have ended within the last ENDED_LATELY_S, by their number.

        now_ms: the time by the node's clock, in ms since 1970.
        """
        since_ms = now_ms - 1_000 * ENDED_LATELY_S
        found: dict[int, EndedUnit] = {}
        for each in tuple(self._told):
            if each.at_ms > since_ms:
                times = found[each.unit].times + 1 if each.unit in found else 1
                found[each.unit] = EndedUnit(
                    unit=each.unit, times=times, last_ms=each.at_ms, error=each.error
                )
        return [found[unit] for unit in sorted(found)]
