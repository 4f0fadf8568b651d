"""Writes records that cannot be read to the stream's dead-letter topic, in a thread of its own.

It may have to list the broker's topics, to make the topic, and to wait for room or for a broker that is away.
"""

import contextlib
import logging
import threading
from collections import deque
from concurrent.futures import Future
from functools import partial

from railgun.messaging.errors import TopicExistsError, TransportFullError, TransportUnavailableError
from railgun.messaging.transport import Entry, Transport
from railgun.unit.clock import Clock
from railgun.unit.held_replies import pass_on
from railgun.unit.reply_partitions import Sent

_FULL_S, _AWAY_S = 0.002, 0.5

_log = logging.getLogger("railgun.unit")


class DeadLetters:
    """The entries that are to be written, in order. Any thread may call `write`."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._clock = transport, clock
        self._waiting: deque[tuple[Entry, Sent]] = deque()
        self._lock = threading.Lock()
        self._is_writing = False

    def write(self, entry: Entry) -> Sent:
        """Have an entry written. The future gets its outcome: what waiting cannot cure is an error."""
        written: Sent = Future()
        with self._lock:
            self._waiting.append((entry, written))
            if not self._is_writing:
                self._is_writing = True
                threading.Thread(target=self._write_all, name="dead letters", daemon=True).start()
        return written

    def _write_all(self) -> None:
        """Write until nothing waits any more. The next entry begins another thread."""
        made: set[str] = set()  # asked for once by each thread: an operator may have deleted a topic since
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_writing = False
                    return
                entry, written = self._waiting.popleft()
            try:
                sent = self._sent(entry, made)
            except Exception as error:  # noqa: BLE001 - the unit, which looks at the outcome, ends by it
                written.set_exception(error)
            else:
                sent.add_done_callback(partial(pass_on, future=written))

    def _sent(self, entry: Entry, made: set[str]) -> Sent:
        topic = entry.where.topic
        while True:
            try:
                if topic not in made:
                    self._make(topic)
                    made.add(topic)
                return self._transport.submit([entry])
            except TransportFullError:
                self._clock.sleep(_FULL_S)
            except TransportUnavailableError as error:
                _log.warning("nothing can be sent for now: %s", error)
                self._clock.sleep(_AWAY_S)

    def _make(self, topic: str) -> None:
        if topic not in self._transport.topics():
            # A front-end may just have created it with more partitions. Any of them can take the records.
            with contextlib.suppress(TopicExistsError):
                self._transport.create_topic(topic, 1)
