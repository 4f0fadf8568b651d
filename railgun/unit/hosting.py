"""The hosts of a unit's tasks, as they are made."""

from collections.abc import Callable
from concurrent.futures import Executor

from railgun.history.request_files import OFFER, read_asked
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.host.task_log import TaskLog
from railgun.messaging.transport import Transport
from railgun.task.settings import TaskSettings
from railgun.unit.sending import Sending
from railgun.unit.task_replies import TaskReplies
from railgun.unit.warm_records import WarmRecords


class Hosting:
    """used_s: see `TaskView`.  executor: opens and closes tasks, and what else takes long.  copy: tells this unit from
    others that share a folder of built history."""

    def __init__(
        self,
        transport: Transport,
        sending: Sending,
        used_s: Callable[[], float],
        executor: Executor,
        copy: str = "",
    ) -> None:
        self._transport, self._sending, self._used_s = transport, sending, used_s
        self._executor, self._copy = executor, copy

    def host(self, place: Place, settings: TaskSettings) -> TaskHost:
        """The host of a task, which is not open yet."""
        offer = place.history.parents[2] / OFFER
        return TaskHost(
            place,
            TaskLog(self._transport, place.where, self._used_s),
            TaskReplies(place, self._sending),
            settings,
            WarmRecords(self._transport),
            lambda: read_asked(offer),
            self._executor,
            self._copy,
        )
