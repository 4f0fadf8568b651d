"""librdkafka's settings: ours, and what passes through from the `[kafka]` section."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from railgun.messaging.transport import RECORD_LIMIT_BYTES

Value = str | int | float | bool

# A record's key and headers come on top of it.
MESSAGE_LIMIT_BYTES = RECORD_LIMIT_BYTES + (1 << 20)

_log = logging.getLogger("railgun.kafka")

# What the transport's promises rest on cannot be set.
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

# Clients of one transactional or instance id shut each other out; how members share partitions, `GroupReading` says.
_EACH_CLIENTS_OWN = frozenset(
    {"transactional.id", "group.instance.id", "group.protocol", "partition.assignment.strategy"}
)

_PRODUCER: dict[str, Value] = {
    "linger.ms": 0,
    "message.max.bytes": MESSAGE_LIMIT_BYTES,
    "message.timeout.ms": 120_000,
    # What waits is bounded by the transport, before anything of a submission is taken.
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2_097_151,
}
# Of a producer whose records go out when `flush` or a commit asks for them: it would begin with the first of them.
LINGERING: dict[str, Value] = {"linger.ms": 1_000}
_CONSUMER: dict[str, Value] = {
    "group.id": "railgun-unused",
    "fetch.queue.backoff.ms": 5,
    # An idle fetch keeps its connection busy, and what is assigned meanwhile waits for its end.
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 4 << 20,
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 32_768,
    "receive.message.max.bytes": 100_000_000,
}
_PRODUCER_ONLY = frozenset({"enable.idempotence", "acks", "partitioner"})
_CONSUMER_ONLY = frozenset(_FIXED) - _PRODUCER_ONLY - {"allow.auto.create.topics"}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """How to reach Kafka.

    broker: HOST:PORT, or several with commas.  replication: of new topics; −1: the broker's default.
    pass_through: settings of librdkafka, over ours; the transport's own (`_FIXED`, `_EACH_CLIENTS_OWN`) cannot be set.
    answer_timeout_s: how long the broker has for a question (not for records on their way to it, that is
    message.timeout.ms).
    """

    broker: str
    replication: int = -1
    pass_through: Mapping[str, Value] = field(default_factory=dict)
    answer_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        for key, value in self.pass_through.items():
            if key in _FIXED and value != _FIXED[key]:
                raise ValueError(f"[kafka] {key}: the transport relies on {_FIXED[key]!r}; leave it out")
            if key in _EACH_CLIENTS_OWN:
                raise ValueError(
                    f"[kafka] {key}: the transport says it itself, for each client; leave it out"
                )
            if key == "bootstrap.servers":
                raise ValueError("[kafka] bootstrap.servers: name the broker by `broker`")

    def producer(self) -> dict[str, Any]:
        """For a Producer."""
        return self._of(_PRODUCER, _CONSUMER, _CONSUMER_ONLY)

    def consumer(self) -> dict[str, Any]:
        """For a Consumer."""
        return self._of(_CONSUMER, _PRODUCER, _PRODUCER_ONLY)

    def admin(self) -> dict[str, Any]:
        """For an AdminClient."""
        return self._of({}, _PRODUCER | _CONSUMER, frozenset(_FIXED))

    def _of(
        self, own: Mapping[str, Value], others: Mapping[str, Value], fixed_of_others: frozenset[str]
    ) -> dict[str, Any]:
        passed = {key: value for key, value in self.pass_through.items() if key in own or key not in others}
        fixed = {key: value for key, value in _FIXED.items() if key not in fixed_of_others}
        return {
            "client.id": "railgun",
            "logger": _log,
            # It would tell of every attempt to connect; `Complaints` tells of each trouble once.
            "log_level": 2,
            **own,
            **{key: value for key, value in passed.items() if key not in _FIXED},
            **fixed,
            "bootstrap.servers": self.broker,
        }
