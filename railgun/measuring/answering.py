"""Encodes the replies of a task as a processor unit would."""

from railgun.task.processor import TaskProcessor
from railgun.task.replies import Replies


class Answering:
    """Takes replies from a task. size_bytes: of the reply records so far.

    It does no more than a unit does, since single events are measured with it.
    """

    def __init__(self, task: TaskProcessor) -> None:
        self._task = task
        self.size_bytes = 0

    def __call__(self, replies: Replies) -> None:
        """Encode replies as a unit does."""
        for _, record in self._task.encode(replies):
            self.size_bytes += len(record)
