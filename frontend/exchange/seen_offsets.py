"""The greatest offset that a front-end has seen of each task. `Exchange` has one `SeenOffsets`; it does no I/O.

A task answers a value query only once it has processed its log up to there.
"""

import threading
from collections.abc import Collection

NOTHING = -1


Task = tuple[str, int, str, int]
"""A stream, the place in the catalogue at which it was created, a partitioner and a partition."""


class SeenOffsets:
    """Notes the greatest offset of each task. Any thread may call every method."""

    def __init__(self) -> None:
        self._greatest: dict[Task, int] = {}
        self._lock = threading.Lock()

    def note(self, task: Task, offset: int) -> None:
        """Note that a record is in a task's log."""
        with self._lock:
            if offset > self._greatest.get(task, NOTHING):
                self._greatest[task] = offset

    def of(self, task: Task) -> int:
        """Return the greatest offset that was noted for a task; -1 if none was."""
        return self._greatest.get(task, NOTHING)

    def keep(self, created: Collection[int]) -> None:
        """Forget all tasks but those of the streams that were created at these places."""
        with self._lock:
            self._greatest = {task: at for task, at in self._greatest.items() if task[1] in created}
