"""A silent copy whose unit does not hear even itself says that it is behind; one that answers goes on."""

import pytest

from railgun.cluster.answering import Answering
from railgun.cluster.copies import CopyName, CopyReport, CopyState, LogPoint
from railgun.cluster.hearing import Hearing, Timing

ME, OTHER = CopyName("me", 0), CopyName("other", 0)
TIMING = Timing(takeover_s=1.0, patience_s=3.0)
_STEP_S, _INTERVAL_S, _AT = 0.05, 0.2, 10


class Unit:
    """A unit that reports five times a second. It reads its reports and those of another unit as long as it `hears`;
    its own are in the log as long as that `acknowledges`.
    """

    def __init__(self, *, is_first: bool) -> None:
        self.now_s, self.hears, self.acknowledges = 0.0, True, True
        self.hearing = Hearing(TIMING, self.now_s)
        order = [ME, OTHER] if is_first else [OTHER, ME]
        self.answering = Answering(ME, order, TIMING, self.hearing)
        self._other = CopyState.SILENT if is_first else CopyState.ANSWERING
        self._steps = self._number = self._acknowledged = 0

    def pass_s(self, seconds: float) -> set[CopyState]:
        """Let time pass, and return what the copy reported meanwhile."""
        states = set()
        for _ in range(round(seconds / _STEP_S)):
            self.now_s += _STEP_S
            self._steps += 1
            self.hearing.look(self.now_s)
            if self.hears:
                self._hear()
            if self._steps % round(_INTERVAL_S / _STEP_S) == 0:
                if self.acknowledges and self._number:
                    self._acknowledged = self._number
                    self.hearing.acknowledge(self._number, self.now_s)
                self._number = self.hearing.write(self.now_s, _INTERVAL_S)
            self.answering.decide(self.now_s, _AT, _AT)
            states.add(self.answering.state(self.now_s))
        return states

    def _hear(self) -> None:
        if self._number and self.acknowledges:
            self.hearing.read(self._number, self.now_s)
        point = LogPoint(_AT)
        report = CopyReport(OTHER, 1, self._other, False, _AT, point, _AT, _INTERVAL_S)
        self.answering.hear(report, self.now_s)


@pytest.fixture
def silent() -> Unit:
    made = Unit(is_first=False)
    made.pass_s(5.0)
    assert made.pass_s(60.0) == {CopyState.SILENT}
    return made


def test_one_that_does_not_hear_itself_is_behind(silent: Unit) -> None:
    silent.hears = False
    assert silent.pass_s(2.5) == {CopyState.SILENT}
    silent.pass_s(1.5)
    assert silent.pass_s(5.0) == {CopyState.BEHIND}
    silent.hears = True
    silent.pass_s(0.5)
    assert silent.pass_s(5.0) == {CopyState.SILENT}


def test_while_the_broker_is_away_it_is_not(silent: Unit) -> None:
    # What is acknowledged last does not come back before the broker goes.
    silent.hears = False
    silent.pass_s(0.3)
    silent.acknowledges = False
    assert silent.pass_s(90.0) == {CopyState.SILENT}
    # It takes reports before it gives them back.
    silent.acknowledges = True
    assert silent.pass_s(2.0) == {CopyState.SILENT}
    silent.hears = True
    assert silent.pass_s(10.0) == {CopyState.SILENT}


def test_nor_when_it_is_away_for_a_moment(silent: Unit) -> None:
    silent.hears = False
    silent.pass_s(0.3)
    silent.acknowledges = False
    silent.pass_s(2.0)
    silent.acknowledges = True
    assert silent.pass_s(0.4) == {CopyState.SILENT}
    silent.hears = True
    assert silent.pass_s(10.0) == {CopyState.SILENT}


def test_one_that_answers_goes_on() -> None:
    first = Unit(is_first=True)
    first.pass_s(5.0)
    first.hears = False
    assert first.pass_s(60.0) == {CopyState.ANSWERING}
