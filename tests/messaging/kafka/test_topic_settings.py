"""What topics are made with, and what is said of those that could lose records."""

import pytest

from railgun.messaging.kafka.topic_settings import settings_of_new, weakness
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicSettings
from tests.unit.local_units import quick_settings


@pytest.mark.parametrize(("replicas", "set_to"), [(1, {}), (2, {}), (3, {"min.insync.replicas": "2"})])
def test_new_topics_with_enough_replicas_wait_for_a_second_one(replicas: int, set_to: dict[str, str]) -> None:
    assert settings_of_new(replicas) == set_to


@pytest.mark.parametrize(
    ("replicas", "in_sync", "said"),
    [(1, "1", "no second replica"), (3, "1", "min.insync.replicas=1"), (3, "2", None), (2, "2", None)],
)
def test_what_one_broker_could_lose(replicas: int, in_sync: str, said: str | None) -> None:
    found = weakness(replicas, {"min.insync.replicas": in_sync})
    assert found is None if said is None else found is not None and said in found


def test_a_topic_of_the_only_broker_is_weak(kafka: str) -> None:
    with KafkaTransport(quick_settings(kafka)) as transport:
        transport.create_topic("weak", 1)
        assert transport.weakness("weak") == "it has no second replica"
        assert transport.brokers() == 1


def test_an_overwritten_topic_of_an_earlier_release_is_changed(kafka: str) -> None:
    with KafkaTransport(quick_settings(kafka)) as transport:
        transport.create_topic("busy", 1, TopicSettings(is_compacted=True))
        before = transport._topics._settings_of("busy")
        transport.create_topic("busy", 1, TopicSettings(is_compacted=True, is_overwritten=True))
        after = transport._topics._settings_of("busy")
    assert (before["segment.bytes"], before["min.cleanable.dirty.ratio"]) == ("1073741824", "0.5")
    assert (after["segment.bytes"], after["min.cleanable.dirty.ratio"]) == ("8388608", "0.01")
