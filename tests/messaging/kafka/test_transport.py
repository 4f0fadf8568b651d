"""What Kafka brings that the embedded log has not: other clients, transactions, settings, limits of its own."""

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from railgun.host.deepening.successor import Successor, close_all
from railgun.host.task_log import TaskLog
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicExistsError,
    TopicMissingError,
    TopicSettingsError,
    TransportClosedError,
    TransportRefusedError,
    TransportUnavailableError,
)
from railgun.messaging.kafka import buffer as kafka_buffer
from railgun.messaging.kafka import consumer as kafka_consumer
from railgun.messaging.kafka import queue as kafka_queue
from railgun.messaging.kafka import topics as kafka_topics
from railgun.messaging.kafka.admin import shared_admin
from railgun.messaging.kafka.buffer import PartitionBuffer
from railgun.messaging.kafka.consumer import KafkaConsumer
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.limits import RECORD_LIMIT_BYTES
from railgun.messaging.transport import Entry, Fetched, TopicPartition, TopicSettings
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskProcessor
from railgun.wire.partition import partition_of
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.unit.local_units import awaited

_QUICK = {"fetch.wait.max.ms": 10}


@pytest.fixture
def t() -> str:
    """The name of a topic that no other test knows."""
    return own_prefix("t-")


@pytest.fixture
def transport(kafka: str) -> Iterator[KafkaTransport]:
    with KafkaTransport(KafkaSettings(kafka, pass_through=_QUICK)) as opened:
        yield opened


def _read_all(transport: KafkaTransport, where: TopicPartition) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    offset, end = transport.start_offset(*where), transport.end_offset(*where)
    while offset < end:
        fetched = transport.read(*where, offset, 1_000, 1 << 20)
        found += zip(fetched.offsets.tolist(), fetched.values())
        assert fetched.next_offset > offset
        offset = fetched.next_offset
    return found


def _fetch_until_something_happens(transport: KafkaTransport, where: TopicPartition, offset: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not transport.fetch({where: offset}, 1, 1, 0.1):
        pass


def test_keys_go_where_other_clients_send_them(kafka: str, transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 7)
    sent: dict[bytes, int] = {}
    producer = Producer({"bootstrap.servers": kafka, "partitioner": "murmur2_random"})
    keys = [str(i).encode() * (1 + i % 5) for i in range(300)] + ["é€😀".encode(), b"\x00\xff\x80"]
    for key in keys:
        producer.produce(t, b"v", key, on_delivery=lambda _, m: sent.setdefault(m.key(), m.partition()))
    producer.flush(30)
    assert sent == {key: partition_of(key, 7) for key in keys}
    assert set(sent.values()) == set(range(7))


def test_other_clients_see_keys_headers_and_times_of_arrival(
    kafka: str, transport: KafkaTransport, t: str
) -> None:
    transport.create_topic(t, 1)
    where = TopicPartition(t, 0)
    headers = [[("reason", b"not JSON"), ("at", b"7")], []]
    transport.submit([Entry(where, Records.of([b"a", b"b"]), [b"k", None], headers)]).result(30)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "x", "enable.auto.commit": False})
    try:
        consumer.assign([KafkaTopicPartition(t, 0, 0)])
        messages = consumer.consume(2, 30)
    finally:
        consumer.close()
    told = [(m.key(), m.value(), m.headers(), m.timestamp()[0]) for m in messages]
    assert told == [(b"k", b"a", headers[0], 2), (None, b"b", None, 2)]


def test_empty_records_delete_what_has_their_keys(kafka: str, transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 1, TopicSettings(is_compacted=True))
    where = TopicPartition(t, 0)
    for records in ([b"a", b"b"], [b"", b""]):
        transport.submit([Entry(where, Records.of(records), [b"k", b"l"])]).result(30)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "x", "enable.auto.commit": False})
    try:
        consumer.assign([KafkaTopicPartition(t, 0, 0)])
        messages = consumer.consume(4, 30)
    finally:
        consumer.close()
    assert [m.value() for m in messages] == [b"a", b"b", None, None]
    assert transport.read(*where, 0, 10, 1000).written() == [b"a", b"b"]


def test_marks_of_transactions_are_passed_over(kafka: str, transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 1)
    where = TopicPartition(t, 0)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": t})
    producer.init_transactions(30)
    for name, commit in ((b"kept", True), (b"undone", False), (b"kept too", True), (b"undone too", False)):
        producer.begin_transaction()
        producer.produce(t, name, partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    # The last mark is written after the transaction's coordinator has answered.
    deadline = time.monotonic() + 60
    while transport.end_offset(*where) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert transport.end_offset(*where) == 8
    assert _read_all(transport, where) == [(0, b"kept"), (4, b"kept too")]
    at_end = transport.read(*where, 5, 10, 100)
    assert (len(at_end), at_end.next_offset) == (0, 8)
    assert not transport.wait({where: 8}, 0)

    producer.begin_transaction()
    producer.produce(t, b"under way", partition=0)
    producer.flush(30)
    assert transport.end_offset(*where) == 8
    assert len(transport.read(*where, 8, 10, 100)) == 0
    producer.commit_transaction(30)
    [fetched] = transport.fetch({where: 8}, 10, 100, 30)
    assert fetched.values() == [b"under way"]


def test_a_topic_with_other_settings_is_refused(kafka: str, transport: KafkaTransport, t: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(t, 1, 1)])[t].result(30)
    with pytest.raises(
        TopicSettingsError, match=r"message\.timestamp\.type is CreateTime.*LogAppendTime.*kafka-conf"
    ):
        transport.create_topic(t, 1)
    with pytest.raises(TopicExistsError):
        transport.create_topic(t, 2)

    day = TopicSettings(retention_ms=86_400_000)
    transport.create_topic(f"{t}.day", 1, day)
    transport.create_topic(f"{t}.day", 1, day)
    with pytest.raises(TopicSettingsError, match=r"retention\.ms is 86400000.*-1"):
        transport.create_topic(f"{t}.day", 1)
    transport.create_topic(f"{t}.compacted", 1, TopicSettings(is_compacted=True))
    transport.create_topic(f"{t}.compacted", 1, TopicSettings(is_compacted=True))
    with pytest.raises(TransportRefusedError):
        transport.trim(f"{t}.compacted", 0, 0)
    with pytest.raises(TransportRefusedError, match="another name"):
        transport.create_topic("é", 1)


def test_the_bounds_and_retentions_of_many_logs_are_asked_for_together(
    transport: KafkaTransport, t: str
) -> None:
    transport.create_topic(t, 2, TopicSettings(retention_ms=86_400_000))
    transport.create_topic(f"{t}.kept", 1)
    logs = [TopicPartition(t, 0), TopicPartition(t, 1), TopicPartition(f"{t}.kept", 0)]
    transport.append(t, 1, [b"a", b"b", b"c"])
    transport.trim(t, 1, 2)
    missing = [TopicPartition(f"{t}.missing", 0), TopicPartition(t, 2)]
    assert transport.bounds_of([*logs, *missing]) == {logs[0]: (0, 0), logs[1]: (2, 3), logs[2]: (0, 0)}
    # A time in 1970 is that of no record, and one that is to come is after all.
    assert transport.offsets_at([*logs, *missing], 1) == {logs[0]: 0, logs[1]: 2, logs[2]: 0}
    assert transport.offsets_at(logs, 1 << 42, 5.0) == {logs[0]: 0, logs[1]: 3, logs[2]: 0}
    found = transport.retentions([t, f"{t}.kept", f"{t}.missing"])
    assert found == {t: 86_400_000, f"{t}.kept": None}
    assert (transport.bounds_of([]), transport.retentions([])) == ({}, {})


def test_what_another_process_changes_is_noticed(kafka: str, transport: KafkaTransport, t: str) -> None:
    where = TopicPartition(t, 0)
    with KafkaTransport(KafkaSettings(kafka)) as other:
        other.create_topic(t, 1)
        assert transport.append(t, 0, [b"a"]) == 0
        assert other.append(t, 0, [b"b"]) == 1
        assert _read_all(transport, where) == [(0, b"a"), (1, b"b")]
        other.trim(t, 0, 2)
        assert transport.start_offset(t, 0) == 2
        with pytest.raises(OffsetOutOfRangeError):
            transport.read(t, 0, 0, 1, 1)
        other.delete_topic(t)
    with pytest.raises(TopicMissingError):
        transport.end_offset(t, 0)
    with pytest.raises(TopicMissingError):
        transport.read(t, 0, 2, 1, 1)
    with pytest.raises(TopicMissingError):
        transport.append(t, 0, [b"c"])


def test_a_topic_that_another_process_deletes_is_missed_by_who_fetches(
    kafka: str, transport: KafkaTransport, t: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_topics, "REFRESH_S", 0.2)
    transport.create_topic(t, 1)
    transport.append(t, 0, [b"a"])
    assert transport.read(t, 0, 0, 1, 1).next_offset == 1
    with KafkaTransport(KafkaSettings(kafka)) as other:
        other.delete_topic(t)
    with pytest.raises(TopicMissingError):
        _fetch_until_something_happens(transport, TopicPartition(t, 0), 1)


def test_a_topic_that_is_there_again_is_read_by_another_client(
    kafka: str, transport: KafkaTransport, t: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka may stand still for ever at a topic that it has missed."""
    monkeypatch.setattr(kafka_topics, "REFRESH_S", 0.2)
    where, beside = TopicPartition(t, 0), TopicPartition(f"{t}.beside", 0)
    transport.create_topic(t, 1)
    transport.create_topic(beside.topic, 1)
    transport.append(t, 0, [b"a"])
    transport.append(*beside, [b"x"])
    assert {each.where for each in _fetched(transport, {where: 0, beside: 0}, 2)} == {where, beside}
    missed = transport._consumer._near
    with KafkaTransport(KafkaSettings(kafka)) as other:
        other.delete_topic(t)
        with pytest.raises(TopicMissingError):
            _fetch_until_something_happens(transport, where, 1)
        other.create_topic(t, 1)
        other.append(t, 0, [b"b"])
        other.append(*beside, [b"y"])
        awaited(lambda: t in transport.topics())
    fetched = _fetched(transport, {where: 0, beside: 1}, 2)
    assert sorted((each.where.topic, each.values()) for each in fetched) == [
        (t, [b"b"]),
        (beside.topic, [b"y"]),
    ]
    assert transport._consumer._near is not missed


def _fetched(transport: KafkaTransport, positions: dict[TopicPartition, int], records: int) -> list[Fetched]:
    """Fetch as many records from positions on."""
    found = list[Fetched]()
    while sum(len(each.records) for each in found) < records:
        for each in transport.fetch(positions, 100, 1 << 20, 5):
            found.append(each)
            positions[each.where] = each.next_offset
    return found


def test_what_is_not_read_is_not_fetched_without_end(
    transport: KafkaTransport, t: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_buffer, "BUFFER_LIMIT_RECORDS", 100)
    transport.create_topic(t, 2)
    slow, quick = TopicPartition(t, 0), TopicPartition(t, 1)
    positions = {slow: 0, quick: 0}
    transport.fetch(positions, 1, 1, 0)
    for _ in range(4):
        transport.submit(
            [Entry(each, Records.of([b"%d" % i for i in range(1_000)])) for each in positions]
        ).result(30)
    found: dict[TopicPartition, list[int]] = {slow: [], quick: []}
    while positions != {slow: 4_000, quick: 4_000}:
        # The slow one is read by tens while the quick one has records.
        is_behind = positions[quick] < 4_000
        for where, limit in ((quick, 500), (slow, 10)) if is_behind else ((slow, 300),):
            for each in transport.fetch({where: positions[where]}, limit, 1 << 20, 5):
                found[where] += map(int, each.values())
                positions[where] = each.next_offset
        held = [len(each) for each in transport._consumer._buffers.values()]
        assert max(held) <= 100 + 2 * 1_000
    assert found == {slow: list(range(1_000)) * 4, quick: list(range(1_000)) * 4}


def _count_moves(monkeypatch: pytest.MonkeyPatch) -> dict[bool, int]:
    """How often a partition went to another consumer: by whether that is the one of those far behind."""
    counts, assign = {True: 0, False: 0}, KafkaConsumer._assign

    def counting(consumer: KafkaConsumer, buffer: PartitionBuffer) -> None:
        was_far = buffer.is_far
        assign(consumer, buffer)
        if buffer.is_far != was_far:
            counts[buffer.is_far] += 1

    monkeypatch.setattr(KafkaConsumer, "_assign", counting)
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_partitions_that_fall_behind_and_catch_up_lose_and_repeat_nothing(
    transport: KafkaTransport, t: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """They change between the consumers, while others seek and are dropped."""
    for module in (kafka_consumer, kafka_queue):
        monkeypatch.setattr(module, "POLL_RECORDS", 50)
    monkeypatch.setattr(kafka_consumer, "FAR_RECORDS", 300)
    monkeypatch.setattr(kafka_consumer, "NEAR_RECORDS", 40)
    moves, rng = _count_moves(monkeypatch), random.Random(seed)
    transport.create_topic(t, 4)
    places = [TopicPartition(t, partition) for partition in range(4)]
    ends, positions = dict.fromkeys(places, 0), dict.fromkeys(places, 0)

    def append(where: TopicPartition, count: int) -> None:
        records = [b"%d %d" % (where.partition, ends[where] + number) for number in range(count)]
        transport.submit([Entry(where, Records.of(records))]).result(30)
        ends[where] += count

    def take(wheres: list[TopicPartition], timeout_s: float) -> None:
        asked = {where: positions[where] for where in wheres}
        for fetched in transport.fetch(asked, rng.choice([7, 100, 1_000]), 1 << 20, timeout_s):
            where, first = fetched.where, asked[fetched.where]
            assert fetched.offsets.tolist() == list(range(first, fetched.next_offset))
            assert fetched.values() == [b"%d %d" % (where.partition, each) for each in fetched.offsets]
            positions[where] = fetched.next_offset
            assert fetched.next_offset <= transport.known_end(*where) <= ends[where]

    for _ in range(250):
        where, action = rng.choice(places), rng.random()
        if action < 0.3:
            append(where, rng.choice([1, 1, 20, 400, 1_500]))
        elif action < 0.33:
            positions[where] = rng.randint(0, ends[where])
        elif action < 0.36:
            transport.release(*where)
        elif action < 0.38:
            first = rng.randint(0, ends[where])
            found = transport.read(*where, first, 10, 1 << 20)
            assert found.offsets.tolist() == list(range(first, min(first + 10, ends[where])))[: len(found)]
        else:
            take(rng.sample(places, rng.randint(1, 4)), 0.01)
    while positions != ends:
        take(places, 10.0)
    assert min(moves.values()) > 3
    # Whoever has caught up is back where the newest records come first.
    assert [transport.known_end(*where) for where in places] == list(ends.values())
    far = transport._consumer._far
    assert far is not None
    assert not far.partitions
    assert not far.consumer.assignment()


def test_records_of_a_partition_near_its_end_pass_those_of_others_far_behind(
    transport: KafkaTransport, t: str
) -> None:
    transport.create_topic(t, 3)
    near, *behind = (TopicPartition(t, partition) for partition in range(3))
    transport.submit([Entry(each, Records.of([b"behind"] * 30_000)) for each in behind]).result(30)
    positions = {near: 0, behind[0]: 0, behind[1]: 0}

    def fetched() -> set[TopicPartition]:
        found = transport.fetch(positions, 1_000, 1 << 20, 10.0)
        positions.update((each.where, each.next_offset) for each in found)
        return {each.where for each in found}

    for number in range(5):
        assert fetched() <= set(behind)
        transport.append(*near, [b"new"])
        # It is fetched in the background. In one queue it would come after some 20,000 records of the others, of which
        # each of these calls takes 2,000.
        for wait_s in (0.2, 0.2, 0.4, 1.0, 10.0):
            time.sleep(wait_s)
            if near in fetched():
                break
        assert positions[near] == number + 1


def test_one_partition_alone_needs_no_second_client(transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 2)
    where, other = TopicPartition(t, 0), TopicPartition(t, 1)
    transport.submit([Entry(where, Records.of([b"x"] * 30_000))]).result(30)
    assert transport.fetch({where: 0}, 1_000, 1 << 20, 30.0)
    consumer = transport._consumer
    assert consumer._far is None
    positions = {where: 1_000, other: 0}
    while consumer._far is None:
        for each in transport.fetch(positions, 1_000, 1 << 20, 30.0):
            positions[each.where] = each.next_offset
    assert positions[where] < 20_000
    assert consumer._far.partitions == {where}


def test_threads_that_read_one_partition_do_not_disturb_each_other(transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 1)
    where = TopicPartition(t, 0)
    transport.submit([Entry(where, Records.of([b"%d" % i for i in range(3_000)]))]).result(30)
    found: dict[str, list[tuple[int, bytes]]] = {"first": [], "second": [], "fetching": []}

    def read(name: str, limit: int) -> None:
        offset = 0
        while offset < 3_000:
            parts = (
                transport.fetch({where: offset}, limit, 1 << 20, 1.0)
                if name == "fetching"
                else [transport.read(*where, offset, limit, 1 << 20)]
            )
            for part in parts:
                found[name] += zip(part.offsets.tolist(), part.values())
                offset = part.next_offset

    threads = [threading.Thread(target=read, args=each) for each in zip(found, (400, 300, 250))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [(i, b"%d" % i) for i in range(3_000)]
    assert {name: each == expected for name, each in found.items()} == dict.fromkeys(found, True)


def test_reading_what_came_before_takes_nothing_from_whoever_follows(
    transport: KafkaTransport, t: str
) -> None:
    """A task that is deepened is answered while what was built of it reads its log from far behind."""
    transport.create_topic(t, 1)
    where = TopicPartition(t, 0)
    transport.append(t, 0, [b"%d" % number for number in range(100)])
    assert transport.wait({where: 90}, 30.0)
    for first in range(0, 90, 10):
        assert transport.read(t, 0, first, 10, 1 << 20).values()[0] == b"%d" % first
    # What has come is there yet: nobody waits for it again.
    (fetched,) = transport.fetch({where: 90}, 100, 1 << 20, 0.0)
    assert fetched.values() == [b"%d" % number for number in range(90, 100)]
    assert transport.read(t, 0, 50, 100, 1 << 20).values()[0] == b"50"


def test_what_a_shadow_read_is_released_with_it_and_whoever_follows_goes_on(
    transport: KafkaTransport, t: str
) -> None:
    """A deepening that is given up half-way holds nothing of the log any more."""

    class Task:
        position, identity, is_closed = 0, t, False

        def close(self) -> None:
            self.is_closed = True

    transport.create_topic(t, 1)
    where, task = TopicPartition(t, 0), Task()
    transport.append(t, 0, [b"%d" % number for number in range(5_000)])
    assert transport.wait({where: 4_990}, 30.0)
    successor = Successor(
        cast(TaskProcessor, task), TaskLog(transport, where, TaskEnvironment()), lambda: 4_990
    )
    successor.read_ahead()
    following, beside = transport._consumers
    assert beside._near.consumer.assignment()
    close_all([successor])
    assert task.is_closed
    assert not beside._near.consumer.assignment()
    assert not beside._buffers
    assert following.followed_at(where) == 4_990
    (fetched,) = transport.fetch({where: 4_990}, 100, 1 << 20, 0.0)
    assert len(fetched) == 10


def test_threads_that_begin_anew_elsewhere_get_what_they_asked_for(transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 4)
    places = [TopicPartition(t, partition) for partition in range(4)]
    transport.submit([Entry(each, Records.of([b"%d" % i for i in range(2_000)])) for each in places]).result(
        30
    )
    wrong: list[object] = []

    def read(partition: int) -> None:
        for step in range(30):
            first = (step * 7_919 + partition * 131) % 2_000
            fetched = transport.read(t, partition, first, 50, 1 << 20)
            expected = [b"%d" % i for i in range(first, first + len(fetched))]
            if fetched.values() != expected or not len(fetched):
                wrong.append((partition, first, fetched.values()[:3]))

    threads = [threading.Thread(target=read, args=(partition,)) for partition in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_largest_record_passes_and_a_larger_one_is_refused(transport: KafkaTransport, t: str) -> None:
    transport.create_topic(t, 1)
    where = TopicPartition(t, 0)
    with pytest.raises(RecordTooLargeError):
        transport.submit([Entry(where, Records.of([b"x", bytes(RECORD_LIMIT_BYTES + 1)]))])
    key = bytes(65_535)
    assert transport.submit([Entry(where, Records.of([bytes(RECORD_LIMIT_BYTES)]), [key])]).result(60) == [0]
    assert len(transport.read(t, 0, 0, 1, 1).values()[0]) == RECORD_LIMIT_BYTES
    with pytest.raises(ValueError, match="keys"):
        transport.submit([Entry(where, Records.of([b"a", b"b"]), [b"k"])])


def test_a_broker_that_is_not_there() -> None:
    settings = KafkaSettings("127.0.0.1:1", answer_timeout_s=1.0)
    with pytest.raises(TransportUnavailableError, match=r"127\.0\.0\.1:1.*Check that the broker runs"):
        KafkaTransport(settings)


def test_closed_ones_leave_no_threads_and_share_what_asks(kafka: str, t: str) -> None:
    def threads() -> set[str]:
        return set(os.listdir("/proc/self/task"))

    def ended(since: set[str]) -> None:
        deadline = time.monotonic() + 60
        while threads() - since:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    settings = KafkaSettings(kafka, pass_through={**_QUICK, "client.id": t})
    before = threads()
    with KafkaTransport(settings) as first:
        first.create_topic(t, 1)
        with KafkaTransport(settings) as second:
            second.submit([Entry(TopicPartition(t, 0), Records.of([b"a"] * 10))]).result(60)
            assert shared_admin(settings) is shared_admin(settings)
        assert len(_read_all(first, TopicPartition(t, 0))) == 10
        with pytest.raises(TransportClosedError):
            second.topics()
    with pytest.raises(TransportClosedError):
        first.submit([Entry(TopicPartition(t, 0), Records.of([b"a"]))])
    ended(before)


def test_settings_pass_through_but_for_those_that_are_relied_on(kafka: str) -> None:
    settings = KafkaSettings("h:1", pass_through={"linger.ms": 3, "fetch.wait.max.ms": 7, "client.id": "me"})
    assert settings.producer()["linger.ms"] == 3
    assert "fetch.wait.max.ms" not in settings.producer()
    assert settings.consumer()["fetch.wait.max.ms"] == 7
    assert {each["client.id"] for each in (settings.producer(), settings.consumer(), settings.admin())} == {
        "me"
    }
    assert settings.producer()["bootstrap.servers"] == "h:1"
    for key, value in (("acks", 1), ("enable.partition.eof", False), ("bootstrap.servers", "x:1")):
        with pytest.raises(ValueError, match=key):
            KafkaSettings("h:1", pass_through={key: value})
    with pytest.raises(TransportRefusedError, match="No such configuration property"):
        KafkaTransport(KafkaSettings(kafka, pass_through={"no.such.thing": 1}))


class _Forgetful:
    """An administrator whose broker says nothing of offsets, and no error, the first so many times."""

    def __init__(self, client: AdminClient, silences: int) -> None:
        self._client, self._silences = client, silences

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def list_offsets(self, asked: Any, **more: Any) -> Any:
        if self._silences == 0:
            return self._client.list_offsets(asked, **more)
        self._silences -= 1
        silent: Future[SimpleNamespace] = Future()
        silent.set_result(SimpleNamespace(offset=OFFSET_INVALID))
        return dict.fromkeys(asked, silent)


def test_an_offset_that_is_none_is_asked_for_again(
    kafka: str, t: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task whose log seemed to end before its state was stopped for good."""
    with KafkaTransport(KafkaSettings(kafka, answer_timeout_s=1.0, pass_through=_QUICK)) as transport:
        transport.create_topic(t, 1)
        transport.append(t, 0, [b"a", b"b"])
        topics = transport._topics
        client = topics._client
        for ask in (
            lambda: transport.end_offset(t, 0),
            lambda: transport.start_offset(t, 0) + 2,
            lambda: transport.offset_at(t, 0, 1 << 42),
        ):
            monkeypatch.setattr(KafkaTopics, "_client", _Forgetful(client, 3))
            assert ask() == 2
        monkeypatch.setattr(KafkaTopics, "_client", _Forgetful(client, 1 << 30))
        with pytest.raises(TransportUnavailableError, match="eader"):
            transport.end_offset(t, 0)
