"""Where the logs of a cluster's tasks begin, and what the copies of each task need of them, as a front-end knows it.

The overview of the cluster and the metrics show it. A thread asks the broker.
"""

import time
from collections.abc import Callable, Mapping

from frontend.kafka.task_states import TaskStates
from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.log_room import LogBounds, LogRoom, log_rooms
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.log_watch import LogWatch
from railgun.registry.topics import Topics


class TaskLogs:
    """Reads the logs' bounds in a thread of its own, until it is closed. Any thread may call every method.

    states: reads the reports of copies, and the plan.
    catalog: returns the present catalogue.
    is_away: returns whether the broker is known not to answer. It is not asked then.
    """

    def __init__(
        self,
        transport: KafkaTransport,
        topics: Topics,
        states: TaskStates,
        catalog: Callable[[], Catalog],
        is_away: Callable[[], bool],
    ) -> None:
        self._states, self._catalog, self._is_away = states, catalog, is_away
        self._watch = LogWatch(transport, topics, catalog)
        self._watch.start()

    def close(self) -> None:
        """Read no more."""
        self._watch.close()

    def rooms(self) -> dict[TaskKey, LogRoom]:
        """Return the logs of all tasks. Those of new tasks, and of streams whose `log_retention` was changed, are asked
        for first; what the broker does not say is left out.
        """
        return self._rooms(self._watch.bounds if self._is_away() else self._watch.up_to_date())

    def known(self) -> dict[TaskKey, LogRoom]:
        """Return `rooms` as far as they are known, without asking the broker."""
        return self._rooms(self._watch.bounds)

    def _rooms(self, bounds: Mapping[TaskKey, LogBounds]) -> dict[TaskKey, LogRoom]:
        known = {task: bounds[task] for task in self._catalog().task_keys if task in bounds}
        return log_rooms(known, self._states.reports, self._states.plan.known, time.time_ns() // 1_000_000)
