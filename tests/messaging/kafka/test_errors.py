"""librdkafka's errors become the transport's, each with what to do about it."""

import pytest
from confluent_kafka import KafkaError

from railgun.messaging.errors import (
    TopicMissingError,
    TransportCorruptionError,
    TransportError,
    TransportFailedError,
    TransportRefusedError,
    TransportUnavailableError,
)
from railgun.messaging.kafka.errors import ClientErrors, as_transport_error

_REFUSAL = KafkaError(KafkaError._AUTHENTICATION, "wrong password")
_FENCED = KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced.")
_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN)
_LOST = KafkaError(KafkaError._TRANSPORT, "Connection refused")


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (KafkaError(KafkaError._TIMED_OUT), TransportUnavailableError, "broker runs"),
        (KafkaError(KafkaError._MSG_TIMED_OUT), TransportUnavailableError, "try again"),
        (KafkaError(KafkaError.NOT_ENOUGH_REPLICAS), TransportUnavailableError, "try again"),
        (KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), TopicMissingError, "accept-cut"),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), TransportRefusedError, "right"),
        (KafkaError(KafkaError.INVALID_REPLICATION_FACTOR), TransportRefusedError, "replicas"),
        (_FENCED, TransportUnavailableError, "try again"),
        (KafkaError(KafkaError._BAD_MSG), TransportCorruptionError, "copy"),
        (_REFUSAL, TransportRefusedError, "sasl"),
        (KafkaError(KafkaError._FATAL, "fenced", fatal=True), TransportFailedError, "Start again"),
    ],
)
def test_each_kind_has_its_remedy(error: KafkaError, kind: type[TransportError], remedy: str) -> None:
    found = as_transport_error("t-0", error)
    assert type(found) is kind
    assert remedy in found.remedy
    assert str(found).startswith("t-0: ")


def test_a_timeout_names_its_cause() -> None:
    timed_out = KafkaError(KafkaError._TIMED_OUT)
    assert isinstance(as_transport_error("b", timed_out, _REFUSAL), TransportRefusedError)
    found = as_transport_error("b", timed_out, _LOST)
    assert isinstance(found, TransportUnavailableError)
    assert "Connection refused" in found.reason


def test_what_follows_on_a_cause_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    client_errors = ClientErrors()
    for error in (_LOST, _DOWN, _LOST):
        client_errors(error)
    assert [record.message for record in caplog.records] == ["Connection refused"]
    client_errors.clear()
    client_errors(_DOWN)
    assert len(caplog.records) == 2


def test_the_error_that_explains_most_is_kept() -> None:
    client_errors = ClientErrors()
    for error, kept in (
        (_DOWN, _DOWN),
        (_LOST, _LOST),
        (_DOWN, _LOST),
        (_REFUSAL, _REFUSAL),
        (_LOST, _REFUSAL),
    ):
        client_errors(error)
        assert client_errors.last is kept
    client_errors.clear()
    assert client_errors.last is None
