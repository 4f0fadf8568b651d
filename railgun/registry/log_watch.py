"""Asks the broker now and then where the logs of tasks begin and end, and how long it keeps them.

Leaders and front-ends run it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.log_room import LogBounds
from railgun.messaging.errors import TransportClosedError, TransportError
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics

# Time is counted in hours here, and each question goes to all brokers.
_LOOK_S = 30.0
# How soon it looks again while there is nothing to ask for, or no answer yet, and whether the streams have changed.
_SOON_S = 1.0
# A broker reports a topic's new setting a moment after it was made. Within this time no answer is taken for final.
_SETTLED_S = 3.0

_log = logging.getLogger("railgun.registry")


class _Broker(Protocol):
    """The methods of the broker that are called: see `KafkaTransport`."""

    def bounds_of(self, wheres: list[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]: ...

    def retentions(self, topics: list[str]) -> Mapping[str, int | None]: ...


class LogWatch:
    """Asks every half a minute, in a thread of its own, and soon after a stream's `log_retention` was changed.

    Any thread may call every method. catalog: returns the catalogue, for whose tasks it asks.
    """

    def __init__(self, broker: _Broker, topics: Topics, catalog: Callable[[], Catalog]) -> None:
        self._broker, self._topics, self._catalog = broker, topics, catalog
        self._known: Mapping[TaskKey, LogBounds] = {}
        # By stream, its `log_retention` when the broker was asked last.
        self._said: Mapping[str, int | None] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)

    def start(self) -> None:
        """Ask from now on."""
        self._thread.start()

    def close(self) -> None:
        """Ask no more. A question under way goes on in its thread."""
        self._stopped.set()

    @property
    def bounds(self) -> Mapping[TaskKey, LogBounds]:
        """The logs, as the broker reported each last. Logs that it has never reported are missing."""
        return self._known

    def up_to_date(self) -> Mapping[TaskKey, LogBounds]:
        """Return `bounds`, after asking for new tasks and for those whose `log_retention` was changed meanwhile."""
        catalog = self._catalog()
        said = _said(catalog)
        changed = [
            task
            for task in catalog.task_keys
            if task not in self._known or said[task.stream] != self._said.get(task.stream)
        ]
        if changed:
            with contextlib.suppress(TransportError):
                self._known = {**self._known, **self._ask(changed)}
                self._said = said
        return self._known

    def look(self) -> None:
        """Ask for all logs. Those that the broker does not report stay as they were. Raises TransportError."""
        catalog = self._catalog()
        tasks, before = list(catalog.task_keys), self._known
        known = {task: before[task] for task in tasks if task in before}
        self._known, self._said = {**known, **self._ask(tasks)}, _said(catalog)

    def _ask(self, tasks: list[TaskKey]) -> dict[TaskKey, LogBounds]:
        where = {
            task: TopicPartition(self._topics.tasks(task.stream, task.partitioner), task.partition)
            for task in tasks
        }
        bounds = self._broker.bounds_of(list(where.values()))
        retentions = self._broker.retentions(sorted({each.topic for each in where.values()}))
        return {
            task: LogBounds(*bounds[at], retentions[at.topic])
            for task, at in where.items()
            if at in bounds and at.topic in retentions
        }

    def _run(self) -> None:
        said: Mapping[str, int | None] = {}
        looked_s = changed_s = -_LOOK_S
        while not self._stopped.is_set():
            now_s, before = time.monotonic(), said
            said = _said(self._catalog())
            if said != before:
                changed_s = now_s
            if not self._known or now_s - looked_s >= _LOOK_S or now_s - changed_s <= _SETTLED_S:
                looked_s = now_s
                try:
                    self.look()
                except TransportClosedError:
                    return
                except TransportError as error:
                    _log.debug("where logs begin is not known for now: %s", error)
            self._stopped.wait(_SOON_S)


def _said(catalog: Catalog) -> dict[str, int | None]:
    return {name: entry.stream.log_retention_ms for name, entry in catalog.streams.items()}
