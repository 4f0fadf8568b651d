"""Tells whether records are of the topics with which an input began, and not of topics that were made anew since, and
whether the mapping with which it began holds still.
"""

import logging
from collections.abc import Callable, Mapping
from math import inf
from time import monotonic

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.topics import Described
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.errors import RegistryError

# How long the broker may take to describe topics, and the pause before it is asked again. Nothing is read meanwhile.
_ANSWER_S, _AGAIN_S = 1.0, 0.1

_log = logging.getLogger("railgun.frontend")


class SameTopics:
    """The ids of an input's topics and whether its mapping holds: when both were last seen to be as at its beginning.

    `GroupMember.same_topic_after_s` says after which time they have to be seen for records to be of these topics, and
    to be read by this mapping.

    Threads: any may call `see`; one thread calls the rest.
    ids: by name.
    is_mapped_so: reads the catalogue to its end, and returns whether the mapping is that of the input: others take
        whoever is no member of the group for one that reads no more by an earlier mapping. Raises TransportError,
        RegistryError.
    """

    def __init__(
        self, ids: Mapping[str, str], transport: KafkaTransport, is_mapped_so: Callable[[], bool]
    ) -> None:
        self._ids, self._transport, self._is_mapped_so = dict(ids), transport, is_mapped_so
        self._seen_s = self._asked_s = -inf

    def see(self, looked_s: float) -> None:
        """Note that all topics had these ids, and that the mapping held.

        looked_s: when the broker was asked, by time.monotonic.
        """
        self._seen_s = max(self._seen_s, looked_s)

    def were_seen(self, after_s: float) -> bool:
        """Return whether the topics had these ids, and the mapping held, after a time of time.monotonic. If that is not
        known, the broker is asked, now and then."""
        looked_s = monotonic()
        if self._seen_s <= after_s and looked_s - self._asked_s >= _AGAIN_S:
            try:
                if self.are(self._transport.described(self._ids, _ANSWER_S)) and self._is_mapped_so():
                    self.see(looked_s)
            except (TransportError, RegistryError) as error:
                _log.debug("whether topics or their mapping are other ones is not known for now: %s", error)
            self._asked_s = monotonic()
        return self._seen_s > after_s

    def are(self, found: Mapping[str, Described | TransportError]) -> bool:
        """Return whether topics that were described are these."""
        return all(_id_of(found.get(name)) == own for name, own in self._ids.items())


def _id_of(found: Described | TransportError | None) -> str | None:
    return found.id if isinstance(found, Described) else None
