"""Sends the heartbeats of a unit to its supervisor (FORMAT.md), which kills a unit that sends none.

`process.py` calls it after each round of the loop.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import msgspec

from railgun import messaging
from railgun.unit import held_replies, outstanding
from railgun.unit.loop import UnitLoop
from railgun.unit.telemetry import UnitTelemetry

INTERVAL_S = 1.0
# The most characters of an error that the supervisor is told.
_FAILURE_MAX = 500

# In these modules a thread waits for the broker: for an answer, for room, or for another thread that does.
_BROKER_ROOM = f"{messaging.__name__}."
_BROKER_MODULES = frozenset((held_replies.__name__, outstanding.__name__))

_encode = msgspec.json.Encoder().encode
_STOPPING: dict[str, Any] = {"version": 1, "ready": False, "stopping": True}


def failed(error: str) -> bytes:
    """Return the line with which a unit that ends by an error tells its supervisor that error."""
    return _encode({**_STOPPING, "failure": " ".join(error.split())[:_FAILURE_MAX]}) + b"\n"


class Heartbeat:
    """Sends the unit's state to the supervisor: at once when the unit becomes ready, and otherwise every second.

    The loop sends it, so that a loop that hangs is missed. The broker may keep the loop waiting for as long as it is
    away: meanwhile a thread sends the last heartbeat again, while the `with` block runs. At the end of the block the
    unit says that it stops.
    """

    def __init__(self, loop: UnitLoop, write: Callable[[bytes], object], telemetry: UnitTelemetry) -> None:
        self._loop, self._write, self._telemetry = loop, write, telemetry
        self._due_s = 0.0
        self._was_ready = False
        self._line = b""
        # Held while a line is written, so that no older one follows a newer one.
        self._writing = threading.Lock()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        repeating = threading.Thread(
            target=self._repeat, args=[threading.get_ident()], name="heartbeat", daemon=True
        )
        repeating.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._send(_STOPPING)

    def beat(self) -> bool:
        """Send a heartbeat if one is due. Called in every round. Returns whether the unit has just become ready."""
        now_s, is_ready = time.monotonic(), self._loop.is_ready
        becomes_ready = is_ready and not self._was_ready
        if now_s >= self._due_s or is_ready != self._was_ready:
            self._due_s, self._was_ready = now_s + INTERVAL_S, is_ready
            self._telemetry.read(self._loop.hosts.values(), is_ready=is_ready)
            self._send(self._body(is_ready))
        return becomes_ready

    def _body(self, is_ready: bool) -> dict[str, Any]:
        hosts = self._loop.hosts
        return {
            "version": 1,
            "ready": is_ready,
            "records": self._loop.records,
            "tasks": {str(key): host.position for key, host in hosts.items()},
            "failed": {str(key): host.failure for key, host in hosts.items() if host.failure},
            "failed_here": [str(key) for key in self._loop.failed_here()],
        }

    def _send(self, body: dict[str, Any]) -> None:
        with self._writing:
            self._line = _encode(body) + b"\n"
            self._write(self._line)

    def _repeat(self, loop_thread: int) -> None:
        while not self._over.wait(INTERVAL_S):
            # Looking at the loop holds it up for a moment, so it is done only if a heartbeat has not come in time.
            if time.monotonic() >= self._due_s + INTERVAL_S and _waits_for_broker(loop_thread):
                with self._writing:
                    if self._line and not self._over.is_set():
                        self._write(self._line)


def _waits_for_broker(thread: int) -> bool:
    """Whether a thread is in code that talks to the broker. thread: its identity."""
    frame = sys._current_frames().get(thread)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_BROKER_ROOM) or module in _BROKER_MODULES:
            return True
        frame = frame.f_back
    return False
