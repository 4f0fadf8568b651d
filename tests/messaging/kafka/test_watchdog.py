"""Clients that have lost their brokers are told from those whose broker is away, and from those that are well."""

import gc
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from railgun.messaging.kafka import watchdog as kafka_watchdog
from railgun.messaging.kafka.clients import AdminClient, Client, Consumer, Producer, brokers_of, clients
from railgun.messaging.kafka.errors import ClientErrors
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.watchdog import ClientWatchdog
from tests.messaging.mock_cluster import MockCluster, mock_cluster
from tests.unit.local_units import awaited

_LIMIT_S, _TOPIC = 60.0, "topic"
# Such a client never starts over with its bootstrap servers: the effect of librdkafka's bug, but each time.
_LOSES = {"metadata.recovery.strategy": "none"}
_QUICK = {"reconnect.backoff.max.ms": 100}
_MADE = {"admin": AdminClient, "consumer": Consumer, "producer": Producer}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockCluster]:
    monkeypatch.setattr(kafka_watchdog, "_ANSWER_S", 0.5)
    monkeypatch.setattr(kafka_watchdog, "_INTERVAL_S", 0.01)
    with mock_cluster(_TOPIC) as cluster:
        yield cluster


def _settings(cluster: MockCluster) -> KafkaSettings:
    return KafkaSettings(cluster.address, pass_through=_QUICK)


def _client(kind: str, cluster: MockCluster, **more: str) -> Client:
    """One that has learned which brokers there are."""
    settings = getattr(_settings(cluster), kind)()
    client: Client = _MADE[kind]({**settings, **_LOSES, **more, "error_cb": ClientErrors()})
    until_s = time.monotonic() + _LIMIT_S
    # What it was given at first goes once it has.
    while not brokers_of(client, _TOPIC, 5.0):
        assert time.monotonic() < until_s
    time.sleep(0.2)
    return client


def _lose(cluster: MockCluster, client: Client) -> None:
    reports = ClientErrors.reports
    cluster.hide()
    assert brokers_of(client, _TOPIC, 5.0) == 0
    cluster.add(2)
    until_s = time.monotonic() + _LIMIT_S
    while ClientErrors.reports == reports:
        client.poll(0.01)
        assert time.monotonic() < until_s


@pytest.mark.parametrize("kind", list(_MADE))
def test_one_that_lost_its_brokers_is_found(kind: str, cluster: MockCluster) -> None:
    client = _client(kind, cluster)
    heard = threading.Event()
    watchdog = ClientWatchdog(_settings(cluster), _TOPIC, heard.set)
    awaited(watchdog.check)
    _lose(cluster, client)
    watchdog.start()
    assert heard.wait(_LIMIT_S)
    assert watchdog.reason is not None
    assert "issues/5301" in watchdog.reason
    assert cluster.address in watchdog.reason


def test_a_broker_that_is_away_is_none_that_is_lost(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = _client("producer", cluster)
    _lose(cluster, client)
    monkeypatch.setattr(ClientWatchdog, "_has_new_client_brokers", lambda self: False)
    watchdog = ClientWatchdog(_settings(cluster), _TOPIC)
    assert not any(watchdog.check() for _ in range(4))
    assert watchdog.reason is None


def test_one_broker_that_names_none_is_none_that_is_lost(cluster: MockCluster) -> None:
    client = _client("producer", cluster)
    cluster.hide()
    assert brokers_of(client, _TOPIC, 5.0) == 0
    watchdog = ClientWatchdog(_settings(cluster), _TOPIC)
    assert not any(watchdog.check() for _ in range(4))
    assert watchdog.reason is None


def test_no_client_is_asked_before_one_reports_an_error(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, client_errors = list[bool](), SimpleNamespace(reports=0)
    monkeypatch.setattr(ClientWatchdog, "check", lambda self: asked.append(True) or True)
    monkeypatch.setattr(kafka_watchdog, "ClientErrors", client_errors)
    watchdog = ClientWatchdog(_settings(cluster), _TOPIC)
    watchdog.start()
    time.sleep(0.2)
    assert not asked
    client_errors.reports = 1
    until_s = time.monotonic() + _LIMIT_S
    while not asked and time.monotonic() < until_s:
        time.sleep(0.01)
    time.sleep(0.2)
    watchdog.stop()
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
        watchdog = ClientWatchdog(_settings(cluster), _TOPIC)
        awaited(watchdog.check)
        _lose(cluster, other)
        until_s = time.monotonic() + _LIMIT_S
        while watchdog.reason is None:
            assert not watchdog.check()
            assert time.monotonic() < until_s
