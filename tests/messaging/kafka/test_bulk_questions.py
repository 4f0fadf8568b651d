"""Questions about many logs at once: an error of the client itself is one of the transport, as any other."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.transport import TopicPartition


def _fails(*_: object, **__: object) -> None:
    raise KafkaException(KafkaError(KafkaError._STATE, "the client is wrong"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda topics: topics.bounds_of([TopicPartition("a", 0)]),
        lambda topics: topics.offsets_at([TopicPartition("a", 0)], 5),
        lambda topics: topics.retentions(["a"]),
    ],
)
def test_it_is_an_error_of_the_transport(
    ask: Callable[[KafkaTopics], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks now and then, in a thread of its own, goes on after one."""
    client = SimpleNamespace(list_offsets=_fails, describe_configs=_fails, poll=lambda timeout_s: None)
    monkeypatch.setattr(KafkaTopics, "_client", client)
    topics = KafkaTopics(KafkaSettings("localhost:1"))
    try:
        with pytest.raises(TransportError, match="the client is wrong"):
            ask(topics)
    finally:
        topics.close()
