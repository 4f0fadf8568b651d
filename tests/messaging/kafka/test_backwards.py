"""Topics are read from their ends backwards: each record once, the newest first, within every bound."""

import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from railgun.messaging.kafka import backwards
from railgun.messaging.kafka.backwards import Bounds, ReadBackwards, Stopped, headers_of, read_backwards
from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from tests.broker.own_topics import own_prefix
from tests.messaging.kafka.test_newest import topic_with
from tests.unit.local_units import quick_settings

BOUNDS = Bounds(limit=1_000, records=10_000, size_bytes=1 << 20, within_s=30.0)
_S = 30.0


def read(
    broker: str,
    topics: str | list[str],
    bounds: Bounds = BOUNDS,
    before: dict[TopicPartition, int] | None = None,
    is_wanted: Callable[[Message], bool] = lambda _: True,
) -> ReadBackwards:
    named = [topics] if isinstance(topics, str) else topics
    return read_backwards(quick_settings(broker), named, is_wanted, bounds, before)


def all_parts(broker: str, topics: str | list[str], bounds: Bounds) -> list[ReadBackwards]:
    """All parts, up to the beginning."""
    parts = [read(broker, topics, bounds)]
    while parts[-1].before is not None:
        parts.append(read(broker, topics, bounds, dict(parts[-1].before)))
        assert len(parts) < 500
    return parts


def places(found: ReadBackwards) -> list[tuple[int, int]]:
    return [(each.partition() or 0, each.offset() or 0) for each in found.records]


def stamped(broker: str, stamps: list[list[int]], value: bytes = b"v") -> str:
    """A topic whose partitions have records with these timestamps."""
    topic = own_prefix("back-")
    # The broker would stamp what is appended to a topic of ours.
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(topic, len(stamps))])[topic].result(_S)
    producer = Producer({"bootstrap.servers": broker})
    for partition, each in enumerate(stamps):
        for stamp_ms in each:
            headers = [("at", b"%d" % stamp_ms), ("none", None)]
            producer.produce(topic, value, partition=partition, timestamp=stamp_ms, headers=headers)
    assert producer.flush(_S) == 0
    return topic


def test_the_newest_come_first_whatever_their_partition(kafka: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    stamps = [[now_ms - 60 + each for each in range(start, 60, 4)] for start in range(3)] + [[]]
    topic = stamped(kafka, stamps)
    newest = sorted((stamp for each in stamps for stamp in each), reverse=True)
    found = read(kafka, topic)
    assert [each.timestamp()[1] for each in found.records] == newest
    assert (found.read, found.stopped, found.before) == (len(newest), None, None)
    assert list(found.topics) == [topic]
    assert found.records[0].headers() == [("at", b"%d" % newest[0]), ("none", None)]
    some = read(kafka, topic, replace(BOUNDS, limit=7))
    assert [each.timestamp()[1] for each in some.records] == newest[:7]
    assert some.stopped is Stopped.LIMIT


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_parts_have_each_record_once(kafka: str, limit: int) -> None:
    topic = topic_with(kafka, [50, 0, 2, 40])
    parts = all_parts(kafka, topic, replace(BOUNDS, limit=limit))
    found = [place for part in parts for place in places(part)]
    assert sorted(found) == [
        *((0, each) for each in range(50)),
        *((2, each) for each in range(2)),
        *((3, each) for each in range(40)),
    ]
    assert all(len(part.records) <= limit for part in parts)
    assert sum(part.read for part in parts) == 92
    for partition in (0, 3):
        offsets = [offset for own, offset in found if own == partition]
        assert offsets == sorted(offsets, reverse=True)


def test_records_that_come_meanwhile_are_in_no_later_part(kafka: str) -> None:
    topic = topic_with(kafka, [10])
    first = read(kafka, topic, replace(BOUNDS, limit=4))
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(topic, b"10", partition=0)
    assert producer.flush(_S) == 0
    assert first.before == {TopicPartition(topic, 0): 6}
    assert places(read(kafka, topic, BOUNDS, dict(first.before))) == [(0, each) for each in range(5, -1, -1)]


def test_what_is_not_wanted_is_looked_at_and_counted(kafka: str) -> None:
    topic = topic_with(kafka, [500])
    found = read(kafka, topic, replace(BOUNDS, limit=2), is_wanted=lambda each: each.value() == b"20")
    assert (places(found), found.read, found.stopped) == ([(0, 20)], 500, None)
    bounded = replace(BOUNDS, records=100)
    some = read(kafka, topic, bounded, is_wanted=lambda each: each.value() == b"20")
    assert (places(some), some.read, some.stopped) == ([], 100, Stopped.RECORDS)
    assert some.before == {TopicPartition(topic, 0): 400}


def test_a_bound_of_bytes_keeps_what_was_read_and_gets_on(kafka: str) -> None:
    topic = own_prefix("back-")
    transport = KafkaTransport(quick_settings(kafka))
    try:
        transport.create_topic(topic, 3)
        for partition in range(3):
            for _ in range(9):
                transport.append(topic, partition, [b"x" * 200_000])
    finally:
        transport.close()
    parts = all_parts(kafka, topic, replace(BOUNDS, size_bytes=1_000_000))
    assert sorted(place for part in parts for place in places(part)) == [
        (partition, offset) for partition in range(3) for offset in range(9)
    ]
    assert {part.stopped for part in parts[:-1]} == {Stopped.BYTES}
    assert all(part.records for part in parts)
    # Even a record that is larger than the bound alone.
    parts = all_parts(kafka, topic, replace(BOUNDS, size_bytes=1))
    assert sum(len(part.records) for part in parts) == 27


def test_a_bound_of_time(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_with(kafka, [500])
    passed_s = 0.0

    def is_wanted(record: object) -> bool:
        nonlocal passed_s
        passed_s += 0.04
        return False

    monkeypatch.setattr(backwards, "monotonic", lambda: passed_s)
    found = read(kafka, topic, replace(BOUNDS, within_s=2.0), is_wanted=is_wanted)
    assert found.stopped is Stopped.TIME
    assert 0 < found.read < 500
    assert found.before == {TopicPartition(topic, 0): 500 - found.read}


class Slow(Consumer):
    """A consumer whose broker takes its time to say where a partition ends."""

    now_s, took_s = 0.0, 4.0

    def get_watermark_offsets(self, *asked: Any, **more: Any) -> Any:
        Slow.now_s += min(Slow.took_s, more["timeout"])
        if more["timeout"] < Slow.took_s:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return super().get_watermark_offsets(*asked, **more)


def test_a_bound_of_time_before_all_partitions_are_known(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = topic_with(kafka, [2] * 12)
    here = {TopicPartition(topic, each): 1 for each in range(1, 12)}
    for before, within_s in ((None, 15.0), (None, 16.0), (here, 15.0)):
        Slow.now_s = 0.0
        with monkeypatch.context() as slow:
            slow.setattr(backwards, "Consumer", Slow)
            slow.setattr(backwards, "monotonic", lambda: Slow.now_s)
            found = read(kafka, topic, replace(BOUNDS, within_s=within_s), before)
        assert (found.stopped, found.read, found.records) == (Stopped.TIME, 0, [])
        assert Slow.now_s == within_s
        assert found.before is not None
        assert before is None or found.before == before
        later = read(kafka, topic, before=dict(found.before))
        assert (len(later.records), later.before) == (24 if before is None else 11, None)


def test_a_bound_before_any_was_looked_at_takes_the_newest_first(kafka: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    topic = stamped(kafka, [[now_ms - each] for each in (3_000, 2_000, 1_000)], b"x" * 200_000)
    # Two of the three come before the bound, whichever they are.
    found = read(kafka, topic, replace(BOUNDS, size_bytes=300_000))
    stamps = [each.timestamp()[1] for each in found.records]
    assert (found.stopped, len(stamps)) == (Stopped.BYTES, 2)
    assert stamps == sorted(stamps, reverse=True)


def test_headers_count_as_bytes(kafka: str) -> None:
    topic = own_prefix("back-")
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(_S)
    producer = Producer({"bootstrap.servers": kafka})
    for _ in range(9):
        producer.produce(topic, b"v", partition=0, headers=[("h", b"x" * 200_000)])
    assert producer.flush(_S) == 0
    found = read(kafka, topic, replace(BOUNDS, size_bytes=500_000))
    assert (found.stopped, found.before is None) == (Stopped.BYTES, False)
    assert 0 < found.read < 9


def test_headers_whose_names_are_no_text_count_as_much_as_a_record_may_have() -> None:
    def headers() -> None:
        b"\xff".decode()

    message: Any = SimpleNamespace(value=lambda: b"v", key=lambda: b"k", headers=headers)
    assert headers_of(message) is None
    assert backwards._size_bytes(message) == (1 << 20) + 2


def test_ends_of_transactions_are_no_records(kafka: str) -> None:
    topic = topic_with(kafka, [5], transactional=True)
    deadline_s = time.monotonic() + _S
    while len(found := read(kafka, topic).records) < 5:
        # The broker writes the end after it has answered.
        assert time.monotonic() < deadline_s
    assert [each.value() for each in found] == [b"4", b"3", b"2", b"1", b"0"]
    parts = all_parts(kafka, topic, replace(BOUNDS, limit=2))
    assert [each.value() for part in parts for each in part.records] == [b"4", b"3", b"2", b"1", b"0"]


def test_topics_that_are_not_there_are_left_out(kafka: str) -> None:
    topic = topic_with(kafka, [3])
    found = read(kafka, [own_prefix("none-"), topic])
    assert (list(found.topics), len(found.records)) == ([topic], 3)
    none = read(kafka, own_prefix("none-"))
    assert (list(none.topics), none.records, none.before) == ([], [], None)


def test_a_place_that_is_no_more_is_the_first_that_is(kafka: str) -> None:
    topic = topic_with(kafka, [10])
    where = TopicPartition(topic, 0)
    transport = KafkaTransport(quick_settings(kafka))
    try:
        transport.trim(*where, 6)
    finally:
        transport.close()
    assert places(read(kafka, topic, BOUNDS, {where: 3})) == []
    assert places(read(kafka, topic, BOUNDS, {where: 8})) == [(0, 7), (0, 6)]
    assert places(read(kafka, topic, BOUNDS, {where: 10**15})) == [(0, each) for each in (9, 8, 7, 6)]
