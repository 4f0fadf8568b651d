"""Finds logs that lack the records that their tasks need next, after an error of reading.

The unit's loop reports such errors to it. The broker is asked outside the unit's loop: if a partition has no leader, an
answer may take half a minute, and other tasks must not wait for it. A host runs one task.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from railgun.host.lanes import QUESTION_S
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TopicMissingError, TransportError, TransportUnavailableError
from railgun.messaging.transport import TopicPartition, Transport
from railgun.task.errors import LogGapError, LogReplacedError, StateLeftBehindError
from railgun.unit.clock import Clock
from reservoir.executor import Job, Lane

# A topic that is missing for this long is gone. A broker that has just started may not know all topics yet.
GONE_S = 5.0
# The pauses before a log is read again if its topic is missing, and if its broker does not answer.
_MISSING_S, _AWAY_S = 0.05, 0.5


@dataclass(slots=True)
class _Doubtful:
    """A log that may not be readable.

    host: runs the task of the log.
    asking: the request to the broker about it; None once it is answered.
    again_s: when the log is read again after the answer, by the unit's clock.
    """

    host: TaskHost
    asking: Job[None] | None
    again_s: float = 0.0


class LogFaults:
    """The faults of the logs of a unit's tasks. `UnitLoop` makes it; one thread uses it.

    lane: the lane in which the broker is asked.
    """

    def __init__(self, transport: Transport, lane: Lane, clock: Clock) -> None:
        self._transport, self._lane, self._clock = transport, lane, clock
        self._doubtful: dict[TopicPartition, _Doubtful] = {}
        # The logs whose topics are missing, each with its host and the time since when.
        self._missed: dict[TopicPartition, tuple[TaskHost, float]] = {}

    def ask(self, error: TransportError, running: Mapping[TopicPartition, TaskHost]) -> None:
        """Ask about the logs that an error of reading concerns: the one that it names, or else all that are read."""
        hosts = {where: host for where, host in running.items() if host.is_running}
        about = {where: host for where, host in hosts.items() if is_about(error, where)}
        for where, host in (about or hosts).items():
            if where not in self._doubtful:
                self._doubtful[where] = _Doubtful(host, self._asked(host))

    def forget_others(self, hosts: Collection[TaskHost]) -> None:
        """Forget the logs of all other hosts, which do not run any more."""
        if self._doubtful or self._missed:
            needed = set(hosts)
            self._doubtful = {where: each for where, each in self._doubtful.items() if each.host in needed}
            self._missed = {where: each for where, each in self._missed.items() if each[0] in needed}

    def is_doubtful(self, where: TopicPartition) -> bool:
        """Whether a log must not be read for now."""
        return where in self._doubtful

    def find(self) -> Iterator[tuple[TaskHost, Exception]]:
        """Yield the hosts whose logs lack the records that they need next, each with the error.

        Raises TransportError, but not if the broker is away.
        """
        for where, each in list(self._doubtful.items()):
            asking, now_s = each.asking, self._clock.now()
            if asking is None:
                if now_s >= each.again_s:
                    del self._doubtful[where]
                continue
            if not asking.done() or not each.host.is_running:
                continue
            each.asking, each.again_s = None, now_s
            try:
                asking.result()
            except TopicMissingError as missing:
                _, since_s = self._missed.setdefault(where, (each.host, now_s))
                if now_s - since_s >= GONE_S:
                    yield each.host, LogReplacedError(str(where), missing.reason, each.host.task.topic_id)
                each.again_s += _MISSING_S
            except TransportUnavailableError:
                each.again_s += _AWAY_S
            except LogGapError as fault:
                yield each.host, fault
            else:
                self._missed.pop(where, None)

    def _asked(self, host: TaskHost) -> Job[None]:
        where, position = host.place.where, host.position
        checkpoints, clock_ms = host.task.checkpoints, host.task.admission.clock_ms
        durable = checkpoints.durable_position, checkpoints.durable_epoch
        epoch, topic_id = host.epoch_before(position), host.task.topic_id

        def check() -> None:
            start = self._transport.start_offset(*where, QUESTION_S)
            end = self._transport.end_offset(*where, QUESTION_S)
            if position < start:
                reason = f"offset {position} is next, the log has {start} to {end}"
                # The next start has the state of the last checkpoint.
                raise StateLeftBehindError(str(where), reason, *durable, clock_ms)
            host.log.check_continues(str(host.place.identity), position, epoch, topic_id)

        return self._lane.submit(check)


def is_about(error: TransportError, where: TopicPartition) -> bool:
    """Whether an error names a partition, or its topic."""
    return error.place in (str(where), where.topic) or error.place.endswith(f": {where}")
