"""A unit's heartbeats: the loop sends them, and where the broker keeps it waiting a thread sends the last one again."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.broker_wait import reached
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.transport import TopicPartition
from railgun.unit import heartbeat
from railgun.unit.figures import UnitFigures
from railgun.unit.heartbeat import Heartbeat
from railgun.unit.loop import UnitLoop
from railgun.unit.outstanding import Outstanding
from railgun.unit.telemetry import UnitTelemetry
from tests.unit.lone_copies import lone_copies

_INTERVAL_S = 0.05


class Unit:
    """A unit whose loop does what a test says; with what its supervisor has heard."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        loop = SimpleNamespace(hosts={}, is_ready=True, records=0, failed_here=list)
        telemetry = UnitTelemetry(UnitFigures(), lone_copies())
        self.heartbeat = Heartbeat(cast(UnitLoop, loop), self._hear, telemetry)

    def _hear(self, line: bytes) -> None:
        self.heard.append(msgspec.json.decode(line))

    def beats_while(self, wait: Callable[[], object]) -> int:
        """How many heartbeats come while the loop does something, after one of its own."""
        with self.heartbeat:
            self.heartbeat.beat()
            before = len(self.heard)
            wait()
            return len(self.heard) - before


@pytest.fixture
def unit(monkeypatch: pytest.MonkeyPatch) -> Unit:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", _INTERVAL_S)
    return Unit()


def _for_a_while() -> None:
    time.sleep(20 * _INTERVAL_S)


def test_a_loop_that_hangs_sends_none(unit: Unit) -> None:
    assert unit.beats_while(_for_a_while) == 0


def _asks_a_broker() -> None:
    stopped = threading.Event()
    threading.Timer(20 * _INTERVAL_S, stopped.set).start()
    assert not reached(KafkaSettings("127.0.0.1:1"), logging.getLogger("test"), stopped)


def _waits_for_acknowledgements() -> None:
    replies = Outstanding("s")
    replies.add(0, TopicPartition("r", 0), Future())
    with pytest.raises(TransportUnavailableError):
        replies.wait(1, 20 * _INTERVAL_S)


@pytest.mark.parametrize("wait", [_asks_a_broker, _waits_for_acknowledgements])
def test_a_loop_that_waits_for_the_broker_is_heard(unit: Unit, wait: Callable[[], None]) -> None:
    assert unit.beats_while(wait) > 5
    assert all(each == unit.heard[0] for each in unit.heard[:-1])


def test_the_last_one_says_that_the_unit_stops(unit: Unit) -> None:
    unit.beats_while(lambda: None)
    assert unit.heard[-1] == {"version": 1, "ready": False, "stopping": True}
    _for_a_while()
    assert len(unit.heard) == 2
