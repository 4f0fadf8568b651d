"""A tail hands on each record once, in order, from where it is told to begin; what cannot be read is for its reader."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.messaging.errors import TransportError, TransportIOError, UnreadableRecordError
from railgun.messaging.tail import OnUnreadable, Tail, TailThread, each_record, leave_out, logged
from railgun.messaging.transport import TopicPartition
from tests.unit.local_units import awaited

ONE, OTHER = TopicPartition("one", 0), TopicPartition("other", 0)
_log = logging.getLogger("railgun.unit")


class Reader:
    """Keeps what it is handed. Records that begin with `?` cannot be read."""

    def __init__(self, on_unreadable: OnUnreadable = leave_out) -> None:
        self.found: list[tuple[int, bytes]] = []
        self.taker = each_record(self._take, on_unreadable)

    def _take(self, offset: int, record: bytes) -> None:
        if record.startswith(b"?"):
            raise UnreadableRecordError(f"no sense in {record!r}")
        self.found.append((offset, record))

    @property
    def records(self) -> list[bytes]:
        return [record for _, record in self.found]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog(tmp_path, Durability.OS)
    for where in (ONE, OTHER):
        opened.create_topic(where.topic, 1)
    try:
        yield opened
    finally:
        opened.close()


def test_it_begins_with_the_first_record_and_goes_on(log: EmbeddedLog) -> None:
    one, other = Reader(), Reader()
    tail = Tail(log, {ONE: one.taker, OTHER: other.taker})
    assert tail.offsets == {}
    log.append("one", 0, [b"a", b"", b"b"])
    tail.look(1.0)
    tail.look(0.0)
    assert (one.found, other.found) == ([(0, b"a"), (2, b"b")], [])
    assert tail.has_reached({ONE: 3, OTHER: 0})
    log.append("other", 0, [b"c"])
    log.append("one", 0, [b"d"])
    assert not tail.has_reached({ONE: 4})
    tail.read_to_the_end()
    assert (one.records, other.records) == ([b"a", b"b", b"d"], [b"c"])
    assert tail.offsets == {ONE: 4, OTHER: 1}
    tail.look(0.0)
    assert one.records == [b"a", b"b", b"d"]


def test_it_may_begin_at_the_end(log: EmbeddedLog) -> None:
    reader = Reader()
    log.append("one", 0, [b"before"])
    tail = Tail(log, {ONE: reader.taker}, from_end=True)
    tail.begin()
    log.append("one", 0, [b"after"])
    tail.begin()
    tail.read_to_the_end()
    assert reader.found == [(1, b"after")]


def test_what_cannot_be_read_is_left_out_or_logged(
    log: EmbeddedLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.append("one", 0, [b"?1", b"a", b"?2"])
    for policy, said in (
        (leave_out, []),
        (logged(_log), ["one-0: no sense in b'?1'", "one-0: no sense in b'?2'"]),
    ):
        reader = Reader(policy)
        Tail(log, {ONE: reader.taker}).read_to_the_end()
        assert (reader.records, caplog.messages) == ([b"a"], said)


def test_where_its_reader_raises_the_next_look_begins_there_again(log: EmbeddedLog) -> None:
    refused = []

    def refuse(where: TopicPartition, error: UnreadableRecordError) -> None:
        refused.append(where)
        if len(refused) == 1:
            raise RuntimeError(str(error))

    reader = Reader(refuse)
    tail = Tail(log, {ONE: reader.taker})
    log.append("one", 0, [b"a", b"?", b"b"])
    with pytest.raises(RuntimeError, match=r"no sense in b'\?'"):
        tail.look(1.0)
    assert tail.offsets == {ONE: 0}
    tail.look(1.0)
    assert reader.records == [b"a", b"a", b"b"]


def test_a_thread_reads_until_it_is_closed_or_its_transport_is(log: EmbeddedLog) -> None:
    reader, errors = Reader(), list[TransportError]()
    tail = Tail(log, {ONE: reader.taker})
    thread = TailThread(lambda: tail.look(0.05), "tail", errors.append, 0.01)
    thread.start()
    log.append("one", 0, [b"a"])
    awaited(lambda: reader.records == [b"a"])
    thread.close()
    log.append("one", 0, [b"b"])
    assert reader.records == [b"a"]
    again = TailThread(lambda: tail.look(0.05), "again", errors.append, 0.01)
    again.start()
    awaited(lambda: reader.records == [b"a", b"b"])
    log.close()
    awaited(lambda: "again" not in [each.name for each in threading.enumerate()])
    again.close()
    assert not errors


def test_a_thread_goes_on_after_an_error(log: EmbeddedLog) -> None:
    failing = [TransportIOError("one", "away", "Wait")] * 3
    reader, errors = Reader(), list[TransportError]()
    tail = Tail(log, {ONE: reader.taker})

    def look() -> None:
        if failing:
            raise failing.pop()
        tail.look(0.05)

    log.append("one", 0, [b"a"])
    thread = TailThread(look, "tail", errors.append, 0.01)
    thread.start()
    awaited(lambda: reader.records == [b"a"])
    thread.close()
    assert len(errors) == 3
