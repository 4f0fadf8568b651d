"""Keeps replies to front-ends whose topics are missing, and replies for which the transport has no room.

`Sending` has one. A broker may be away, or not know yet of a topic that was just made. So a front-end counts as gone
only when its topic has been missing for `GONE_S`.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from railgun.messaging.errors import TopicMissingError, TransportFullError, TransportUnavailableError
from railgun.messaging.transport import Entry
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.reply_partitions import Sent

GONE_S = 3.0
_RETRY_S = 0.3
# The bytes that are held for all front-ends together. Beyond this, those that were missing first count as gone.
_LIMIT_BYTES = 64 << 20


@dataclass
class _Missing:
    """A front-end without a topic.

    since_s: when the broker first said that the topic is missing.
    held: the entries to send, in order, each with the future that gets its outcome.
    size_bytes: the bytes of all of them.
    """

    since_s: float
    held: list[tuple[Entry, Sent]] = field(default_factory=list)
    size_bytes: int = 0


class HeldReplies:
    """The replies that are held. Any thread may call every method.

    submit: sends an entry, as `Transport.submit` does.
    is_full: whether the transport had no room when it was tried last.
    gone: is called with the number of replies that were given up with a front-end.
    """

    def __init__(
        self, submit: Callable[[Entry], Sent], gone: Callable[[int], object], clock: Clock = CLOCK
    ) -> None:
        self._submit, self._gone, self._clock = submit, gone, clock
        self._lock = threading.Lock()
        self._missing: dict[int, _Missing] = {}
        self._tried_s = 0.0
        self.is_full = False

    def __len__(self) -> int:
        """The number of front-ends for which replies are held."""
        return len(self._missing)

    def send(self, front_end: int, entry: Entry) -> Sent:
        """Send a reply, or hold it behind the replies that are held for the front-end.

        Returns a future that fails with TopicMissingError if the front-end is gone. Raises TransportError.
        """
        with self._lock:
            missing = self._missing.get(front_end)
            if missing is None:
                try:
                    return self._submit(entry)
                except (TopicMissingError, TransportUnavailableError, TransportFullError) as error:
                    self.is_full |= isinstance(error, TransportFullError)
                    missing = self._missing[front_end] = _Missing(self._clock.now())
            future: Sent = Future()
            missing.held.append((entry, future))
            missing.size_bytes += entry.records.size_bytes
            self._keep_within_limit()
            return future

    def retry(self) -> None:
        """Send the held replies of front-ends whose topics are there by now, and give up front-ends that are gone.

        Asks the broker a few times a second at most. Raises TransportError, but not if the broker is away.
        """
        if not self._missing:
            return
        with self._lock:
            now_s = self._clock.now()
            if now_s - self._tried_s < _RETRY_S:
                return
            self._tried_s, self.is_full = now_s, False
            for front_end, missing in list(self._missing.items()):
                try:
                    self._send_held(missing)
                except TopicMissingError:
                    if now_s - missing.since_s >= GONE_S:
                        self._give_up(front_end)
                except (TransportUnavailableError, TransportFullError) as error:
                    # The broker has not said that the topic is missing.
                    missing.since_s = now_s
                    self.is_full |= isinstance(error, TransportFullError)
                else:
                    del self._missing[front_end]

    def _send_held(self, missing: _Missing) -> None:
        while missing.held:
            entry, future = missing.held[0]
            sent = self._submit(entry)
            sent.add_done_callback(partial(pass_on, future=future))
            missing.held.pop(0)
            missing.size_bytes -= entry.records.size_bytes

    def _keep_within_limit(self) -> None:
        for front_end in self._oldest():
            if sum(each.size_bytes for each in self._missing.values()) <= _LIMIT_BYTES:
                return
            self._give_up(front_end)

    def _oldest(self) -> Iterator[int]:
        yield from sorted(self._missing, key=lambda front_end: self._missing[front_end].since_s)

    def _give_up(self, front_end: int) -> None:
        held = self._missing.pop(front_end).held
        self._gone(len(held))
        for entry, future in held:
            future.set_exception(TopicMissingError(str(entry.where)))


def pass_on(done: Sent, future: Sent) -> None:
    """Give a future the outcome of another one."""
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)
