"""Clients of a process that never hear of their brokers again."""

import pytest

from railgun.messaging.kafka import watchdog as kafka_watchdog
from railgun.messaging.kafka.clients import Client, Consumer, brokers_of


def lose_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the watchdog of clients look often, and find that consumers get no answer from any broker."""

    def asked(client: Client, topic: str, within_s: float) -> int | None:
        return None if isinstance(client, Consumer) else brokers_of(client, topic, within_s)

    monkeypatch.setattr(kafka_watchdog, "_INTERVAL_S", 0.05)
    monkeypatch.setattr(kafka_watchdog, "RECONNECT_MAX_MS", 100)
    monkeypatch.setattr(kafka_watchdog, "brokers_of", asked)
