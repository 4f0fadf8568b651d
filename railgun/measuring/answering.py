"""Encodes the replies of a task as a processor unit would, and counts what is in them."""

from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies


class Answering:
    """Takes replies from a task.

    size_bytes: of the reply records so far. late, duplicates: how many of the events were that.
    """

    def __init__(self, task: TaskProcessor) -> None:
        self._task = task
        self.size_bytes = self.late = self.duplicates = 0

    def __call__(self, replies: Replies) -> None:
        """Encode replies as a unit does."""
        self.late += int((replies.late[: replies.n] != 0).sum())
        self.duplicates += int((replies.duplicate[: replies.n] != 0).sum())
        for _, record in self._task.encode(replies):
            self.size_bytes += len(record)
