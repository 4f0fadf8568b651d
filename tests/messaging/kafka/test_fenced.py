"""A broker that answers and takes no replicas for a moment, as one that starts or was busy."""

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from railgun.broker import local
from railgun.broker.commands import Ports
from railgun.broker.local import LocalBroker
from railgun.messaging.kafka.errors import is_fenced
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
from tests.broker.quick_broker import unheard

_LIMIT_S = 60.0
# It says too seldom that it runs: of 10 s it is fenced for about 8.
_SELDOM = "broker.heartbeat.interval.ms=10000\nbroker.session.timeout.ms=2000\n"


@pytest.fixture
def address(broker: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> str:
    properties = local.properties

    def with_few_heartbeats(logs: Path, ports: Ports) -> str:
        return properties(logs, ports) + _SELDOM

    monkeypatch.setattr(local, "properties", with_few_heartbeats)
    return broker.start(0, unheard).address


def _refused(client: AdminClient, topic: str, replicas: int) -> KafkaError | None:
    asked = NewTopic(topic, num_partitions=1, replication_factor=replicas)
    try:
        client.create_topics([asked])[topic].result()
    except KafkaException as error:
        cause: KafkaError = error.args[0]
        return cause
    return None


def _created(topics: KafkaTopics, name: str, replicas: int) -> None:
    asked = NewTopic(name, num_partitions=1, replication_factor=replicas)
    topics._change(name, lambda: topics._client.create_topics([asked], request_timeout=_LIMIT_S / 2))


def test_a_topic_is_asked_for_until_there_is_a_broker_for_it(address: str) -> None:
    topics = KafkaTopics(KafkaSettings(address))
    deadline, number = time.monotonic() + _LIMIT_S, 0
    # A first request after it is fenced waits in the client, which knows of no broker then.
    while (error := _refused(topics._client, f"probe{number}", 1)) is None:
        assert time.monotonic() < deadline
        number += 1
        time.sleep(0.1)
    assert is_fenced(error)
    # Of a new client no request is made before there is a controller: it would not see one that appears later.
    fresh = KafkaTopics(KafkaSettings(address, pass_through={"client.id": "fresh"}))
    _created(fresh, "s", 1)
    _created(topics, "t", 1)
    with pytest.raises(KafkaException, match="only 1 broker"):
        _created(topics, "u", 3)
    for name in ("s", "t"):
        topics._await(name, exists=True)
    for each in (topics, fresh):
        each.close()
