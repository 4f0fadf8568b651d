"""Replies wait for no room, they are held; records that cannot be read are put aside once the broker is there."""

from concurrent.futures import Future
from typing import cast

from railgun.messaging.errors import TransportFullError, TransportUnavailableError
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.clock import Clock
from railgun.unit.outstanding import Outstanding
from railgun.unit.sending import DeadLetter, Sending


class _Away:
    """A broker that does not answer for a while. slept_s: since when it is away."""

    def __init__(self) -> None:
        self.slept_s, self.entries = 0.0, list[Entry]()

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds

    def topics(self) -> dict[str, int]:
        if self.slept_s < 200.0:
            raise TransportUnavailableError("broker", "it does not answer", "Check it")
        return {Topics().dead("s"): 1}

    def submit(self, entries: list[Entry]) -> Future[list[int]]:
        self.entries += entries
        return Future()


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


def test_the_broker_is_waited_for() -> None:
    away = _Away()
    sending = Sending(cast(Transport, away), Topics(), Clock(lambda: away.slept_s, away.sleep))
    where, outstanding = TopicPartition("railgun.s.by.card", 0), Outstanding("a task")
    sending.dead_letter(outstanding, "s", where, [DeadLetter(9, b"damaged", "why")])
    assert [entry.where.topic for entry in away.entries] == [Topics().dead("s")]
    assert outstanding.replied(20) == 9
