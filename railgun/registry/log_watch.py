"""Asks the broker now and then where the logs of tasks begin and end, and how long it keeps them."""

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from railgun.catalog.task_key import TaskKey
from railgun.cluster.log_room import LogBounds
from railgun.messaging.errors import TransportClosedError, TransportError
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics

# Time is counted in hours here, and each question goes to all brokers.
_LOOK_S = 30.0
# How soon it looks again while there is nothing to ask for, or no answer yet.
_SOON_S = 1.0

_log = logging.getLogger("railgun.registry")


class _Broker(Protocol):
    """What is asked: see `KafkaTransport`."""

    def bounds_of(self, wheres: list[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]: ...

    def retentions(self, topics: list[str]) -> Mapping[str, int | None]: ...


class LogWatch:
    """Asks every half a minute, in a thread of its own. Any thread may call every method.

    tasks: returns the tasks whose logs are asked for.
    """

    def __init__(self, broker: _Broker, topics: Topics, tasks: Callable[[], Iterable[TaskKey]]) -> None:
        self._broker, self._topics, self._tasks = broker, topics, tasks
        self._known: Mapping[TaskKey, LogBounds] = {}
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
        """The logs as they were when they were asked for last; those of which the broker did not say are missing."""
        return self._known

    def with_new(self, tasks: Collection[TaskKey]) -> Mapping[TaskKey, LogBounds]:
        """Return `bounds`, once those of tasks that were not asked for yet are there too, if the broker says."""
        missing = [task for task in tasks if task not in self._known]
        if missing:
            with contextlib.suppress(TransportError):
                self._known = {**self._known, **self._ask(missing)}
        return self._known

    def look(self) -> None:
        """Ask for all logs. Raises TransportError."""
        self._known = self._ask(list(self._tasks()))

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
        while not self._stopped.is_set():
            try:
                self.look()
            except TransportClosedError:
                return
            except TransportError as error:
                _log.debug("where logs begin is not known for now: %s", error)
            self._stopped.wait(_LOOK_S if self._known else _SOON_S)
