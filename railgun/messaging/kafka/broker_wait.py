"""Waits until the broker answers, at a start, and later watches whether it still does.

An outage is logged at once, then now and then, and so is its end. `reason` tells it to the rest of the process.
"""

import logging
import threading
import time

from railgun.messaging.errors import (
    TransportClosedError,
    TransportError,
    TransportRefusedError,
    TransportUnavailableError,
)
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics

_ANSWER_S, _PAUSE_S, _SAY_AGAIN_S, _LOOK_S = 2.0, 1.0, 30.0, 2.0


def reached(settings: KafkaSettings, log: logging.Logger, stopped: threading.Event) -> bool:
    """Return True once the broker answers, False if `stopped` is set before.

    Raises TransportRefusedError if the broker will never answer this user.
    """
    try:
        BrokerWait(settings, log, stopped).until_there()
    except TransportClosedError:
        return False
    return True


class BrokerWait:
    """Waits for a broker and watches it. log: the log of the process that waits.
    stopped: ends the waiting when it is set; None: only `stop` ends it.
    reason: why the broker does not answer; None while nothing is known to be wrong.
    """

    def __init__(
        self, settings: KafkaSettings, log: logging.Logger, stopped: threading.Event | None = None
    ) -> None:
        self._settings, self._log = settings, log
        self._stopped = threading.Event() if stopped is None else stopped
        self._said_s: float | None = None
        self._answered_s = time.monotonic()
        self.reason: str | None = None

    @property
    def away_s(self) -> float | None:
        """How long ago the broker answered last, in seconds, while it does not answer; None while it does."""
        return None if self.reason is None else time.monotonic() - self._answered_s

    def until_there(self) -> None:
        """Wait until the broker answers.

        Raises TransportRefusedError if it never will, TransportClosedError if the waiting was ended.
        """
        topics = KafkaTopics(self._settings)
        while not self._stopped.is_set():
            try:
                topics.all(_ANSWER_S)
            except TransportUnavailableError as error:
                self.away(error)
            else:
                self._there()
                return
        raise TransportClosedError(self._settings.broker)

    def watch(self) -> None:
        """From now on ask in a thread whether the broker answers, until `stop` is called."""
        threading.Thread(target=self._watch, name="broker", daemon=True).start()

    def _watch(self) -> None:
        topics = KafkaTopics(self._settings)
        while not self._stopped.wait(_LOOK_S):
            try:
                topics.all(_ANSWER_S)
            except TransportError as error:
                self.away(error)
            else:
                self._there()

    def away(self, error: TransportError) -> None:
        """Note an error of the broker, and pause for a moment."""
        is_refused = isinstance(error, TransportRefusedError)
        if is_refused:
            self.reason = f"the broker refuses what is asked, and is asked again: {error}"
        else:
            self.reason = f"waiting for the broker, which is asked again: {error.place}: {error.reason}"
        now_s = time.monotonic()
        if self._said_s is None or now_s - self._said_s >= _SAY_AGAIN_S:
            self._said_s = now_s
            hint = "" if is_refused else "; does it run, are its address and [kafka] security.protocol right?"
            self._log.warning("%s%s", self.reason, hint)
        self._stopped.wait(_PAUSE_S)

    def _there(self) -> None:
        self._answered_s = time.monotonic()
        if self.reason is not None:
            self.reason, self._said_s = None, None
            self._log.info("the broker answers")

    def stop(self) -> None:
        """End waiting and watching. Any thread may call it."""
        self._stopped.set()
