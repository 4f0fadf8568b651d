"""When a unit answers value queries: past an offset, by the copy that answers, some at a time, until nobody waits."""

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from railgun.catalog.task_key import TaskKey
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.state.errors import StoreError
from railgun.unit.clock import Clock
from railgun.unit.query_server import KEYS_PER_ROUND, QueryServer
from railgun.wire.encode import encode_event
from railgun.wire.query_record import QueryRecord, decode_refusal, encode_query
from railgun.wire.records import Records
from reservoir.executor import run_job

WHERE = TopicPartition("railgun.s.ask.card", 0)
CREATED = 5


class Host:
    """A host whose task notes which keys it was asked for."""

    def __init__(self) -> None:
        self.place = SimpleNamespace(key=TaskKey("s", CREATED, "card", 0), identity="s/card/0", cut=None)
        self.is_running, self.limit, self.position, self.lag = True, None, 10, 0
        self.metrics = SimpleNamespace(last_place=8)
        self.lane, self.task, self.asked = self, self, list[int]()
        self.schemas, self.error = {1: None}, cast(Exception | None, None)

    def submit(self, work: Callable[[], Any]) -> Any:
        job: Future[Any] = Future()
        run_job(job, work)
        return job

    def answer(self, records: Records) -> Any:
        if self.error is not None:
            raise self.error
        found = [msgspec.msgpack.decode(record[1:])[5] for record in records.to_list()]
        self.asked += found
        return found

    def encode_answers(self, replies: Any) -> list[tuple[int, bytes]]:
        return [(3, b"%d answers" % len(replies))]


class Log:
    """The topic of queries. error: what asking for its end raises."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.ends_asked, self.released = 0, list[TopicPartition]()

    def end_offset(self, topic: str, partition: int) -> int:
        self.ends_asked += 1
        if self.error is not None:
            raise self.error
        return 100

    def release(self, topic: str, partition: int) -> None:
        self.released.append(TopicPartition(topic, partition))


class Unit:
    """What reads queries, over one host."""

    def __init__(self) -> None:
        self.now_s, self.sent = 0.0, list[tuple[int, bytes]]()
        self.log, self.host = Log(), Host()
        clock = cast(Clock, SimpleNamespace(now=lambda: self.now_s))
        self.queries = QueryServer(
            cast(Transport, self.log), Topics(), lambda *sent: self.sent.append(sent), clock
        )

    def positions(self) -> dict[TopicPartition, int]:
        return self.queries.positions([cast(TaskHost, self.host)])

    def open(self) -> None:
        self.positions()
        assert self.positions() == {WHERE: 100}

    def take(self, *queries: QueryRecord) -> None:
        records = Records.of([encode_query(each) for each in queries])
        offsets = np.arange(100, 100 + len(queries))
        assert self.queries.take(Fetched(WHERE, offsets, records, 100 + len(queries)))

    def answer(self) -> None:
        self.queries.answer(lambda host, do: do())


def query(sequences: Any = (7,), **more: Any) -> QueryRecord:
    records = [encode_event(1, "", 0, ["c"], 3, 9, sequence) for sequence in sequences]
    made = QueryRecord(CREATED, 8, 9, 1, 2_000, 3, 9, sequences[0] if sequences else 0, records)
    return made._replace(**more)


@pytest.fixture
def unit() -> Unit:
    made = Unit()
    made.open()
    return made


def test_it_is_answered_once(unit: Unit) -> None:
    unit.take(query())
    assert unit.queries.has_work
    unit.answer()
    assert (unit.host.asked, unit.sent) == ([7], [(3, b"1 answers")])
    unit.answer()
    assert unit.host.asked == [7]
    assert unit.positions() == {WHERE: 101}


@pytest.mark.parametrize(
    ("more", "before", "ready"),
    [
        ({"after": 10}, {}, {"position": 11}),
        ({"schema": 2}, {}, {"schemas": {1: None, 2: None}}),
        ({"place": 9}, {}, {"metrics": SimpleNamespace(last_place=9)}),
        ({}, {"limit": object()}, {"limit": None}),
        ({}, {"is_running": False}, {"is_running": True}),
    ],
    ids=["offset", "schema", "place", "silent", "opening"],
)
def test_it_waits_until_the_task_is_ready(unit: Unit, more: Any, before: Any, ready: Any) -> None:
    vars(unit.host).update(before)
    unit.take(query(**more))
    unit.answer()
    assert not unit.queries.has_work
    assert unit.host.asked == []
    vars(unit.host).update(ready)
    assert unit.queries.has_work
    unit.answer()
    assert unit.host.asked == [7]


def test_nobody_waits_any_more(unit: Unit) -> None:
    unit.take(query(after=10))
    unit.now_s, unit.host.position = 2.5, 11
    unit.answer()
    assert unit.host.asked == []
    assert not unit.queries.has_work


def test_it_is_kept_until_it_is_sent_again_at_most(unit: Unit) -> None:
    """A silent copy never hears that another has answered."""
    unit.take(query(after=10, timeout_ms=3_600_000))
    unit.now_s, unit.host.position = 2.6, 11
    unit.answer()
    assert unit.host.asked == []


def test_no_more_is_kept_than_has_room(unit: Unit) -> None:
    large = encode_event(1, "", 0, ["c" * 60_000], 3, 9, 7)
    unit.take(*(query(after=10, number=number, records=[large] * 10) for number in range(60)))
    unit.host.position = 11
    for _ in range(100):
        unit.answer()
    assert 200 < len(unit.host.asked) < 16 * (1 << 20) / 60_000 + 10


def test_the_end_that_a_log_has_lost_is_not_waited_for(unit: Unit) -> None:
    unit.take(query(after=20))
    unit.answer()
    assert unit.host.asked == []
    unit.host.place.cut = object()
    unit.answer()
    assert unit.host.asked == [7]


def test_one_that_is_sent_again_takes_the_place_of_the_first(unit: Unit) -> None:
    unit.take(query((7, 8), after=10), query((8,), after=10, number=7))
    unit.host.position = 11
    unit.answer()
    assert unit.host.asked == [8]


def test_many_keys_take_several_rounds(unit: Unit) -> None:
    unit.take(query(range(100)), query(range(200, 230)))
    unit.answer()
    assert unit.host.asked == [*range(KEYS_PER_ROUND)]
    assert unit.queries.has_work
    unit.answer()
    assert unit.host.asked == [*range(100), *range(200, 200 + 2 * KEYS_PER_ROUND - 100)]
    unit.answer()
    assert unit.host.asked == [*range(100), *range(200, 230)]
    assert not unit.queries.has_work


def test_one_of_another_stream_of_the_name_is_left_out(unit: Unit) -> None:
    unit.take(query(created=CREATED - 1))
    unit.answer()
    assert unit.host.asked == []


def test_what_is_no_query_is_left_out(unit: Unit, caplog: pytest.LogCaptureFixture) -> None:
    records = Records.of([b"\x05nonsense", b"\x01", encode_query(query())])
    unit.queries.take(Fetched(WHERE, np.arange(3), records, 3))
    unit.answer()
    assert unit.host.asked == [7]
    assert caplog.text.count("a record is left out") == 2


def test_a_task_that_cannot_answer_says_so_and_goes_on(unit: Unit) -> None:
    unit.host.error = ValueError("no room")
    unit.take(query((7, 8)))
    unit.answer()
    ((front_end, record),) = unit.sent
    assert front_end == 3
    refusal = decode_refusal(record)
    assert refusal is not None
    assert (refusal.incarnation, refusal.number) == (9, 7)
    assert "no room" not in refusal.detail
    unit.host.error = None
    unit.take(query((9,)))
    unit.answer()
    assert unit.host.asked == [9]


def test_an_error_of_the_disk_is_the_tasks(unit: Unit) -> None:
    unit.host.error = StoreError("folder", "read", "I/O error", "mend it")
    unit.take(query())
    with pytest.raises(StoreError):
        unit.answer()


@pytest.mark.parametrize(
    ("error", "again_s"),
    [(TopicMissingError("t"), 15.0), (TransportUnavailableError("broker", "is away", "wait"), 1.0)],
)
def test_a_topic_that_cannot_be_read_is_looked_for_again(error: Exception, again_s: float) -> None:
    unit = Unit()
    unit.log.error = error
    for _ in range(5):
        assert unit.positions() == {}
    assert unit.log.ends_asked == 1
    unit.log.error, unit.now_s = None, again_s
    unit.open()


def test_after_an_error_of_reading_it_begins_anew(unit: Unit) -> None:
    assert not unit.queries.handle_fault(TopicMissingError("railgun.s.by.card-0"))
    assert unit.queries.handle_fault(TopicMissingError(str(WHERE)))
    assert unit.positions() == {}
    unit.now_s = 1.0
    unit.open()
    assert unit.log.ends_asked == 2


def test_a_host_that_is_gone_is_forgotten(unit: Unit) -> None:
    unit.take(query())
    assert unit.queries.positions([]) == {}
    assert unit.log.released == [WHERE]
    assert not unit.queries.has_work
    assert not unit.queries.take(Fetched(WHERE, np.arange(0), Records.of([]), 5))


def test_a_new_host_of_a_task_begins_at_the_end(unit: Unit) -> None:
    unit.host = Host()
    unit.open()
    assert unit.log.released == []
