"""What a host needs of its transport: something that sends replies, and something that writes `warm` records."""

import math
from collections.abc import Sequence
from typing import Protocol

from railgun.catalog.changes import Warm
from railgun.host.place import Place
from railgun.messaging.transport import Fetched
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies


class WarmWriter(Protocol):
    """Called again until the task has met the records in its log."""

    def __call__(self, place: Place, due: Sequence[Warm]) -> None:
        """Write the `warm` records that are due for the task of a place."""


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
