"""The protocols through which a host, which runs one copy of a task, writes to its transport.

One is for replies, one for `warm` records, by which a metric that has read its old events begins to answer.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from railgun.catalog.changes import Warm
from railgun.host.place import Place
from railgun.messaging.transport import Fetched
from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies


class WarmWriter(Protocol):
    """Writes `warm` records. The host calls it again until the task has read the records from its log."""

    def __call__(self, place: Place, due: Sequence[Warm]) -> None:
        """Write the `warm` records that are due for the task of a place."""


class ReplySink(Protocol):
    """Sends the replies of one task. One thread uses it, but any thread may call `wait`."""

    def deliver(self, task: TaskProcessor, replies: Replies) -> None:
        """Send the replies to a batch. The replies are valid only until this returns."""

    def note(self, fetched: Fetched, took_s: float) -> None:
        """Count a batch that was just processed. took_s: how many seconds that took."""

    def has_room(self) -> bool:
        """Whether the replies to another batch need not wait for room."""

    def drops_replies(self) -> bool:
        """Whether replies to some front-end are dropped at present, because its partition takes none."""

    def replied(self, position: int) -> int:
        """Return the offset before which everything is answered, for a task at a position. Raises TransportError."""

    def wait(self, before_offset: int) -> None:
        """Return once all records before an offset are answered and acknowledged. Any thread. Raises
        TransportError.
        """

    def give_up(self, at_s: float = -math.inf) -> None:
        """Stop waiting for acknowledgements from a time on, in seconds of the monotonic clock."""
