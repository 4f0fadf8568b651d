"""Tracks the replies of one task that are not acknowledged, and the offset up to which all records are answered."""

import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.unit.clock import CLOCK, Clock


class Outstanding:
    """The replies of one task that are not acknowledged yet. One thread adds them; another may wait for them."""

    def __init__(self, place: str, clock: Clock = CLOCK) -> None:
        self._place, self._clock = place, clock
        self._sent: deque[tuple[int, Future[list[int]]]] = deque()
        self._lock = threading.Lock()
        # In seconds of the monotonic clock.
        self._given_up_s = math.inf

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, first_offset: int, future: "Future[list[int]]") -> None:
        """Note replies that were given to the producer. first_offset: of the first record that they answer."""
        with self._lock:
            self._sent.append((first_offset, future))

    def replied(self, processed: int) -> int:
        """Return the offset before which all records are answered.

        processed: the offset up to which the task has processed its log.
        Raises TransportError if a reply could not be sent.
        """
        while self._sent and self._sent[0][1].done():
            _settled(self._sent[0][1], None)
            with self._lock:
                self._sent.popleft()
        return min(processed, self._sent[0][0]) if self._sent else processed

    def wait(
        self, before_offset: int, timeout_s: float, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Return when the replies to records before an offset are acknowledged. Raises TransportError.

        meanwhile: is called a few times a second while it waits.
        """
        with self._lock:
            awaited = [future for first, future in self._sent if first < before_offset]
        for future in awaited:
            waited_s = 0.0
            while not _settled(future, _LOOK_S):
                waited_s += _LOOK_S
                meanwhile()
                if waited_s > timeout_s or self._clock.now() >= self._given_up_s:
                    raise TransportUnavailableError(
                        self._place, "replies are not acknowledged", "Check the broker; then start again"
                    )

    def give_up(self, at_s: float = -math.inf) -> None:
        """Let `wait` fail from a time on, in seconds of the monotonic clock."""
        self._given_up_s = min(self._given_up_s, at_s)


_LOOK_S = 0.1


def _settled(future: "Future[list[int]]", timeout_s: float | None) -> bool:
    """Wait for replies, up to a timeout. Returns whether they are acknowledged, or their front-end is gone.

    Raises TransportError.
    """
    try:
        future.result(timeout_s)
    except FutureTimeoutError:
        return False
    except TopicMissingError:
        # The front-end is gone, and its topic with it.
        return True
    return True
