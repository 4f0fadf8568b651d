"""Tells whether records are of the topics with which an input began, and not of topics that were made anew since."""

import logging
from collections.abc import Mapping
from math import inf
from time import monotonic

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.topics import Described
from railgun.messaging.kafka.transport import KafkaTransport

# How long the broker may take to describe topics, and the pause before it is asked again. Nothing is read meanwhile.
_ANSWER_S, _AGAIN_S = 1.0, 0.1

_log = logging.getLogger("railgun.frontend")


class SameTopics:
    """The ids of an input's topics, and when they were seen last.

    `GroupMember.same_topic_after_s` says after which time they have to be seen for records to be of these topics.

    Threads: any may call `see`; one thread calls the rest.
    ids: by name.
    """

    def __init__(self, ids: Mapping[str, str], transport: KafkaTransport) -> None:
        self._ids, self._transport = dict(ids), transport
        self._seen_s = self._asked_s = -inf

    def see(self, looked_s: float) -> None:
        """Note that all topics had these ids. looked_s: when the broker was asked, by time.monotonic."""
        self._seen_s = max(self._seen_s, looked_s)

    def were_seen(self, after_s: float) -> bool:
        """Return whether the topics had these ids after a time of time.monotonic. If that is not known, the broker is
        asked, now and then."""
        looked_s = monotonic()
        if self._seen_s <= after_s and looked_s - self._asked_s >= _AGAIN_S:
            try:
                if self.are(self._transport.described(self._ids, _ANSWER_S)):
                    self.see(looked_s)
            except TransportError as error:
                _log.debug("whether topics were made anew is not known for now: %s", error)
            self._asked_s = monotonic()
        return self._seen_s > after_s

    def are(self, found: Mapping[str, Described | TransportError]) -> bool:
        """Return whether topics that were described are these."""
        return all(_id_of(found.get(name)) == own for name, own in self._ids.items())


def _id_of(found: Described | TransportError | None) -> str | None:
    return found.id if isinstance(found, Described) else None
