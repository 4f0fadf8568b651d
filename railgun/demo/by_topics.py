"""Scores the demo's departures by topics: events go to the input topic, replies come from the output topic."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from railgun.broker.errors import BrokerError
from railgun.broker.local import LocalBroker
from railgun.client.client import Client
from railgun.client.errors import ConnectionLostError
from railgun.client.replies import Reply
from railgun.demo.flights import STREAM
from railgun.demo.processes import ServerError
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics

_PATIENCE_S = 120.0
_FETCH_S, _FETCH_RECORDS, _FETCH_BYTES = 1.0, 10_000, 16 << 20


@contextmanager
def own_broker(folder: Path, say: Callable[[str], None]) -> Iterator[str]:
    """Give the address of a broker of the demo's own. It ends with the block. Raises ServerError."""
    broker = LocalBroker(folder)
    try:
        yield broker.start(0, say).address
    except BrokerError as error:
        raise ServerError(str(error)) from error
    finally:
        broker.stop()


def make_topics(broker: str) -> None:
    """Create the topics that the demo writes and reads. Raises ServerError."""
    try:
        with KafkaTransport(KafkaSettings(broker)) as log:
            for topic in (Topics().input(STREAM), Topics().output(STREAM)):
                log.create_topic(topic, 1)
    except TransportError as error:
        raise ServerError(str(error)) from error


class TopicClient(Client):
    """A client that scores by topics of one partition. Everything else goes over HTTP."""

    def __init__(self, url: str, broker: str) -> None:
        super().__init__(url)
        self._log = KafkaTransport(KafkaSettings(broker))
        self._replies = TopicPartition(Topics().output(STREAM), 0)
        self._position = 0

    def close(self) -> None:
        self._log.close()
        super().close()

    def score(self, stream: str, event: Mapping[str, Any], **options: Any) -> Reply:
        reply: Reply = msgspec.json.decode(self._through([msgspec.json.encode(event)])[0])
        return reply

    def score_lines(self, stream: str, lines: bytes, **options: Any) -> bytes:
        return b"\n".join(self._through(lines.splitlines()))

    def _through(self, events: list[bytes]) -> list[bytes]:
        """Send events, and return their replies, which come in the same order.

        Raises ConnectionLostError if they do not come.
        """
        deadline_s = time.monotonic() + _PATIENCE_S
        found: list[bytes] = []
        try:
            self._log.append(Topics().input(STREAM), 0, events)
            while len(found) < len(events):
                for fetched in self._log.fetch(
                    {self._replies: self._position}, _FETCH_RECORDS, _FETCH_BYTES, _FETCH_S
                ):
                    found += fetched.values()
                    self._position = fetched.next_offset
                if time.monotonic() > deadline_s:
                    raise ConnectionLostError(f"{self._replies}: {len(found)} of {len(events)} replies came")
        except TransportError as error:
            raise ConnectionLostError(str(error)) from error
        return found
