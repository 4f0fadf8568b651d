"""Clients that have no broker any more: told from those whose broker is away, and from those that are well."""

import gc
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from railgun.messaging.kafka import lost as kafka_lost
from railgun.messaging.kafka.clients import AdminClient, Client, Consumer, Producer, brokers_of, clients
from railgun.messaging.kafka.errors import Complaints
from railgun.messaging.kafka.lost import LostBrokers
from railgun.messaging.kafka.settings import KafkaSettings
from tests.messaging.mock_cluster import MockCluster, mock_cluster

_LIMIT_S, _TOPIC = 60.0, "topic"
# It never begins with its first addresses again: as one that librdkafka has kept from it, but each time.
_LOSES = {"metadata.recovery.strategy": "none"}
_QUICK = {"reconnect.backoff.max.ms": 100}
_MADE = {"admin": AdminClient, "consumer": Consumer, "producer": Producer}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockCluster]:
    monkeypatch.setattr(kafka_lost, "_ANSWER_S", 0.5)
    monkeypatch.setattr(kafka_lost, "_LOOK_S", 0.01)
    with mock_cluster(_TOPIC) as cluster:
        yield cluster


def _settings(cluster: MockCluster) -> KafkaSettings:
    return KafkaSettings(cluster.address, pass_through=_QUICK)


def _client(kind: str, cluster: MockCluster, **more: str) -> Client:
    """One that has learned which brokers there are."""
    settings = getattr(_settings(cluster), kind)()
    client: Client = _MADE[kind]({**settings, **_LOSES, **more, "error_cb": Complaints()})
    until_s = time.monotonic() + _LIMIT_S
    # What it was given at first goes once it has.
    while not brokers_of(client, _TOPIC, 5.0):
        assert time.monotonic() < until_s
    time.sleep(0.2)
    return client


def _lose(cluster: MockCluster, client: Client) -> None:
    told = Complaints.told
    cluster.hide()
    assert brokers_of(client, _TOPIC, 5.0) == 0
    cluster.add(2)
    until_s = time.monotonic() + _LIMIT_S
    while Complaints.told == told:
        client.poll(0.01)
        assert time.monotonic() < until_s


@pytest.mark.parametrize("kind", list(_MADE))
def test_one_that_lost_its_brokers_is_found(kind: str, cluster: MockCluster) -> None:
    client = _client(kind, cluster)
    heard = threading.Event()
    lost = LostBrokers(_settings(cluster), _TOPIC, heard.set)
    assert lost.look()
    _lose(cluster, client)
    lost.watch()
    assert heard.wait(_LIMIT_S)
    assert lost.reason is not None
    assert "issues/5301" in lost.reason
    assert cluster.address in lost.reason


def test_a_broker_that_is_away_is_none_that_is_lost(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = _client("producer", cluster)
    _lose(cluster, client)
    monkeypatch.setattr(LostBrokers, "_new_one_has_brokers", lambda self: False)
    lost = LostBrokers(_settings(cluster), _TOPIC)
    assert not any(lost.look() for _ in range(4))
    assert lost.reason is None


def test_one_broker_that_names_none_is_none_that_is_lost(cluster: MockCluster) -> None:
    client = _client("producer", cluster)
    cluster.hide()
    assert brokers_of(client, _TOPIC, 5.0) == 0
    lost = LostBrokers(_settings(cluster), _TOPIC)
    assert not any(lost.look() for _ in range(4))
    assert lost.reason is None


def test_nobody_is_asked_where_nobody_complains(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, complaints = list[bool](), SimpleNamespace(told=0)
    monkeypatch.setattr(LostBrokers, "look", lambda self: asked.append(True) or True)
    monkeypatch.setattr(kafka_lost, "Complaints", complaints)
    lost = LostBrokers(_settings(cluster), _TOPIC)
    lost.watch()
    time.sleep(0.2)
    assert not asked
    complaints.told = 1
    until_s = time.monotonic() + _LIMIT_S
    while not asked and time.monotonic() < until_s:
        time.sleep(0.01)
    time.sleep(0.2)
    lost.stop()
    assert asked == [True]


def test_one_that_is_closed_or_gone_is_not_asked(cluster: MockCluster) -> None:
    client = _client("consumer", cluster)
    others = len(clients(cluster.address))
    assert isinstance(client, Consumer)
    client.close()
    with pytest.raises(Exception, match="_DESTROY"):
        brokers_of(client, _TOPIC, 5.0)
    del client
    gc.collect()
    assert len(clients(cluster.address)) == others - 1


def test_one_that_is_being_closed_keeps_nobody_from_being_looked_after(cluster: MockCluster) -> None:
    client, other = _client("producer", cluster), _client("admin", cluster)
    with client.asking:
        lost = LostBrokers(_settings(cluster), _TOPIC)
        assert lost.look()
        _lose(cluster, other)
        until_s = time.monotonic() + _LIMIT_S
        while lost.reason is None:
            assert not lost.look()
            assert time.monotonic() < until_s
