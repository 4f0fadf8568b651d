"""For how long a unit counts as silent: never before its first heartbeat, nor while its node was halted itself."""

import pytest

from railgun.cluster.silence import UNIT_SILENT_S
from railgun.node.liveness import LOOK_MAX_S, Liveness

_LOOKS_S = 0.05


class Watched:
    """A unit whose heartbeats a test sends, and a node that looks every so often."""

    def __init__(self) -> None:
        self.liveness, self.now_s, self.heartbeats = Liveness(), 1_000.0, 0

    def look_for(self, seconds: float, each_s: float = _LOOKS_S, beats: int = 0) -> float:
        """Look for a while, with so many heartbeats before each look; returns how long the unit is silent by then."""
        for _ in range(round(seconds / each_s)):
            self.now_s += each_s
            self.heartbeats += beats
            self.liveness.look(self.now_s, self.heartbeats)
        return self.liveness.silent_s


def test_a_unit_that_starts_may_be_silent_for_ever() -> None:
    watched = Watched()
    assert watched.look_for(3_600.0) == 0.0
    assert not watched.liveness.is_silent


def test_silence_counts_from_the_last_heartbeat_on() -> None:
    watched = Watched()
    watched.look_for(10.0, each_s=1.0, beats=1)
    assert watched.look_for(UNIT_SILENT_S - 0.1) == pytest.approx(UNIT_SILENT_S - 0.1)
    assert not watched.liveness.is_silent
    watched.look_for(0.2)
    assert watched.liveness.is_silent
    assert watched.look_for(60.0) == pytest.approx(60.0 + UNIT_SILENT_S + 0.1)
    watched.look_for(_LOOKS_S, beats=1)
    assert not watched.liveness.is_silent


@pytest.mark.parametrize("halted_s", [6.0, 60.0, 86_400.0])
def test_a_node_that_was_halted_itself_excuses_its_units(halted_s: float) -> None:
    watched = Watched()
    watched.look_for(1.0, beats=1)
    # The unit was halted too, so nothing has come when the node looks again.
    assert watched.look_for(halted_s, each_s=halted_s) == LOOK_MAX_S
    assert watched.look_for(1.0) <= LOOK_MAX_S + 1.1
    assert not watched.liveness.is_silent
