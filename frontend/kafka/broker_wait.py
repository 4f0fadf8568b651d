"""Waits for the broker: a start waits until it answers, and later it is asked again and again.

An outage is logged at once and now and then, and told to whoever asks. A caller may leave a call that waits for the
broker: a broker that is away answers no sooner for being waited for.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from railgun.messaging.errors import TransportClosedError, TransportError, TransportUnavailableError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics

T = TypeVar("T")


async def left_behind(call: Callable[[], T]) -> T:
    """What a call gives, made in a thread that nobody waits for once this is cancelled: not even the process's end."""
    made: Future[T] = Future()
    # From here on whoever leaves cancels only the waiting.
    made.set_running_or_notify_cancel()

    def run() -> None:
        try:
            made.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            made.set_exception(error)

    threading.Thread(target=run, name="starting", daemon=True).start()
    return await asyncio.wrap_future(made)


_ANSWER_S, _PAUSE_S, _SAY_AGAIN_S, _LOOK_S = 2.0, 1.0, 30.0, 2.0
_log = logging.getLogger("railgun.frontend")


class BrokerWait:
    """reason: why it waits; None while nothing is known to be wrong."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._stopped = threading.Event()
        self._said_s: float | None = None
        self.reason: str | None = None

    def until_there(self) -> None:
        """Return once the broker answers. Raises TransportRefusedError where it never will, TransportClosedError."""
        topics = KafkaTopics(self._settings)
        while not self._stopped.is_set():
            try:
                topics.all(_ANSWER_S)
            except TransportUnavailableError as error:
                self.away(error)
            else:
                self.reason = None
                return
        raise TransportClosedError(self._settings.broker)

    def watch(self) -> None:
        """From now on see for oneself whether the broker answers, until it is stopped."""
        threading.Thread(target=self._watch, name="broker", daemon=True).start()

    def _watch(self) -> None:
        topics = KafkaTopics(self._settings)
        while not self._stopped.wait(_LOOK_S):
            try:
                topics.all(_ANSWER_S)
            except TransportError as error:
                self.away(error)
            else:
                self.reason = None

    def away(self, error: TransportError) -> None:
        """Note that it does not answer, or not any more, and give it a moment."""
        self.reason = f"waiting for the broker, which is asked again: {error.place}: {error.reason}"
        now_s = time.monotonic()
        if self._said_s is None or now_s - self._said_s >= _SAY_AGAIN_S:
            self._said_s = now_s
            _log.warning("%s; does it run, and is its address right?", self.reason)
        self._stopped.wait(_PAUSE_S)

    def stop(self) -> None:
        """Wait and watch no more. From any thread."""
        self._stopped.set()
