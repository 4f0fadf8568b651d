"""A unit whose own reports are in the log and do not come back cannot hear others; one that was paused can."""

import pytest

from railgun.cluster.hearing import Hearing, Timing

TIMING = Timing(takeover_s=1.0, deaf_s=15.0)


class Unit:
    """A unit that reports each second; its reports come back in the next, as long as `hears`."""

    def __init__(self) -> None:
        self.now_s, self.hears, self.acknowledges = 0.0, True, True
        self.hearing = Hearing(TIMING, self.now_s)
        self._number = 0

    def pass_s(self, seconds: int) -> None:
        for _ in range(seconds):
            for _ in range(10):
                self.now_s += 0.1
                self.hearing.look(self.now_s)
            if self._number and self.hears:
                self.hearing.read(self._number, self.now_s)
            self._number = self.hearing.write(self.now_s, 0.2)
            if self.acknowledges:
                self.hearing.acknowledge(self._number, self.now_s)

    @property
    def is_deaf(self) -> bool:
        return self.hearing.is_deaf(self.now_s)


@pytest.fixture
def unit() -> Unit:
    made = Unit()
    made.pass_s(60)
    assert not made.is_deaf
    return made


def test_one_that_does_not_hear_itself_is_deaf(unit: Unit) -> None:
    unit.hears = False
    unit.pass_s(15)
    assert not unit.is_deaf
    unit.pass_s(2)
    assert unit.is_deaf
    unit.hears = True
    unit.pass_s(1)
    assert not unit.is_deaf


def test_while_the_broker_is_away_nobody_is_deaf(unit: Unit) -> None:
    unit.hears = unit.acknowledges = False
    unit.pass_s(1)
    unit.hears = True
    unit.pass_s(1)
    unit.hears = False
    unit.pass_s(600)
    assert not unit.is_deaf


def test_what_the_broker_had_before_it_went_away_makes_nobody_deaf(unit: Unit) -> None:
    unit.hears = False
    unit.pass_s(1)
    unit.acknowledges = False
    unit.pass_s(600)
    assert not unit.is_deaf
    # The next one is acknowledged before the first one comes back.
    unit.acknowledges = True
    unit.pass_s(1)
    assert not unit.is_deaf
    unit.pass_s(17)
    assert unit.is_deaf


def test_after_a_pause_time_counts_anew(unit: Unit) -> None:
    unit.hears = False
    unit.pass_s(5)
    unit.now_s += 600
    # Nothing was looked at yet.
    assert not unit.is_deaf
    unit.pass_s(10)
    assert not unit.is_deaf
    unit.pass_s(8)
    assert unit.is_deaf
