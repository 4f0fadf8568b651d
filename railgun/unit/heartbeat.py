"""What a unit tells its supervisor: a line of JSON now and then. See FORMAT.md."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from railgun.unit.loop import UnitLoop
from railgun.unit.telemetry import UnitTelemetry

INTERVAL_S = 1.0

_encode = msgspec.json.Encoder().encode


class Heartbeat:
    """Says at once what becomes ready, and otherwise how it stands every second."""

    def __init__(self, loop: UnitLoop, write: Callable[[bytes], object], telemetry: UnitTelemetry) -> None:
        self._loop, self._write, self._telemetry = loop, write, telemetry
        self._due_s = 0.0
        self._was_ready = False

    def beat(self) -> bool:
        """Called in every round. Whether it has just become ready."""
        now_s, is_ready = time.monotonic(), self._loop.is_ready
        becomes_ready = is_ready and not self._was_ready
        if now_s >= self._due_s or is_ready != self._was_ready:
            self._due_s, self._was_ready = now_s + INTERVAL_S, is_ready
            self._telemetry.read(self._loop.hosts.values(), is_ready=is_ready)
            self._write(_encode(self._body(is_ready)) + b"\n")
        return becomes_ready

    def _body(self, is_ready: bool) -> dict[str, Any]:
        hosts = self._loop.hosts
        return {
            "version": 1,
            "ready": is_ready,
            "records": self._loop.records,
            "tasks": {str(key): host.position for key, host in hosts.items()},
            "failed": {str(key): host.failure for key, host in hosts.items() if host.failure},
        }
