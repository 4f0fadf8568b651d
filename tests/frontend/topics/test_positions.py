"""Where a partition is read on, and what is recorded of how far it was read."""

import logging
import math
from typing import Any

import pytest

from frontend.topics import positions
from frontend.topics.alignment import Standing
from frontend.topics.input_reports import Heard, InputReport
from frontend.topics.positions import InputPositions
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

CREATED = 7
PLAIN, BEGUN = InputTopic("plain", "id-1", 1), InputTopic("begun", "id-2", 2, (40, 50))
REMADE = InputTopic("remade", "id-3", 3, is_remade=True)
ANEW = InputTopic("anew", "id-4", 4, (70,), is_remade=True)
TOPICS = {each.name: each for each in (PLAIN, BEGUN, REMADE, ANEW)}


class Reports:
    """Reports by topic and partition. takes: whether it takes more for now."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, int], int] = {}
        self.written: list[InputReport] = []
        self.takes = True

    def of(self, created: int, topic: InputTopic, partition: int) -> Heard | None:
        assert created == CREATED
        position = self.known.get((topic.id, partition))
        if position is None:
            return None
        return Heard(
            InputReport(
                stream="s", created=7, topic=topic.name, id=topic.id, partition=partition, position=position
            ),
            -math.inf,
        )

    def write(self, stream: str, reports: Any) -> bool:
        assert stream == "s"
        if self.takes:
            self.written += reports
        return self.takes


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def own(reports: Reports) -> InputPositions:
    kept: Any = reports
    return InputPositions("s", CREATED, TOPICS, kept)


@pytest.mark.parametrize(
    ("topic", "partition", "committed", "settled", "start"),
    [
        (PLAIN, 0, -1, None, None),
        (PLAIN, 0, 12, None, 12),
        (PLAIN, 0, 0, None, 0),
        (PLAIN, 0, 12, 10, 12),
        (PLAIN, 0, -1, 10, 10),
        (PLAIN, 0, -1, -1, None),
        (BEGUN, 1, -1, None, 50),
        (BEGUN, 1, -1, 60, 60),
        (BEGUN, 1, 55, None, 55),
        (BEGUN, 2, -1, None, None),
        # What the group has may be of the topic before, until a position of this one was recorded.
        (REMADE, 0, 12, None, None),
        (REMADE, 0, 12, -1, None),
        (REMADE, 0, 12, 0, 12),
        (REMADE, 0, -1, 5, 5),
        # Or of the stream before.
        (ANEW, 0, 12, None, 70),
        (ANEW, 1, 12, None, None),
        (ANEW, 0, 75, 72, 75),
    ],
)
def test_where_a_partition_is_read_on(
    own: InputPositions,
    reports: Reports,
    topic: InputTopic,
    partition: int,
    committed: int,
    settled: int | None,
    start: int | None,
) -> None:
    if settled is not None:
        reports.known[topic.id, partition] = settled
    assert own.start(TopicPartition(topic.name, partition), committed) == start


def test_a_group_that_was_set_back_is_told_of(
    own: InputPositions, reports: Reports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.known[PLAIN.id, 0] = 10
    with caplog.at_level(logging.WARNING, "railgun.frontend"):
        assert own.start(TopicPartition("plain", 0), 10) == 10
        assert not caplog.records
        assert own.start(TopicPartition("plain", 0), 4) == 4
    (record,) = caplog.records
    assert record.getMessage().startswith("s: the group's position in plain-0 was set back from 10 to 4: ")


def test_what_has_changed_is_recorded(
    own: InputPositions, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(positions, "monotonic", lambda: now_s)
    first, second = TopicPartition("plain", 0), TopicPartition("begun", 1)
    standings = {first: Standing(70, True, 0.0), second: Standing(80, False, 0.0)}
    own.report(standings, {second: 9})
    assert [(each.topic, each.position, each.time_ms, each.behind) for each in reports.written] == [
        ("plain", -1, 70, True),
        ("begun", 9, 80, False),
    ]
    assert not own.is_due(is_awaited=False)
    now_s += 0.03
    assert own.is_due(is_awaited=False), "one was behind"
    own.report(standings, {second: 9})
    assert len(reports.written) == 2
    reports.takes = False
    standings[first] = Standing(71, True, 0.0)
    own.report(standings, {second: 9})
    reports.takes = True
    own.report(standings, {second: 9})
    assert [each.time_ms for each in reports.written[2:]] == [71]
    now_s += 6
    own.report(standings, {second: 9})
    assert len(reports.written) == 5, "others forget what they do not hear of"
    standings[first] = Standing(71, False, 0.0)
    own.report(standings, {})
    (last,) = reports.written[5:]
    assert (last.topic, last.position, last.behind) == ("plain", -1, False)
    now_s += 0.6
    assert not own.is_due(is_awaited=False)
    assert own.is_due(is_awaited=True)
    own.report(standings, {}, is_asked=True)
    assert len(reports.written) == 8, "another one wants to hear of both"
    own.report(standings, {}, is_asked=True, asks=True)
    assert [each.asks for each in reports.written[8:]] == [True, True]
    now_s += 1.1
    assert own.is_due(is_awaited=False)
