"""Which topics could lose records with one broker, where the broker answers for some of them only."""

from typing import cast

import pytest

from frontend.kafka import weak_topics
from frontend.kafka.weak_topics import WeakTopics
from railgun.messaging.errors import TopicMissingError, TransportError, TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport


class _Broker:
    """asked: the topics that it was asked for. failures: by topic, what it answers in place of a weakness."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failures: dict[str, TransportError] = {}

    def weakness(self, topic: str) -> str:
        self.asked.append(topic)
        if topic in self.failures:
            raise self.failures[topic]
        return f"{topic} has one replica"


def test_a_broker_that_does_not_answer_is_asked_for_no_further_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weak_topics, "_ASK_S", 0.0)
    broker = _Broker()
    weak = WeakTopics(cast(KafkaTransport, broker))
    assert weak.among(["a"]) == {"a": "a has one replica"}
    broker.failures["b"] = TransportUnavailableError("broker", "it does not answer", "wait")
    # What was known before stays.
    assert weak.among(["c", "b", "a"]) == {"a": "a has one replica"}
    assert broker.asked == ["a", "a", "b"]
    # One that is not there says nothing of others.
    broker.failures["b"] = TopicMissingError("b")
    assert list(weak.among(["c", "b", "a"])) == ["a", "c"]
