"""A front-end whose clients do not come back to the broker, or whose broker does not come back, ends in time."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from frontend.kafka import node_beside
from frontend.kafka.backend import KafkaBackend
from frontend.kafka.configuration import FrontEndConfiguration
from frontend.kafka.deadlines import DEADLINES, Deadlines
from railgun.broker.local import LocalBroker
from railgun.messaging.kafka import watchdog as kafka_watchdog
from railgun.messaging.kafka.clients import Client, brokers_of, clients
from railgun.messaging.kafka.errors import ClientErrors
from railgun.messaging.kafka.settings import KafkaSettings
from tests.broker.own_topics import own_prefix
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
    with front_end(FrontEndConfiguration(settings, own_prefix("l"))) as served:
        define(served.client, PAYMENTS)
        lost = clients(kafka)[0]

        def pending(client: Client, topic: str, within_s: float) -> int | None:
            return None if client is lost else brokers_of(client, topic, within_s)

        monkeypatch.setattr(kafka_watchdog, "brokers_of", pending)
        monkeypatch.setattr(ClientErrors, "reports", ClientErrors.reports + 1)
        until(lambda: served.code is not None)
        assert served.code == 1
    assert "the engine stopped: a client has lost the brokers for good" in caplog.text


def test_one_whose_broker_is_away_ends_in_time(
    broker: LocalBroker, event: Callable[..., dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    status = broker.start(0, unheard)
    with front_end(
        FrontEndConfiguration(quick_settings(status.address), deadlines=Deadlines(away_over_s=1.0))
    ) as served:
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
    assert "1 s after the last request" in said.getMessage()
    assert "Of 6 records" in said.getMessage()


def test_the_limits_lie_within_one_another() -> None:
    assert DEADLINES.lost_over_s < DEADLINES.away_over_s < DEADLINES.over_s < node_beside._NODE_STOP_S


@pytest.mark.real_time
def test_the_end_may_take_as_long_as_is_said() -> None:
    """By what is known of the broker: nothing, that it is away, that it is lost for good."""
    reasons = ((None, None), ("away", None), ("away", "lost"))
    took_s = asyncio.run(_ends_held_up(reasons))
    for took, limit in zip(took_s, (DEADLINES.over_s, DEADLINES.away_over_s, DEADLINES.lost_over_s)):
        assert limit <= took < limit + 5.0


async def _ends_held_up(reasons: Sequence[tuple[str | None, str | None]]) -> list[float]:
    """How long each of several back ends takes that something holds up, all at once."""
    let_go = threading.Event()

    async def end(away: str | None, lost: str | None) -> float:
        held_up = KafkaBackend(FrontEndConfiguration(KafkaSettings("127.0.0.1:1")))
        running = held_up.running
        running._opened.callback(let_go.wait)
        running._wait, running._watchdog = _Known(away), _Known(lost)  # type: ignore[assignment]
        begun_s = time.monotonic()
        await held_up.close()
        return time.monotonic() - begun_s

    try:
        return await asyncio.gather(*(end(*each) for each in reasons))
    finally:
        let_go.set()


@dataclass
class _Known:
    """What is known of a broker."""

    reason: str | None

    def stop(self) -> None:
        """Nothing runs."""
