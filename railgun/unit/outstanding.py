"""Tracks the replies of one task that are not acknowledged, and the offset up to which all records are answered.

The sink of each host has one (`hosting.py`). A checkpoint waits for it.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Set
from concurrent.futures import TimeoutError as FutureTimeoutError

from railgun.messaging.errors import TopicMissingError, TransportUnavailableError
from railgun.messaging.transport import TopicPartition
from railgun.unit.clock import CLOCK, Clock
from railgun.unit.reply_partitions import RepliesGivenUpError, Sent


class Outstanding:
    """The replies of one task that are not acknowledged yet. One thread adds them; another may wait for them."""

    def __init__(self, place: str, clock: Clock = CLOCK) -> None:
        self._place, self._clock = place, clock
        self._sent: deque[tuple[int, TopicPartition, Sent]] = deque()
        self._lock = threading.Lock()
        # In seconds of the monotonic clock.
        self._given_up_s = math.inf

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, first_offset: int, where: TopicPartition, sent: Sent) -> None:
        """Note replies that were sent to a partition. first_offset: the offset of the first record that they answer."""
        with self._lock:
            self._sent.append((first_offset, where, sent))

    def has_sent_to(self, partitions: Set[TopicPartition]) -> bool:
        """Whether replies to one of these partitions are not acknowledged."""
        with self._lock:
            return any(where in partitions and not sent.done() for _, where, sent in self._sent)

    def replied(self, processed: int) -> int:
        """Return the offset before which all records are answered.

        processed: the offset up to which the task has processed its log.
        Raises TransportError if a reply could not be sent.
        """
        while self._sent and self._sent[0][2].done():
            _settled(self._sent[0][2], None)
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
            awaited = [sent for first, _, sent in self._sent if first < before_offset]
        for sent in awaited:
            waited_s = 0.0
            while not _settled(sent, _LOOK_S):
                waited_s += _LOOK_S
                meanwhile()
                if waited_s > timeout_s or self._clock.now() >= self._given_up_s:
                    raise TransportUnavailableError(
                        self._place, "replies are not acknowledged", "Check the broker; then start again"
                    )

    def give_up(self, at_s: float = -math.inf) -> None:
        """From this time on `wait` fails. at_s: seconds of the monotonic clock."""
        self._given_up_s = min(self._given_up_s, at_s)


_LOOK_S = 0.1


def _settled(sent: Sent, timeout_s: float | None) -> bool:
    """Wait for replies, up to a timeout. Returns whether they are acknowledged, or given up with their front-end.

    Raises TransportError.
    """
    try:
        sent.result(timeout_s)
    except FutureTimeoutError:
        return False
    except (TopicMissingError, RepliesGivenUpError):
        # The front-end is gone, and its topic with it; or its partition takes no replies.
        return True
    return True
