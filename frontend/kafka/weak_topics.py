"""Finds topics that could lose acknowledged records if one broker is lost.

The status of a front-end (catalogue.py) names them. It asks the broker.
"""

import math
import time
from collections.abc import Collection, Mapping

from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport

# Settings of a topic change rarely; a broker is asked this often.
_ASK_S = 60.0


class WeakTopics:
    """Asks the broker for each topic now and then. Any thread may call every method."""

    def __init__(self, transport: KafkaTransport) -> None:
        self._transport = transport
        # By topic: when the broker was asked, and why the topic is weak.
        self._known: dict[str, tuple[float, str | None]] = {}
        self._brokers: tuple[float, int | None] = -math.inf, None

    def among(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the weak ones of some topics, each with the reason. Topics of unknown settings are left out.

        Once the broker does not answer for a topic it is not asked for the others: each would wait as long.
        """
        found, answers = {}, True
        for topic in sorted(topics):
            asked_s, weakness = self._known.get(topic, (-math.inf, None))
            now_s = time.monotonic()
            if answers and now_s - asked_s >= _ASK_S:
                try:
                    weakness = self._transport.weakness(topic)
                except TransportError as error:
                    answers = not isinstance(error, TransportUnavailableError)
                else:
                    self._known[topic] = now_s, weakness
            if weakness is not None:
                found[topic] = weakness
        return found

    def brokers(self) -> int | None:
        """Return how many brokers of the cluster live; None if that is not known."""
        asked_s, brokers = self._brokers
        now_s = time.monotonic()
        if now_s - asked_s >= _ASK_S:
            try:
                brokers = self._transport.brokers()
            except TransportError:
                return brokers
            self._brokers = now_s, brokers
        return brokers
