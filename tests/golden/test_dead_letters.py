"""What is said of a record that could not be used, in the headers of its copy in the topic of dead letters."""

from concurrent.futures import Future
from typing import Any, cast

from confluent_kafka import Message

from frontend.topics.dead_letters import letter
from railgun.messaging.transport import Entry, TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.unit.outstanding import Outstanding
from railgun.unit.sending import DeadLetter, Sending
from tests.golden.promises import held
from tests.unit.local_units import awaited

WHERE = TopicPartition("railgun.payments.by.card", 2)


class Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def topics(self) -> dict[str, int]:
        return {"railgun.payments.dead": 1}

    def submit(self, entries: list[Entry]) -> Future[list[int]]:
        self.entries += entries
        done: Future[list[int]] = Future()
        done.set_result([0])
        return done


class Read:
    """A record of an input topic."""

    def value(self) -> bytes:
        return b"no JSON"

    def key(self) -> bytes:
        return b"k"

    def topic(self) -> str:
        return "railgun.payments.in"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 7


def shown(headers: Any) -> list[list[str]]:
    return [[name, "<time>" if name == "time" else value.decode()] for name, value in headers]


def test_headers() -> None:
    written = Written()
    sending = Sending(cast(Transport, written), Topics())
    sending.dead_letter(Outstanding("a task"), "payments", WHERE, [DeadLetter(9, b"damaged", "why")])
    awaited(lambda: bool(written.entries))
    (entry,) = written.entries
    assert entry.headers is not None
    of_input = letter(cast(Message, Read()), "payments", "why")
    found = {
        "of a task's log": {"topic": str(entry.where), "headers": shown(entry.headers[0])},
        "of an input topic": {"headers": shown(of_input.headers)},
    }
    held("dead_letters.json", found)
