"""What every Transport promises, asked of each one: the embedded log, and Kafka on a real broker."""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicExistsError,
    TopicMissingError,
    TransportClosedError,
)
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, Fetched, TopicPartition, Transport
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix


@pytest.fixture
def t() -> str:
    """The name of a topic that no other test knows."""
    return own_prefix("t-")


@pytest.fixture(params=["embedded-fsync", "embedded-os", "kafka"])
def transport(request: pytest.FixtureRequest, tmp_path: Path, t: str) -> Iterator[Transport]:
    log: Transport
    if request.param == "kafka":
        log = KafkaTransport(
            KafkaSettings(request.getfixturevalue("kafka"), pass_through={"fetch.wait.max.ms": 10})
        )
    else:
        log = EmbeddedLog(tmp_path / "log", Durability(request.param.split("-")[1]))
    try:
        log.create_topic(t, 2)
        yield log
    finally:
        log.close()


def all_records(transport: Transport, where: TopicPartition, at_most: int = 7) -> list[bytes]:
    got: list[bytes] = []
    offset = transport.start_offset(*where)
    while offset < transport.end_offset(*where):
        fetched = transport.read(*where, offset, at_most, 1 << 20)
        assert 1 <= len(fetched) <= at_most
        assert fetched.offsets.tolist() == list(range(offset, offset + len(fetched)))
        got += fetched.values()
        offset = fetched.next_offset
    return got


def test_topics(transport: Transport, t: str) -> None:
    transport.create_topic(t, 2)
    transport.create_topic(f"{t}.more", 1)
    assert {(t, 2), (f"{t}.more", 1)} <= set(transport.topics().items())
    with pytest.raises(TopicExistsError):
        transport.create_topic(t, 3)
    for where in (("other", 0), (t, 2), (t, -1)):
        with pytest.raises(TopicMissingError):
            transport.end_offset(*where)
        with pytest.raises(TopicMissingError):
            transport.append(*where, [b"x"])


def test_records_come_back_in_order_with_their_offsets(transport: Transport, t: str) -> None:
    assert transport.append(t, 0, [b"a", b"", b"c"]) == 0
    assert transport.append(t, 1, [b"other"]) == 0
    assert transport.append(t, 0, [b"d" * 100_000]) == 3
    assert (transport.start_offset(t, 0), transport.end_offset(t, 0)) == (0, 4)
    assert all_records(transport, TopicPartition(t, 0)) == [b"a", b"", b"c", b"d" * 100_000]
    assert all_records(transport, TopicPartition(t, 1)) == [b"other"]


def test_reading_from_any_offset_with_any_limit(transport: Transport, t: str) -> None:
    values = [str(i).encode() * (i % 7) for i in range(50)]
    for i in range(0, 50, 5):
        transport.append(t, 0, values[i : i + 5])
    for offset in range(50):
        for at_most in (1, 3, 100):
            got = transport.read(t, 0, offset, at_most, 1 << 20).values()
            assert got == values[offset : offset + len(got)]
            assert len(got) >= 1
        assert transport.read(t, 0, offset, 100, 0).values() == values[offset : offset + 1]


def test_the_end_and_beyond(transport: Transport, t: str) -> None:
    assert len(transport.read(t, 0, 0, 10, 100)) == 0
    transport.append(t, 0, [b"a"])
    at_end = transport.read(t, 0, 1, 10, 100)
    assert (len(at_end), at_end.next_offset, at_end.values()) == (0, 1, [])
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRangeError) as caught:
            transport.read(t, 0, offset, 10, 100)
        assert (caught.value.start, caught.value.end) == (0, 1)


def test_one_submission_reaches_several_partitions(transport: Transport, t: str) -> None:
    transport.append(t, 1, [b"x"])
    future = transport.submit(
        [
            Entry(TopicPartition(t, 0), Records.of([b"a", b"b"])),
            Entry(TopicPartition(t, 1), Records.of([b"c"])),
            Entry(TopicPartition(t, 0), Records.of([b"d"])),
        ]
    )
    assert future.result(30) == [0, 1, 2]
    assert all_records(transport, TopicPartition(t, 0)) == [b"a", b"b", b"d"]
    assert all_records(transport, TopicPartition(t, 1)) == [b"x", b"c"]


def test_submissions_keep_their_order(transport: Transport, t: str) -> None:
    futures = [transport.submit([Entry(TopicPartition(t, 0), Records.of([b"%d" % i]))]) for i in range(200)]
    assert transport.append(t, 0, [b"last"]) == 200
    assert [future.result(30) for future in futures] == [[i] for i in range(200)]
    assert all_records(transport, TopicPartition(t, 0)) == [b"%d" % i for i in range(200)] + [b"last"]


def test_many_threads_append_at_once(transport: Transport, t: str) -> None:
    offsets: dict[int, list[int]] = {i: [] for i in range(4)}

    def write(writer: int) -> None:
        for i in range(25):
            offsets[writer].append(transport.append(t, 0, [b"%d:%d" % (writer, i)] * 3))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in offsets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = all_records(transport, TopicPartition(t, 0))
    assert len(records) == 300
    for writer, firsts in offsets.items():
        assert firsts == sorted(firsts)
        for i, first in enumerate(firsts):
            assert records[first : first + 3] == [b"%d:%d" % (writer, i)] * 3


def test_the_records_of_an_entry_lie_together(transport: Transport, t: str) -> None:
    where = TopicPartition(t, 0)
    firsts: dict[int, list[int]] = {writer: [] for writer in range(3)}

    def write(writer: int) -> None:
        for _ in range(4):
            entry = Entry(where, Records.of([b"%d" % writer] * 1_000))
            firsts[writer] += transport.submit([entry]).result(60)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in firsts]
    patience_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(patience_s)
    records = all_records(transport, where, 5_000)
    for writer, offsets in firsts.items():
        for first in offsets:
            assert set(records[first : first + 1_000]) == {b"%d" % writer}


def test_a_record_that_is_too_large_is_refused_with_all_beside_it(transport: Transport, t: str) -> None:
    with pytest.raises(RecordTooLargeError):
        transport.submit(
            [
                Entry(TopicPartition(t, 1), Records.of([b"small"])),
                Entry(TopicPartition(t, 0), Records.of([bytes(64 << 20)])),
            ]
        )
    assert transport.end_offset(t, 1) == 0
    with pytest.raises(ValueError, match="nothing to append"):
        transport.append(t, 0, [])


def test_waiting(transport: Transport, t: str) -> None:
    began = time.monotonic()
    assert not transport.wait({TopicPartition(t, 0): 0, TopicPartition(t, 1): 0}, 0.05)
    assert time.monotonic() - began >= 0.05
    timer = threading.Timer(0.05, transport.append, (t, 1, [b"a"]))
    timer.start()
    assert transport.wait({TopicPartition(t, 0): 0, TopicPartition(t, 1): 0}, 30)
    timer.join()
    assert transport.wait({TopicPartition(t, 1): 0}, 0)
    assert not transport.wait({TopicPartition(t, 1): 1}, 0)


def test_fetching_from_several_partitions_at_once(transport: Transport, t: str) -> None:
    here, there = TopicPartition(t, 0), TopicPartition(t, 1)
    assert transport.fetch({here: 0, there: 0}, 10, 1 << 20, 0.05) == []
    transport.append(t, 1, [b"a", b"b"])
    [got] = transport.fetch({here: 0, there: 0}, 1, 1 << 20, 30)
    assert (got.where, got.values(), got.next_offset) == (there, [b"a"], 1)
    timer = threading.Timer(0.05, transport.append, (t, 0, [b"c"] * 3))
    timer.start()
    positions, found = {here: 0, there: 1}, {here: [], there: [b"a"]}
    while positions != {here: 3, there: 2}:
        for each in transport.fetch(positions, 2, 1 << 20, 30):
            assert each.offsets[0] == positions[each.where]
            found[each.where] += each.values()
            positions[each.where] = each.next_offset
    timer.join()
    assert found == {here: [b"c"] * 3, there: [b"a", b"b"]}
    assert transport.fetch(positions, 2, 1 << 20, 0) == []
    for wrong in (-1, 4):
        with pytest.raises(OffsetOutOfRangeError):
            transport.fetch({here: wrong}, 1, 1, 0)
    with pytest.raises(TopicMissingError):
        transport.fetch({TopicPartition(t, 2): 0}, 1, 1, 0)


def test_a_partition_that_was_released_can_be_read_on(transport: Transport, t: str) -> None:
    transport.append(t, 0, [b"%d" % i for i in range(10)])
    assert transport.read(t, 0, 0, 4, 1 << 20).next_offset == 4
    transport.release(t, 0)
    transport.release(t, 1)
    assert transport.read(t, 0, 4, 1, 1 << 20).values() == [b"4"]


def test_threads_that_read_do_not_wait_for_each_other(transport: Transport, t: str) -> None:
    transport.append(t, 1, [b"%d" % i for i in range(100)])
    found: list[Fetched] = []
    waiting = threading.Thread(
        target=lambda: found.extend(transport.fetch({TopicPartition(t, 0): 0}, 9, 99, 60))
    )
    waiting.start()
    for offset in range(0, 100, 10):
        assert transport.read(t, 1, offset, 1, 99).values() == [b"%d" % offset]
    assert waiting.is_alive()
    transport.append(t, 0, [b"at last"])
    waiting.join()
    assert [each.values() for each in found] == [[b"at last"]]


def test_keys_and_headers_stay_outside_of_records(transport: Transport, t: str) -> None:
    where = TopicPartition(t, 0)
    entries = [
        Entry(where, Records.of([b"a", b"b"]), [b"k", None]),
        Entry(where, Records.of([b"c"]), headers=[[("reason", b"late")]]),
    ]
    assert transport.submit(entries).result(30) == [0, 2]
    assert all_records(transport, where) == [b"a", b"b", b"c"]


def test_trimming(transport: Transport, t: str) -> None:
    for i in range(10):
        transport.append(t, 0, [b"%d" % (3 * i + j) for j in range(3)])
    transport.trim(t, 0, 10)
    assert (transport.start_offset(t, 0), transport.end_offset(t, 0)) == (10, 30)
    transport.trim(t, 0, 4)
    assert all_records(transport, TopicPartition(t, 0)) == [b"%d" % i for i in range(10, 30)]
    with pytest.raises(OffsetOutOfRangeError):
        transport.read(t, 0, 9, 1, 1)
    transport.trim(t, 0, 30)
    assert len(transport.read(t, 0, 30, 1, 1)) == 0
    assert transport.append(t, 0, [b"next"]) == 30
    assert all_records(transport, TopicPartition(t, 0)) == [b"next"]
    with pytest.raises(ValueError, match="beyond the end"):
        transport.trim(t, 0, 32)


def test_a_topic_that_is_deleted_and_made_again_is_empty(transport: Transport, t: str) -> None:
    transport.append(t, 0, [b"a"])
    transport.delete_topic(t)
    transport.delete_topic(t)
    with pytest.raises(TopicMissingError):
        transport.read(t, 0, 0, 1, 1)
    transport.create_topic(t, 3)
    assert transport.end_offset(t, 0) == 0
    assert transport.append(t, 0, [b"b"]) == 0
    assert all_records(transport, TopicPartition(t, 0)) == [b"b"]


def test_ids_tell_a_topic_from_a_deleted_one_of_its_name(transport: Transport, t: str) -> None:
    assert transport.topic_ids([]) == {}
    before = transport.topic_ids([t, f"{t}.nowhere"])
    assert list(before) == [t]
    assert transport.topic_ids([t]) == before
    transport.delete_topic(t)
    assert transport.topic_ids([t]) == {}
    transport.create_topic(t, 3)
    after = transport.topic_ids([t])
    assert (after[t] != before[t]) == isinstance(transport, KafkaTransport)
    assert bool(before[t]) == isinstance(transport, KafkaTransport), "an embedded log has none"


def test_closing_writes_what_was_submitted(transport: Transport, t: str) -> None:
    futures = [transport.submit([Entry(TopicPartition(t, 0), Records.of([b"%d" % i]))]) for i in range(50)]
    transport.close()
    assert [future.result(0) for future in futures] == [[i] for i in range(50)]
    transport.close()
    for use in (
        lambda: transport.append(t, 0, [b"x"]),
        lambda: transport.submit([Entry(TopicPartition(t, 0), Records.of([b"x"]))]),
        lambda: transport.read(t, 0, 0, 1, 1),
        lambda: transport.wait({TopicPartition(t, 0): 60}, 0),
        lambda: transport.create_topic(f"{t}.u", 1),
        transport.sync,
    ):
        with pytest.raises(TransportClosedError):
            use()
