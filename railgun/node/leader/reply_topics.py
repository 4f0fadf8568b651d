"""Deletes the reply topics of front-ends that have died. The leader calls it.

A front-end that had made up its name never comes back for its topic.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from railgun.cluster.silence import REPLIES_UNUSED_S
from railgun.messaging.errors import TopicMissingError, TransportClosedError, TransportError
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics

_LOOK_S = 600.0

_log = logging.getLogger("railgun.node")


class _Broker(Protocol):
    """The methods of the broker that are called: see `KafkaTransport`."""

    def topics(self) -> Collection[str]: ...

    def bounds_of(self, wheres: list[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]: ...

    def delete_topic(self, topic: str) -> None: ...


class ReplyTopics:
    """Looks every ten minutes, in a thread of its own, while this node leads.

    A dead front-end looks like one that got no reply for a day. The latter makes its topic again at once, and units
    hold its replies until then.
    now_s: returns the seconds of a clock that never goes back.
    """

    def __init__(
        self, broker: _Broker, topics: Topics, leads: Callable[[], bool], now_s: Callable[[], float]
    ) -> None:
        self._broker, self._topics, self._leads, self._now_s = broker, topics, leads, now_s
        # By topic: its end, and since when it has had this end.
        self._ends: dict[str, tuple[int, float]] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reply topics", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def close(self) -> None:
        """Look no more. A question under way goes on in its thread."""
        self._stopped.set()

    def look(self) -> None:
        """Delete the topics that got no reply for a day, as far as this node has seen. Raises TransportError."""
        if not self._leads():
            self._ends.clear()
            return
        found = [
            TopicPartition(each, 0) for each in self._broker.topics() if self._topics.is_of_replies(each)
        ]
        bounds, now_s, before = self._broker.bounds_of(found), self._now_s(), self._ends
        self._ends = {}
        for where, (_, end) in bounds.items():
            known = before.get(where.topic)
            since_s = known[1] if known is not None and known[0] == end else now_s
            self._ends[where.topic] = end, since_s
            if now_s - since_s >= REPLIES_UNUSED_S:
                self._delete(where.topic)

    def _delete(self, topic: str) -> None:
        try:
            self._broker.delete_topic(topic)
        except TopicMissingError:
            return
        _log.info("%s is deleted: its front-end has got no reply for a day", topic)

    def _run(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            try:
                self.look()
            except TransportClosedError:
                return
            except TransportError as error:
                _log.debug("which reply topics are unused is not known for now: %s", error)
