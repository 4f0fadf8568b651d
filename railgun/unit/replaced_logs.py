"""Finds logs whose topics were deleted and made again while their tasks run, for `UnitLoop`, which stops these tasks.

Reading does not show this: the new topic has records at the same offsets, and the first leader of each topic has the
same epoch.
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from railgun.host.log_ids import check_same
from railgun.host.task_host import TaskHost
from railgun.messaging.errors import TransportError, TransportUnavailableError
from railgun.messaging.transport import Transport
from railgun.task.errors import LogReplacedError
from railgun.unit.clock import Clock
from reservoir.executor import Job, Lane

# The time between two looks at the ids of all topics.
LOOK_S = 3.0

_log = logging.getLogger("railgun.unit")


@dataclass(frozen=True, slots=True)
class _Look:
    """A request for the ids of all topics.

    made_of: the hosts that ran when it was made, each with the id of the topic that its state is made of.
    asking: gets the id of each topic, by name.
    """

    made_of: Collection[tuple[TaskHost, str]]
    asking: Job[Mapping[str, str]]


class ReplacedLogs:
    """Compares the ids of the topics of a unit's tasks, every `LOOK_S`. `UnitLoop` makes it; one thread uses it.

    lane: the broker is asked there, outside the unit's loop: an answer may take half a minute.
    """

    def __init__(self, transport: Transport, lane: Lane, clock: Clock) -> None:
        self._transport, self._lane, self._clock = transport, lane, clock
        self._refused = ""
        self._due_s = clock.now() + LOOK_S
        self._look: _Look | None = None

    def find(self, hosts: Collection[TaskHost]) -> Iterator[tuple[TaskHost, LogReplacedError]]:
        """Yield the hosts whose logs are of other topics than their states were made of, each with the error.

        hosts: those that run.
        A broker that does not answer, or refuses to, says nothing: reading continues.
        """
        now_s, look = self._clock.now(), self._look
        if look is None:
            if hosts and now_s >= self._due_s:
                self._look = self._begun(hosts)
            return
        if not look.asking.done():
            return
        self._look, self._due_s = None, now_s + LOOK_S
        try:
            present, self._refused = look.asking.result(), ""
        except TransportUnavailableError:
            return
        except TransportError as error:
            if str(error) != self._refused:
                self._refused = str(error)
                _log.warning("whether logs are others than before is not known for now: %s", error)
            return
        for host, topic_id in look.made_of:
            # A host may have begun again since the request, from a topic that is newer than the answer.
            if host.is_running and host.task.topic_id == topic_id:
                try:
                    where = host.place.where
                    check_same(
                        str(host.place.identity), host.position, topic_id, present.get(where.topic, "")
                    )
                except LogReplacedError as error:
                    yield host, error

    def _begun(self, hosts: Collection[TaskHost]) -> _Look:
        topics = sorted({host.place.where.topic for host in hosts})
        made_of = [(host, host.task.topic_id) for host in hosts if host.is_running]
        return _Look(made_of, self._lane.submit(lambda: self._transport.topic_ids(topics)))
