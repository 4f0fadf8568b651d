"""What every Transport promises, asked of each one that needs nothing but this machine."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.messaging.embedded import Durability, EmbeddedLog
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicExistsError,
    TopicMissingError,
    TransportClosedError,
)
from railgun.messaging.transport import Entry, TopicPartition, Transport

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(params=["embedded-fsync", "embedded-os"])
def transport(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Transport]:
    log = EmbeddedLog(tmp_path / "log", Durability(request.param.split("-")[1]))
    log.create_topic("t", 2)
    yield log
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


def test_topics(transport: Transport) -> None:
    transport.create_topic("t", 2)
    transport.create_topic("é", 1)
    assert dict(transport.topics()) == {"t": 2, "é": 1}
    with pytest.raises(TopicExistsError):
        transport.create_topic("t", 3)
    for where in (("other", 0), ("t", 2), ("t", -1)):
        with pytest.raises(TopicMissingError):
            transport.end_offset(*where)
        with pytest.raises(TopicMissingError):
            transport.append(*where, [b"x"])


def test_records_come_back_in_order_with_their_offsets(transport: Transport) -> None:
    assert transport.append("t", 0, [b"a", b"", b"c"]) == 0
    assert transport.append("t", 1, [b"other"]) == 0
    assert transport.append("t", 0, [b"d" * 100_000]) == 3
    assert (transport.start_offset("t", 0), transport.end_offset("t", 0)) == (0, 4)
    assert all_records(transport, T0) == [b"a", b"", b"c", b"d" * 100_000]
    assert all_records(transport, T1) == [b"other"]


def test_reading_from_any_offset_with_any_limit(transport: Transport) -> None:
    values = [str(i).encode() * (i % 7) for i in range(50)]
    for i in range(0, 50, 5):
        transport.append("t", 0, values[i : i + 5])
    for offset in range(50):
        for at_most in (1, 3, 100):
            got = transport.read("t", 0, offset, at_most, 1 << 20).values()
            assert got == values[offset : offset + len(got)]
            assert len(got) >= 1
        assert transport.read("t", 0, offset, 100, 0).values() == values[offset : offset + 1]


def test_the_end_and_beyond(transport: Transport) -> None:
    assert len(transport.read("t", 0, 0, 10, 100)) == 0
    transport.append("t", 0, [b"a"])
    at_end = transport.read("t", 0, 1, 10, 100)
    assert (len(at_end), at_end.next_offset, at_end.values()) == (0, 1, [])
    for offset in (-1, 2):
        with pytest.raises(OffsetOutOfRangeError) as caught:
            transport.read("t", 0, offset, 10, 100)
        assert (caught.value.start, caught.value.end) == (0, 1)


def test_one_submission_reaches_several_partitions(transport: Transport) -> None:
    transport.append("t", 1, [b"x"])
    future = transport.submit([Entry(T0, [b"a", b"b"]), Entry(T1, [b"c"]), Entry(T0, [b"d"])])
    assert future.result(30) == [0, 1, 2]
    assert all_records(transport, T0) == [b"a", b"b", b"d"]
    assert all_records(transport, T1) == [b"x", b"c"]


def test_submissions_keep_their_order(transport: Transport) -> None:
    futures = [transport.submit([Entry(T0, [b"%d" % i])]) for i in range(200)]
    assert transport.append("t", 0, [b"last"]) == 200
    assert [future.result(30) for future in futures] == [[i] for i in range(200)]
    assert all_records(transport, T0) == [b"%d" % i for i in range(200)] + [b"last"]


def test_many_threads_append_at_once(transport: Transport) -> None:
    offsets: dict[int, list[int]] = {i: [] for i in range(4)}

    def write(writer: int) -> None:
        for i in range(25):
            offsets[writer].append(transport.append("t", 0, [b"%d:%d" % (writer, i)] * 3))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in offsets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = all_records(transport, T0)
    assert len(records) == 300
    for writer, firsts in offsets.items():
        assert firsts == sorted(firsts)
        for i, first in enumerate(firsts):
            assert records[first : first + 3] == [b"%d:%d" % (writer, i)] * 3


def test_a_record_that_is_too_large_is_refused_with_all_beside_it(transport: Transport) -> None:
    with pytest.raises(RecordTooLargeError):
        transport.submit([Entry(T1, [b"small"]), Entry(T0, [bytes(64 << 20)])])
    assert transport.end_offset("t", 1) == 0
    with pytest.raises(ValueError, match="nothing to append"):
        transport.append("t", 0, [])


def test_waiting(transport: Transport) -> None:
    began = time.monotonic()
    assert not transport.wait({T0: 0, T1: 0}, 0.05)
    assert time.monotonic() - began >= 0.05
    timer = threading.Timer(0.05, transport.append, ("t", 1, [b"a"]))
    timer.start()
    assert transport.wait({T0: 0, T1: 0}, 30)
    timer.join()
    assert transport.wait({T1: 0}, 0)
    assert not transport.wait({T1: 1}, 0)


def test_trimming(transport: Transport) -> None:
    for i in range(10):
        transport.append("t", 0, [b"%d" % (3 * i + j) for j in range(3)])
    transport.trim("t", 0, 10)
    assert (transport.start_offset("t", 0), transport.end_offset("t", 0)) == (10, 30)
    transport.trim("t", 0, 4)
    assert all_records(transport, T0) == [b"%d" % i for i in range(10, 30)]
    with pytest.raises(OffsetOutOfRangeError):
        transport.read("t", 0, 9, 1, 1)
    transport.trim("t", 0, 30)
    assert len(transport.read("t", 0, 30, 1, 1)) == 0
    assert transport.append("t", 0, [b"next"]) == 30
    assert all_records(transport, T0) == [b"next"]
    with pytest.raises(ValueError, match="beyond the end"):
        transport.trim("t", 0, 32)


def test_a_topic_that_is_deleted_and_made_again_is_empty(transport: Transport) -> None:
    transport.append("t", 0, [b"a"])
    transport.delete_topic("t")
    transport.delete_topic("t")
    with pytest.raises(TopicMissingError):
        transport.read("t", 0, 0, 1, 1)
    transport.create_topic("t", 3)
    assert transport.end_offset("t", 0) == 0
    assert transport.append("t", 0, [b"b"]) == 0
    assert all_records(transport, T0) == [b"b"]


def test_closing_writes_what_was_submitted(transport: Transport) -> None:
    futures = [transport.submit([Entry(T0, [b"%d" % i])]) for i in range(50)]
    transport.close()
    assert [future.result(0) for future in futures] == [[i] for i in range(50)]
    transport.close()
    for use in (
        lambda: transport.append("t", 0, [b"x"]),
        lambda: transport.submit([Entry(T0, [b"x"])]),
        lambda: transport.read("t", 0, 0, 1, 1),
        lambda: transport.wait({T0: 60}, 0),
        lambda: transport.create_topic("u", 1),
        transport.sync,
    ):
        with pytest.raises(TransportClosedError):
            use()
