"""Where the logs of a cluster's tasks begin, and what their copies need of them, as a front-end knows it."""

import time
from collections.abc import Callable, Collection, Mapping

from frontend.kafka.task_states import TaskStates
from railgun.catalog.task_key import TaskKey
from railgun.cluster.log_room import LogBounds, LogRoom, log_rooms
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.log_watch import LogWatch
from railgun.registry.topics import Topics


class TaskLogs:
    """Reads the logs' bounds in a thread of its own, until it is closed. Any thread may call every method.

    states: reads the reports of copies, and the plan.
    tasks: returns the tasks of all streams.
    is_away: returns whether the broker is known not to answer. It is not asked then.
    """

    def __init__(
        self,
        transport: KafkaTransport,
        topics: Topics,
        states: TaskStates,
        tasks: Callable[[], Collection[TaskKey]],
        is_away: Callable[[], bool],
    ) -> None:
        self._states, self._tasks, self._is_away = states, tasks, is_away
        self._watch = LogWatch(transport, topics, tasks)
        self._watch.start()

    def close(self) -> None:
        """Read no more."""
        self._watch.close()

    def rooms(self) -> dict[TaskKey, LogRoom]:
        """Return the logs of all tasks. Those of new tasks are asked for first; what the broker does not say is left
        out.
        """
        tasks = self._tasks()
        return self._rooms(tasks, self._watch.bounds if self._is_away() else self._watch.with_new(tasks))

    def known(self) -> dict[TaskKey, LogRoom]:
        """Return `rooms` as far as they are known, without asking the broker."""
        return self._rooms(self._tasks(), self._watch.bounds)

    def _rooms(
        self, tasks: Collection[TaskKey], bounds: Mapping[TaskKey, LogBounds]
    ) -> dict[TaskKey, LogRoom]:
        known = {task: bounds[task] for task in tasks if task in bounds}
        return log_rooms(known, self._states.reports, self._states.plan.known, time.time_ns() // 1_000_000)
