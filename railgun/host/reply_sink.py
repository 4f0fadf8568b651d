"""What a host needs of whoever sends the replies of its task: the seam between tasks and transports."""

import math
from typing import Protocol

from railgun.messaging.transport import Fetched
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies


class ReplySink(Protocol):
    """The replies of one task on their way. One thread uses it, but for `wait`."""

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        """Send the replies to a batch. They hold until this returns."""

    def note(self, fetched: Fetched, took_s: float) -> None:
        """Count a batch that was just processed. took_s: seconds that this took."""

    def replied(self, position: int) -> int:
        """The offset before which no answer is owed, of a task at a position. Raises TransportError."""

    def wait(self, before_offset: int) -> None:
        """Return once all records before an offset are answered for good. Any thread. Raises TransportError."""

    def give_up(self, at_s: float = -math.inf) -> None:
        """Wait for no acknowledgement any more from a time on (monotonic)."""
