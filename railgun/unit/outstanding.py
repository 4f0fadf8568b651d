"""Replies of one task that are on their way, and how far it has been answered for good."""

import math
import threading
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.unit.clock import CLOCK, Clock


class Outstanding:
    """One thread adds; another may wait."""

    def __init__(self, place: str, clock: Clock = CLOCK) -> None:
        self._place, self._clock = place, clock
        self._sent: deque[tuple[int, Future[list[int]]]] = deque()
        self._lock = threading.Lock()
        # By the monotonic clock.
        self._given_up_s = math.inf

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, first_offset: int, future: "Future[list[int]]") -> None:
        """Replies to records from an offset on were handed over."""
        with self._lock:
            self._sent.append((first_offset, future))

    def replied(self, processed: int) -> int:
        """The offset before which everything is answered, of a task that has processed so far. Raises
        TransportError where an answer could not be given."""
        while self._sent and self._sent[0][1].done():
            _settled(self._sent[0][1], None)
            with self._lock:
                self._sent.popleft()
        return min(processed, self._sent[0][0]) if self._sent else processed

    def wait(self, before_offset: int, timeout_s: float) -> None:
        """Return when the replies to records before an offset are acknowledged. Raises TransportError."""
        with self._lock:
            awaited = [future for first, future in self._sent if first < before_offset]
        for future in awaited:
            waited_s = 0.0
            while not _settled(future, _LOOK_S):
                waited_s += _LOOK_S
                if waited_s > timeout_s or self._clock.now() >= self._given_up_s:
                    raise TransportUnavailableError(
                        self._place, "replies are not acknowledged", "Check the broker; then start again"
                    )

    def give_up(self, at_s: float = -math.inf) -> None:
        """Whoever waits is told so, from a time on (monotonic)."""
        self._given_up_s = min(self._given_up_s, at_s)


_LOOK_S = 0.1


def _settled(future: "Future[list[int]]", timeout_s: float | None) -> bool:
    """Whether replies have arrived, or nobody is there for them any more. Raises TransportError."""
    try:
        future.result(timeout_s)
    except FutureTimeoutError:
        return False
    except TopicMissingError:
        # The front-end is gone, and its topic with it.
        return True
    return True
