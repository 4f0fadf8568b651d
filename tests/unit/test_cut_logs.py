"""A log that seems too short: its end is asked for beside the loop, twice, and rarely where no broker answers."""

from types import SimpleNamespace
from typing import cast

import pytest

from railgun.cluster.copies import LogPoint
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.transport import TopicPartition, Transport
from railgun.task.errors import LogCutError
from railgun.unit.clock import Clock
from railgun.unit.cut_logs import CUT_S, CutLogs
from tests.unit.kept_lane import KeptLane

WHERE = TopicPartition("railgun.s.by.card", 0)
STEP_S = 0.5


class Log:
    """A silent copy at offset 90, and a log whose end is asked for. end: None if no broker answers."""

    def __init__(self) -> None:
        self.end: int | None = 90
        self.asked, self.now_s = 0, 0.0
        self.lane = KeptLane()
        self.host = SimpleNamespace(
            place=SimpleNamespace(where=WHERE, identity="s/card/0"),
            limit=LogPoint(100),
            position=90,
            lag=0,
        )
        self._logs = CutLogs(
            cast(Transport, self), self.lane, Clock(lambda: self.now_s, lambda seconds: None)
        )

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        # Questions about other logs wait behind it.
        assert within_s is not None
        assert within_s <= 2.0
        self.asked += 1
        if self.end is None:
            raise TransportUnavailableError(str(WHERE), "the broker did not answer", "Try again")
        return self.end

    def pass_s(self, seconds: float, *, runs: bool = True) -> list[LogCutError]:
        """Let rounds of a unit pass. runs: whether what was submitted is done meanwhile."""
        found = []
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            found += [error for _, error in self._logs.find([cast(TaskHost, self.host)])]
            if runs:
                self.lane.run()
        return found


@pytest.fixture
def log() -> Log:
    return Log()


def test_one_that_is_short_twice_has_lost_records(log: Log) -> None:
    assert not log.pass_s(2 * CUT_S)
    assert log.asked == 1
    [error] = log.pass_s(CUT_S + 2 * STEP_S)[:1]
    assert "the log ends at 90" in str(error)
    assert error.position == 100


def test_it_is_asked_beside_the_loop(log: Log) -> None:
    assert not log.pass_s(10 * CUT_S, runs=False)
    assert not log.asked
    # It is asked once, however long that takes.
    assert len(log.lane.waiting) == 1


def test_while_no_broker_answers_it_is_asked_now_and_then(log: Log) -> None:
    log.end = None
    assert not log.pass_s(100 * CUT_S)
    assert 50 < log.asked <= 100


def test_what_comes_after_it_was_asked_is_no_loss(log: Log) -> None:
    log.end = 100
    for _ in range(4):
        while not log.lane.waiting:
            assert not log.pass_s(STEP_S, runs=False)
        log.lane.run()
        # Others go on meanwhile, and their reports come before the answer is taken.
        log.end += 10
        log.host.limit = LogPoint(log.end)
        assert not log.pass_s(STEP_S, runs=False)
    assert log.asked == 4


def test_once_it_has_come_up_it_is_asked_no_more(log: Log) -> None:
    log.pass_s(CUT_S + STEP_S)
    log.host.position = 100
    asked = log.asked
    assert not log.pass_s(4 * CUT_S)
    assert log.asked == asked
