"""Nobody waits for room or for the broker: replies are held, records that cannot be read are put aside by a thread."""

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import cast

import pytest

from railgun.catalog.changes import Warm
from railgun.host.place import Place
from railgun.messaging.errors import TransportFullError, TransportRefusedError, TransportUnavailableError
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.clock import Clock
from railgun.unit.hosting import WarmRecords
from railgun.unit.outstanding import Outstanding
from railgun.unit.sending import DeadLetter, Sending
from tests.unit.local_units import awaited


class _Away:
    """A broker that does not answer for a while. slept_s: since when it is away. may_end: not before that.

    listed: how often it has listed its topics.
    """

    def __init__(self) -> None:
        self.slept_s, self.entries, self.listed = 0.0, list[Entry](), 0
        self.may_end = threading.Event()
        self.futures: list[Future[list[int]]] = []

    def sleep(self, seconds: float) -> None:
        assert self.may_end.wait(30)
        self.slept_s += seconds

    def topics(self) -> dict[str, int]:
        if self.slept_s < 200.0:
            raise TransportUnavailableError("broker", "it does not answer", "Check it")
        self.listed += 1
        return {Topics().dead("s"): 1}

    def submit(self, entries: list[Entry]) -> Future[list[int]]:
        self.futures.append(Future())
        self.entries += entries
        return self.futures[-1]


class _Full:
    """A transport that has room once it is told so."""

    def __init__(self) -> None:
        self.has_room, self.entries = False, list[Entry]()

    def submit(self, entries: list[Entry]) -> Future[list[int]]:
        if not self.has_room:
            raise TransportFullError("broker", 64 << 20)
        self.entries += entries
        return Future()


def test_replies_without_room_are_not_waited_for() -> None:
    full, slept_s = _Full(), list[float]()
    sending = Sending(cast(Transport, full), Topics(), Clock(lambda: 100.0, slept_s.append))
    outstanding = Outstanding("a task")
    sending.answer(outstanding, "s", 9, [(1, b"reply")])
    assert (slept_s, sending.has_room, sending.has_room_for(outstanding)) == ([], False, False)
    full.has_room = True
    sending.retry()
    assert (len(full.entries), sending.has_room, outstanding.replied(20)) == (1, True, 9)


def _beside(away: _Away) -> Sending:
    return Sending(cast(Transport, away), Topics(), Clock(lambda: away.slept_s, away.sleep))


def test_a_dead_letter_waits_for_the_broker_and_keeps_nobody_waiting() -> None:
    away = _Away()
    sending = _beside(away)
    where, outstanding = TopicPartition("railgun.s.by.card", 0), Outstanding("a task")
    for offset in (9, 10):
        sending.dead_letter(outstanding, "s", where, [DeadLetter(offset, b"damaged", "why")])
    assert outstanding.replied(20) == 9
    assert away.entries == []
    away.may_end.set()
    awaited(lambda: len(away.entries) == 2)
    assert [(entry.where.topic, dict((entry.headers or [])[0])["offset"]) for entry in away.entries] == [
        (Topics().dead("s"), b"9"),
        (Topics().dead("s"), b"10"),
    ]
    assert away.listed == 1
    assert outstanding.replied(20) == 9
    for acknowledged in away.futures:
        acknowledged.set_result([0])
    assert outstanding.replied(20) == 20


def test_dead_letters_use_up_room_before_the_broker_has_them() -> None:
    away = _Away()
    sending, outstanding = _beside(away), Outstanding("a task")
    letter = DeadLetter(9, bytes(1 << 20), "why")
    for _ in range(17):
        sending.dead_letter(outstanding, "s", TopicPartition("railgun.s.by.card", 0), [letter])
    assert not sending.has_room
    away.may_end.set()
    awaited(lambda: len(away.entries) == 17)
    for acknowledged in away.futures:
        acknowledged.set_result([0])
    assert sending.has_room


def test_a_dead_letter_that_the_broker_refuses_ends_the_unit() -> None:
    transport, outstanding = _Full(), Outstanding("a task")
    transport.topics = _refused  # type: ignore[attr-defined]
    sending = Sending(cast(Transport, transport), Topics(), Clock(lambda: 0.0, lambda _: None))
    letter = DeadLetter(9, b"damaged", "why")
    sending.dead_letter(outstanding, "s", TopicPartition("railgun.s.by.card", 0), [letter])
    with pytest.raises(TransportRefusedError):
        awaited(lambda: outstanding.replied(20) == 20)


def _refused() -> dict[str, int]:
    raise TransportRefusedError("broker", "not authorized", "Give the right")


def test_a_warm_record_without_room_is_written_later() -> None:
    full, place = _Full(), cast(Place, SimpleNamespace(where=TopicPartition("t", 0)))
    records, warm = WarmRecords(cast(Transport, full)), Warm("s", "n", 3)
    records(place, [warm])
    full.has_room = True
    for _ in range(2):
        records(place, [warm])
    assert len(full.entries) == 1


def test_what_a_slow_partition_has_not_taken_leaves_room_beside_it() -> None:
    away, now_s = _Away(), [100.0]
    sending = Sending(cast(Transport, away), Topics(), Clock(lambda: now_s[0], lambda _: None))
    waits, other = Outstanding("a task"), Outstanding("another")
    sending.answer(waits, "s", 9, [(1, bytes(17 << 20))])
    assert (sending.has_room, sending.has_room_beside_slow) == (False, False)
    now_s[0] += 5.0
    sending.look(0.0)
    assert (sending.has_room, sending.has_room_beside_slow) == (False, True)
    assert (sending.has_room_for(waits), sending.has_room_for(other)) == (False, True)
    sending.answer(other, "s", 9, [(2, bytes(17 << 20))])
    assert not sending.has_room_beside_slow
