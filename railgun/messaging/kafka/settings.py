"""The settings of librdkafka's clients: this project's own, and those from the configuration's `[kafka]` section."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from railgun.messaging.limits import RECORD_LIMIT_BYTES

Value = str | int | float | bool
MAPPING_END = re.compile(r"-mapping-([0-9]+)$")
"""The end of a `client.id` of those members of groups that read by a changed mapping, with its number."""

# A record's key and headers come on top of its value.
MESSAGE_LIMIT_BYTES = RECORD_LIMIT_BYTES + (1 << 20)

_log = logging.getLogger("railgun.kafka")

# The transport's guarantees rest on these, so they cannot be set.
_FIXED: dict[str, Value] = {
    "enable.idempotence": True,
    "acks": "all",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    "partitioner": "murmur2_random",
}

# Set by the code that makes a client. Clients that share a transactional or instance id fence each other, and
# `GroupMember` relies on how a group assigns partitions.
_PER_CLIENT = frozenset(
    {"transactional.id", "group.instance.id", "group.protocol", "partition.assignment.strategy"}
)

_PRODUCER: dict[str, Value] = {
    "linger.ms": 0,
    "message.max.bytes": MESSAGE_LIMIT_BYTES,
    "message.timeout.ms": 120_000,
    # `KafkaProducer` bounds what is pending, so librdkafka's own bounds are lifted.
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2_097_151,
}
# For a producer that sends when it is flushed or commits. Without lingering it would send the first record alone.
LINGERING: dict[str, Value] = {"linger.ms": 1_000}
_CONSUMER: dict[str, Value] = {
    "group.id": "railgun-unused",
    "fetch.queue.backoff.ms": 5,
    # A newly assigned partition is fetched only after the fetch in flight has ended, so an idle one must end soon.
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 4 << 20,
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 32_768,
    "receive.message.max.bytes": 100_000_000,
}
RECONNECT_MAX_MS: Final = 1_000
"""A broker that was away is tried again at least this often."""
_PRODUCER_ONLY = frozenset({"enable.idempotence", "acks", "partitioner"})
_CONSUMER_ONLY = frozenset(_FIXED) - _PRODUCER_ONLY - {"allow.auto.create.topics"}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The settings to reach Kafka.

    broker: HOST:PORT, or several with commas.  replication: the factor of new topics; −1: the broker's default.
    pass_through: settings of librdkafka that outrank ours. Those in `_FIXED` and `_PER_CLIENT` are refused,
        and a `client.id` that ends like one of `MAPPING_END`.
    answer_timeout_s: how long a request may take. For records that are sent, message.timeout.ms counts instead.
    """

    broker: str
    replication: int = -1
    pass_through: Mapping[str, Value] = field(default_factory=dict)
    answer_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        for key, value in self.pass_through.items():
            if key in _FIXED and value != _FIXED[key]:
                raise ValueError(f"[kafka] {key}: the transport relies on {_FIXED[key]!r}; leave it out")
            if key in _PER_CLIENT:
                raise ValueError(
                    f"[kafka] {key}: the transport says it itself, for each client; leave it out"
                )
            if key == "client.id" and (end := MAPPING_END.search(str(value))):
                raise ValueError(
                    f"[kafka] client.id: {end[0]} at its end is how front-ends say by which definition they read; "
                    "choose a name without that end"
                )
            if key == "bootstrap.servers":
                raise ValueError("[kafka] bootstrap.servers: name the broker by `broker`")

    def producer(self) -> dict[str, Any]:
        """Return the configuration of a Producer."""
        return self._of(_PRODUCER, _CONSUMER, _CONSUMER_ONLY)

    def consumer(self) -> dict[str, Any]:
        """Return the configuration of a Consumer."""
        return self._of(_CONSUMER, _PRODUCER, _PRODUCER_ONLY)

    def admin(self) -> dict[str, Any]:
        """Return the configuration of an AdminClient."""
        return self._of({}, _PRODUCER | _CONSUMER, frozenset(_FIXED))

    def _of(
        self, defaults: Mapping[str, Value], others: Mapping[str, Value], fixed_of_others: frozenset[str]
    ) -> dict[str, Any]:
        """Return the configuration of a client. others, fixed_of_others: settings that only other clients know."""
        pass_through = {
            key: value for key, value in self.pass_through.items() if key in defaults or key not in others
        }
        fixed = {key: value for key, value in _FIXED.items() if key not in fixed_of_others}
        return {
            "client.id": "railgun",
            "logger": _log,
            # librdkafka would log every attempt to connect; `ClientErrors` logs each kind of error once.
            "log_level": 2,
            "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
            **defaults,
            **{key: value for key, value in pass_through.items() if key not in _FIXED},
            **fixed,
            "bootstrap.servers": self.broker,
        }
