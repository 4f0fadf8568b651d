"""Records that cannot be read are put aside once the broker is there: it is asked for the topic."""

from concurrent.futures import Future
from typing import cast

from railgun.messaging.errors import TransportUnavailableError
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


def test_the_broker_is_waited_for() -> None:
    away = _Away()
    sending = Sending(cast(Transport, away), Topics(), Clock(lambda: away.slept_s, away.sleep))
    where, outstanding = TopicPartition("railgun.s.by.card", 0), Outstanding("a task")
    sending.dead_letter(outstanding, "s", where, [DeadLetter(9, b"damaged", "why")])
    assert [entry.where.topic for entry in away.entries] == [Topics().dead("s")]
    assert outstanding.replied(20) == 9
