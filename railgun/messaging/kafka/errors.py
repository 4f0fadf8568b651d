"""Maps librdkafka's errors to the transport's, which say whether to retry, to reopen, or what to change first."""

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

# A transactional producer that was fenced warns again when it is closed. The filter is for the whole process: catching
# warnings in one thread would let those of other threads through.
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

# The offset is not in the log, or not behind the records that were read before it.
_ELSEWHERE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION})

# The bytes that came are not those that were written.
_DAMAGED: Final = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError.INVALID_MSG})

_SECURITY = "Check the security settings of [kafka] (security.protocol, sasl.*, ssl.*) against the broker's"
_LIMITS = "Change the limit or policy on the broker, or what is asked of it"

# The codes that say that the user lacks a right, each with the kind of thing that the right is for.
_DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    # An idempotent producer gets this for the topics that it may not write to, if it may write to none.
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "topic",
}

# Other errors that a retry does not cure, each with what the operator can do.
_REFUSED: Final = {
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


def as_transport_error(
    place: str, error: KafkaError, cause: KafkaError | None = None, right: str = ""
) -> TransportError:
    """Return the transport's error for one of librdkafka's.

    place: the broker, topic, partition, group or transactional id that the message names.
    cause: the last error that the client reported by itself; it explains a timeout.
    right: the right that the request needs, by Kafka's name for it; empty if it is not known.
    """
    for each in (error, cause):
        # This comes first: for some clients the lack of a right is fatal, and later errors do not name it.
        if each is not None and is_denied(each):
            return TransportRefusedError(place, text_of(each), _remedy(each, right) or "")
    if error.fatal():
        return TransportFailedError(
            place, text_of(error), "Start again: what is unanswered may be sent again"
        )
    if is_missing(error):
        return TopicMissingError(place)
    if error.code() in _DAMAGED:
        return TransportCorruptionError(place, text_of(error))
    for each in (error, cause):
        remedy = None if each is None else _remedy(each, right)
        if each is not None and remedy is not None:
            return TransportRefusedError(place, text_of(each), remedy)
    reason = text_of(error) if cause is None else f"{text_of(error)} ({text_of(cause)})"
    return TransportUnavailableError(
        place, reason, "Check that the broker runs and its address is right; then try again"
    )


def is_fenced(error: KafkaError) -> bool:
    """Whether the controller has fenced all brokers for now: they are starting, or were too busy to send heartbeats.

    Only the text distinguishes this from a replication factor above the number of brokers.
    """
    return error.code() == KafkaError.INVALID_REPLICATION_FACTOR and "fenced" in text_of(error)


def is_denied(error: KafkaError) -> bool:
    """Whether the broker knows the user, who lacks a right."""
    return error.code() in _DENIED


def _remedy(error: KafkaError, right: str = "") -> str | None:
    """Return what the operator can do about an error; None if a retry may help."""
    if is_denied(error):
        needed = f"the right {right}" if right else "the rights of its role"
        again = ", and start again" if error.fatal() else ""
        what = f"Give this user {needed} on the {_DENIED[error.code()]}{again}"
        return f"{what}; docs/kafka.md lists what each role needs"
    return None if is_fenced(error) else _REFUSED.get(error.code())


def is_transient(error: KafkaError) -> bool:
    """Whether the same request may succeed in a moment, for instance after a partition's leader has changed."""
    return not error.fatal() and _remedy(error) is None and error.code() not in _DAMAGED


def is_missing(error: KafkaError) -> bool:
    """Whether there is no such topic or partition."""
    return error.code() in _MISSING


def is_elsewhere(error: KafkaError) -> bool:
    """Whether a log lacks the offset, or has other records before it than those that were read."""
    return error.code() in _ELSEWHERE


def text_of(error: KafkaError) -> str:
    """Return librdkafka's message, without its last full stop."""
    return str(error.str()).rstrip(".")


def raised_error(raised: BaseException | None) -> KafkaError:
    """Return librdkafka's error in an exception of a call that polls: KafkaException or SystemError.

    confluent_kafka (2.16) has such a call raise that a client has failed for good. If the call runs callbacks after
    that, Python finds an exception that nobody has handled, and raises SystemError because of it.
    """
    while raised is not None and not isinstance(raised, KafkaException):
        raised = raised.__cause__
    return KafkaError(KafkaError._FATAL, fatal=True) if raised is None else raised.args[0]


def create_client(place: str, create: Callable[[], T]) -> T:
    """Call a constructor of a librdkafka client. Raises TransportRefusedError if its settings are wrong."""
    try:
        return create()
    except KafkaException as error:
        raise as_transport_error(place, error.args[0]) from error


class ClientErrors:
    """The errors that a client reports by itself, outside any call. Most concern its connections.

    Each kind is logged once until `clear`. The last one is kept, to explain a timeout.

    logs: whether errors are logged. A command that ends with an error says the last one itself.
    last: the last error. An error that the operator has to remedy is not replaced by others.
    reports: how many such errors all clients of this process have reported.
    """

    reports: ClassVar[int] = 0

    def __init__(self, *, logs: bool = True) -> None:
        self._logs = logs
        self.last: KafkaError | None = None
        self._logged: set[int] = set()

    def __call__(self, error: KafkaError) -> None:
        """Take an error, as librdkafka's `error_cb`."""
        ClientErrors.reports += 1
        # "All brokers are down" follows on every cause and says less.
        if self.last is not None and error.code() == KafkaError._ALL_BROKERS_DOWN:
            return
        if self._logs and error.code() not in self._logged:
            self._logged.add(error.code())
            _log.warning("%s", text_of(error))
        if self.last is None or _remedy(self.last) is None:
            self.last = error

    def clear(self) -> None:
        """Forget all errors, since the broker has answered."""
        if self.last is not None:
            self.last = None
            self._logged.clear()
