"""The settings of topics, by Kafka's names: those without which records would be lost or refused, and those that are
only better.

`KafkaTopics` (topics.py) creates and checks topics with them. It does no I/O.
"""

from collections.abc import Mapping
from typing import Final

from confluent_kafka.admin._config import ConfigEntry

from railgun.messaging.kafka.settings import MESSAGE_LIMIT_BYTES
from railgun.messaging.transport import TopicSettings

# By default a broker compacts a log only once half of it is uncompacted, and never its last segment.
_OVERWRITTEN: Final = {"segment.bytes": str(8 << 20), "min.cleanable.dirty.ratio": "0.01"}
_IN_SYNC: Final = "min.insync.replicas"
_SAFE_REPLICAS: Final = 2


def required(settings: TopicSettings) -> dict[str, str]:
    """Return the settings that a topic must have. With other values it would lose records, or refuse them."""
    forever = settings.retention_ms is None
    policies = ["compact"] if settings.is_compacted else []
    if not settings.is_compacted or not forever:
        policies.append("delete")
    return {
        "cleanup.policy": ",".join(policies),
        "message.timestamp.type": "LogAppendTime",
        **retention(settings.retention_ms),
        "retention.bytes": "-1",
        "max.message.bytes": str(MESSAGE_LIMIT_BYTES),
    }


_RETENTION: Final = "retention.ms"
_FOREVER: Final = "-1"


def retention(retention_ms: int | None) -> dict[str, str]:
    """Return the setting by which a topic keeps records for this many ms; None: for ever."""
    return {_RETENTION: _FOREVER if retention_ms is None else str(retention_ms)}


def retention_ms(found: Mapping[str, ConfigEntry]) -> int | None:
    """Return for how long a topic keeps records, in ms; None: for ever. found: its settings, as the broker has them."""
    value = str(found[_RETENTION].value)
    return None if value == _FOREVER else int(value)


def preferred(settings: TopicSettings) -> dict[str, str]:
    """Return the settings that a topic works without, but should have."""
    return _OVERWRITTEN if settings.is_overwritten else {}


def suffices(setting: str, actual: str, required: str) -> bool:
    """Whether a topic may keep the value that it has."""
    if setting == "max.message.bytes":
        return int(actual) >= int(required)
    if setting == "cleanup.policy":
        return set(actual.replace(" ", "").split(",")) == set(required.split(","))
    return actual == required


def settings_of_new(replicas: int) -> dict[str, str]:
    """Return the settings of a new topic with this many replicas.

    With three replicas one broker may be away, and each acknowledged record is on two brokers at least.
    """
    return {_IN_SYNC: str(_SAFE_REPLICAS)} if replicas > _SAFE_REPLICAS else {}


def weakness(replicas: int, found: dict[str, str]) -> str | None:
    """Return why the loss of one broker could lose acknowledged records of a topic; None if it could not.

    found: its settings.
    """
    if replicas < _SAFE_REPLICAS:
        return "it has no second replica"
    in_sync = found.get(_IN_SYNC, "1")
    if int(in_sync) < _SAFE_REPLICAS:
        return f"it has {_IN_SYNC}={in_sync}"
    return None
