"""What librdkafka says went wrong, as errors of the transport: try again, open again, or change something first."""

import logging
import warnings
from collections.abc import Callable
from typing import ClassVar, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from railgun.messaging.errors import (
    TopicMissingError,
    TransportCorruptionError,
    TransportError,
    TransportFailedError,
    TransportRefusedError,
    TransportUnavailableError,
)

T = TypeVar("T")

# A transaction's writer that was shut out complains once more when it goes. Said here once for all threads: where one
# of several catches warnings, those of the others escape.
warnings.filterwarnings("ignore", "Producer .* failed during close", RuntimeWarning)

_log = logging.getLogger("railgun.kafka")

_MISSING: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)

# Bytes that cannot be what was written.
_DAMAGED: Final = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError.INVALID_MSG})

_RIGHTS = "Give this user the right on the broker"
_SECURITY = "Check the security settings of [kafka] (security.protocol, sasl.*, ssl.*) against the broker's"
_LIMITS = "Change the limit or policy on the broker, or what is asked of it"

# What no repetition mends, and what does.
_REFUSED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: _RIGHTS,
    KafkaError.SECURITY_DISABLED: _SECURITY,
    KafkaError.SASL_AUTHENTICATION_FAILED: _SECURITY,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _SECURITY,
    KafkaError.ILLEGAL_SASL_STATE: _SECURITY,
    KafkaError._AUTHENTICATION: _SECURITY,
    KafkaError._SSL: _SECURITY,
    KafkaError.POLICY_VIOLATION: _LIMITS,
    KafkaError.INVALID_CONFIG: _LIMITS,
    KafkaError.INVALID_PARTITIONS: _LIMITS,
    KafkaError.INVALID_REPLICATION_FACTOR: "Ask for as many replicas as there are brokers, or fewer",
    KafkaError.TOPIC_EXCEPTION: "Choose another name: letters, digits, '.', '_' and '-', at most 249",
    KafkaError.MSG_SIZE_TOO_LARGE: "Raise max.message.bytes of the topic, or send smaller events",
    KafkaError.UNSUPPORTED_VERSION: "Run a newer broker",
    KafkaError._UNSUPPORTED_FEATURE: "Run a newer broker",
    KafkaError.INVALID_REQUIRED_ACKS: _LIMITS,
    KafkaError._INVALID_ARG: "Check the settings of [kafka]",
}


def as_transport_error(place: str, error: KafkaError, because: KafkaError | None = None) -> TransportError:
    """The transport's error for one of librdkafka's.

    because: what the client complained of last; where nothing answered in time, that is why.
    """
    if error.fatal():
        return TransportFailedError(
            place, text_of(error), "Start again: what is unanswered may be sent again"
        )
    if error.code() in _MISSING:
        return TopicMissingError(place)
    if error.code() in _DAMAGED:
        return TransportCorruptionError(place, text_of(error))
    for each in (error, because):
        remedy = None if each is None else _remedy(each)
        if each is not None and remedy is not None:
            return TransportRefusedError(place, text_of(each), remedy)
    reason = text_of(error) if because is None else f"{text_of(error)} ({text_of(because)})"
    return TransportUnavailableError(
        place, reason, "Check that the broker runs and its address is right; then try again"
    )


def is_fenced(error: KafkaError) -> bool:
    """Whether there is no broker for replicas at the moment: each starts, or was too busy to tell the controller that
    it runs. Only the text tells that from fewer brokers than replicas."""
    return error.code() == KafkaError.INVALID_REPLICATION_FACTOR and "fenced" in text_of(error)


def _remedy(error: KafkaError) -> str | None:
    """Of an error that no repetition mends; None of any other."""
    return None if is_fenced(error) else _REFUSED.get(error.code())


def is_passing(error: KafkaError) -> bool:
    """Whether the same question may be answered in a moment, as while a partition's leader changes."""
    return not error.fatal() and _remedy(error) is None and error.code() not in _DAMAGED


def text_of(error: KafkaError) -> str:
    """What librdkafka says, for a reader of the log."""
    return str(error.str()).rstrip(".")


def made(place: str, make: Callable[[], T]) -> T:
    """What a constructor of librdkafka's makes of its settings. Raises TransportRefusedError where they are wrong."""
    try:
        return make()
    except KafkaException as error:
        raise as_transport_error(place, error.args[0]) from error


class Complaints:
    """What a client says of its connections: each trouble is logged once, and kept for what times out later.

    told: how often any client of this process complained.
    """

    told: ClassVar[int] = 0

    def __init__(self) -> None:
        self.last: KafkaError | None = None
        self._told: set[int] = set()

    def __call__(self, error: KafkaError) -> None:
        """librdkafka's `error_cb`."""
        Complaints.told += 1
        # "All brokers are down" follows on every cause and says less.
        if self.last is not None and error.code() == KafkaError._ALL_BROKERS_DOWN:
            return
        if error.code() not in self._told:
            self._told.add(error.code())
            _log.warning("%s", text_of(error))
        if self.last is None or self.last.code() not in _REFUSED:
            self.last = error

    def forget(self) -> None:
        """The broker has answered."""
        if self.last is not None:
            self.last = None
            self._told.clear()
