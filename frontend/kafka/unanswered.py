"""Finds the tasks that no copy answers, as far as a front-end knows from the reports of units. It does no I/O.

A task is *unanswered* if for `Deadlines.silent_s` no report has said that a copy of it answers. The time begins when
this front-end comes to know the stream, since it could not note reports before. Events do not use this.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.kafka.deadlines import DEADLINES
from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.report_table import ReportTable


@dataclass(frozen=True, slots=True)
class _Stream:
    """The tasks of a stream. known_s: when this front-end came to know the stream."""

    tasks: Sequence[TaskKey]
    known_s: float


class UnansweredTasks:
    """The tasks that no copy answers. Any thread may call every method. now_s: the clock of the reports' times."""

    def __init__(
        self,
        reports: ReportTable,
        silent_s: float = DEADLINES.silent_s,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports, self._silent_s, self._now_s = reports, silent_s, now_s
        self._following = threading.Lock()
        self._place = -1
        # The key is a stream's name and place of creation. The table is replaced as a whole.
        self._streams: dict[tuple[str, int], _Stream] = {}

    def follow(self, catalog: Catalog) -> None:
        """Look at the tasks of these streams from now on. A catalogue older than the last one changes nothing."""
        with self._following:
            if catalog.last_place < self._place:
                return
            self._place, before, now_s = catalog.last_place, self._streams, self._now_s()
            keys = {(name, entry.created): entry for name, entry in catalog.streams.items()}
            self._streams = {
                key: before.get(key) or _Stream(entry.task_keys, now_s) for key, entry in keys.items()
            }

    def tasks(self) -> list[TaskKey]:
        """Return the tasks that no copy answers, in the order of their streams."""
        return [task for stream in self._streams.values() for task in self._of(stream)]

    def by_stream(self) -> dict[str, int]:
        """Return how many tasks of each stream no copy answers."""
        return {name: sum(1 for _ in self._of(stream)) for (name, _), stream in self._streams.items()}

    def is_every_task(self) -> bool:
        """Whether there are tasks, and no copy answers any of them."""
        streams = [stream for stream in self._streams.values() if stream.tasks]
        return bool(streams) and all(not self._has_answered(stream) for stream in streams)

    def _of(self, stream: _Stream) -> Iterator[TaskKey]:
        since_s = self._now_s() - self._silent_s
        return (task for task in stream.tasks if not self._is_answered(stream, task, since_s))

    def _has_answered(self, stream: _Stream) -> bool:
        since_s = self._now_s() - self._silent_s
        return any(self._is_answered(stream, task, since_s) for task in stream.tasks)

    def _is_answered(self, stream: _Stream, task: TaskKey, since_s: float) -> bool:
        """Whether a copy of a task was reported to answer, or the stream became known, after `since_s`."""
        return max(stream.known_s, self._reports.answered_at_s(task)) > since_s


def listed(tasks: Sequence[TaskKey]) -> list[dict[str, Any]]:
    """Return tasks as JSON."""
    return [
        {"stream": task.stream, "partitioner": task.partitioner, "partition": task.partition}
        for task in tasks
    ]
