"""A front-end whose clients do not come back to the broker, or whose broker does not come back, ends in time."""

import logging
import os
import signal
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from frontend.kafka import backend, serving
from frontend.kafka.backend import Cluster
from railgun.broker.local import LocalBroker
from railgun.messaging.kafka import watchdog as kafka_watchdog
from railgun.messaging.kafka.clients import Client, brokers_of, clients
from railgun.messaging.kafka.errors import ClientErrors
from railgun.messaging.kafka.settings import KafkaSettings
from tests.broker.quick_broker import unheard
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import define, front_end
from tests.frontend.serving import until
from tests.halting import halt
from tests.unit.local_units import QUICK, quick_settings


def test_one_whose_client_lost_its_brokers_ends_and_says_so(
    kafka: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = KafkaSettings(kafka, pass_through={**QUICK, "reconnect.backoff.max.ms": 100})
    monkeypatch.setattr(kafka_watchdog, "_INTERVAL_S", 0.05)
    with front_end(Cluster(settings, f"l{uuid.uuid4().hex[:12]}")) as served:
        define(served.client, PAYMENTS)
        lost = clients(kafka)[0]

        def asked(client: Client, topic: str, within_s: float) -> int | None:
            return None if client is lost else brokers_of(client, topic, within_s)

        monkeypatch.setattr(kafka_watchdog, "brokers_of", asked)
        monkeypatch.setattr(ClientErrors, "reports", ClientErrors.reports + 1)
        until(lambda: served.code is not None)
        assert served.code == 1
    assert "the engine stopped: a client has lost the brokers for good" in caplog.text


def test_one_whose_broker_is_away_ends_in_time(
    broker: LocalBroker,
    event: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(backend, "AWAY_OVER_WITHIN_S", 3.0)
    status = broker.start(0, unheard)
    with front_end(Cluster(quick_settings(status.address))) as served:
        define(served.client, PAYMENTS)
        place, query = "/v1/streams/payments/events", {"reply": "none", "timeout_ms": "30000"}
        assert served.post(place, event(), params=query).status_code == 202
        halt(status.pid)
        try:
            served.post(place, [event() for _ in range(3)], params={**query, "timeout_ms": "100"})
            until(lambda: served.client.get("/readyz").status_code == 503)
            begun_s = time.monotonic()
            served.service.stop()
            until(lambda: served.code is not None)
            took_s = time.monotonic() - begun_s
        finally:
            os.kill(status.pid, signal.SIGCONT)
    assert took_s < 12.0
    assert served.code == 0
    [said] = [each for each in caplog.records if "it ends as it is" in each.msg]
    assert said.levelno == logging.ERROR
    # One for each of two partitioners.
    assert "3 s after the last request" in said.getMessage()
    assert "Of 6 records" in said.getMessage()


def test_the_limits_lie_within_one_another() -> None:
    assert backend.LOST_OVER_WITHIN_S < backend.AWAY_OVER_WITHIN_S < backend.OVER_WITHIN_S
    assert backend.OVER_WITHIN_S < serving._NODE_STOP_S
