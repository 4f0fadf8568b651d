"""The hosts of a unit's tasks, as they are made."""

from railgun.history.request_files import OFFER, read_asked
from railgun.host.lanes import HostLanes
from railgun.host.place import Place
from railgun.host.task_host import TaskHost
from railgun.host.task_log import TaskLog
from railgun.messaging.transport import Transport
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskSettings
from railgun.unit.sending import Sending
from railgun.unit.task_replies import TaskReplies
from railgun.unit.warm_records import WarmRecords


class Hosting:
    """environment: of the tasks.  lanes: for what takes long.  copy: tells this unit from others that share a folder of
    built history."""

    def __init__(
        self,
        transport: Transport,
        sending: Sending,
        environment: TaskEnvironment,
        lanes: HostLanes,
        copy: str = "",
    ) -> None:
        self._transport, self._sending, self._environment = transport, sending, environment
        self._lanes, self._copy = lanes, copy

    def host(self, place: Place, settings: TaskSettings) -> TaskHost:
        """The host of a task, which is not open yet."""
        offer = place.history.parents[2] / OFFER
        return TaskHost(
            place,
            TaskLog(self._transport, place.where, self._environment),
            TaskReplies(place, self._sending),
            settings,
            WarmRecords(self._transport),
            lambda: read_asked(offer),
            self._lanes.next(),
            self._copy,
        )
