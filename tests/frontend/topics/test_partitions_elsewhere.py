"""How partitions count that other front-ends read: by what is heard of them, and by what was recorded before."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from frontend.topics import backlog
from frontend.topics.alignment import SILENT_S
from frontend.topics.backlog import Backlog
from frontend.topics.input_reports import Heard, InputReport
from frontend.topics.windows import Windows
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

TOPIC = InputTopic("t", "id", 1, (0, 0, 30))
OWN, OTHER, BEGUN_AT_ITS_END = (TopicPartition("t", each) for each in range(3))
ENDS = {OWN: 10, OTHER: 20, BEGUN_AT_ITS_END: 30}
LATENESS_MS = 200


class Elsewhere:
    """A front-end that reads the first partition, and what it hears of the others. now_s: the time."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now_s = 1_000.0
        patch.setattr(backlog, "monotonic", lambda: self.now_s)
        self.heard: dict[int, Heard] = {}
        self.held: set[TopicPartition] = set()
        windows, own = Windows({"t": TOPIC}, 10, len), self
        reports: Any = type("Reports", (), {"of_topic": lambda *_: own.heard, "count": 0})()
        self.backlog = Backlog(7, {"t": TOPIC}, ENDS, self.ends_of, windows, reports)
        windows.assigned([OWN])
        self.backlog.start(OWN, 10)
        self.backlog.assigned([OWN])

    @staticmethod
    def ends_of(wheres: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {where: ENDS[where] for where in wheres}

    def hold(self, partitions: set[TopicPartition]) -> None:
        self.held = partitions

    def hears(self, heard_s: float | None = None, **said: Any) -> None:
        """Of the second partition. heard_s: now unless it says otherwise."""
        report = InputReport(stream="s", created=7, topic="t", id="id", partition=1, **said)
        self.heard[1] = Heard(report, self.now_s if heard_s is None else heard_s)

    def limit(self, lateness_ms: int | None = LATENESS_MS) -> float:
        """Of its own partition, which is not behind."""
        self.now_s += 10.0
        reading: Any = self
        self.backlog.look(reading, lateness_ms)
        return self.backlog._limits.of(OWN)


@pytest.fixture
def front_end(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(monkeypatch)


def test_of_which_nothing_was_heard_yet(front_end: Elsewhere) -> None:
    """It is waited for, and asked. A partition that begins at its end is not."""
    assert (front_end.limit(), front_end.backlog.asks) == (-math.inf, True)
    front_end.now_s += SILENT_S
    assert front_end.limit() == math.inf
    front_end.hears(behind=True, time_ms=5_000)
    assert (front_end.limit(), front_end.backlog.asks) == (5_100, False)


@pytest.mark.parametrize(
    ("position", "limit"), [(20, math.inf), (25, math.inf), (19, -math.inf), (-1, -math.inf)]
)
def test_that_were_recorded_before_the_start(front_end: Elsewhere, position: int, limit: float) -> None:
    front_end.hears(-math.inf, position=position, behind=True, time_ms=5)
    assert (front_end.limit(), front_end.backlog.asks) == (limit, limit < 0)


def test_that_are_behind_and_fall_silent(front_end: Elsewhere) -> None:
    front_end.hears(behind=True, time_ms=5_000)
    assert front_end.limit() == 5_100
    front_end.hears(behind=True)
    assert front_end.limit() == -math.inf
    front_end.now_s += SILENT_S
    assert front_end.limit() == math.inf
    front_end.hears(behind=False)
    assert front_end.limit() == math.inf


def test_events_without_a_time_wait_for_nobody(front_end: Elsewhere) -> None:
    assert front_end.limit(None) == math.inf


def test_a_front_end_that_asks_is_heard(front_end: Elsewhere) -> None:
    front_end.hears(asks=True)
    assert (front_end.limit(), front_end.backlog.is_asked) == (math.inf, False), "it asked ten seconds ago"
    front_end.hears(front_end.now_s + 9.0, asks=True)
    assert (front_end.limit(), front_end.backlog.is_asked) == (math.inf, True)


def test_a_partition_that_was_given_up_is_one_of_others(front_end: Elsewhere) -> None:
    front_end.hears(behind=False)
    assert front_end.limit() == math.inf
    front_end.backlog.gone([OWN])
    front_end.backlog.assigned([BEGUN_AT_ITS_END])
    front_end.limit()
    assert front_end.backlog._limits.of(BEGUN_AT_ITS_END) == -math.inf
