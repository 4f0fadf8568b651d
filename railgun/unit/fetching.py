"""Orders the node's transfer process to fetch the data of tasks from other nodes, and hears how far that has come
(FORMAT.md).

A unit (a process that runs tasks) has one `UnitFetcher`; its hosts order fetches by it.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from railgun.catalog.task_key import TaskKey
from railgun.cluster.donors import Donors
from railgun.cluster.reports import Fetching
from railgun.host.fetcher import FetchEnd, FetchOrder
from railgun.host.place import Place
from railgun.host.snapshot import FORMATS
from railgun.node import relay
from railgun.unit.clock import CLOCK, Clock

# A transfer process that was started again has forgotten what it was asked for.
_AGAIN_S = 10.0
# One that so many questions in a row got no answer from cannot run, or hangs.
_QUESTIONS_MAX = 6

_log = logging.getLogger("railgun.unit")


@dataclass(slots=True)
class _UnderWay:
    """A fetch that was asked for.

    fetch: the request to the transfer process.
    begun_s: when it was asked for first.
    found: how far the fetch has come, or how it has ended, as that process said last.
    heard_s: when it was asked for, or its progress was heard; whichever came last.
    asked: how often it was asked for since something was heard.
    """

    fetch: relay.Fetch
    begun_s: float
    heard_s: float
    found: Fetching | FetchEnd
    asked: int = 1


class UnitFetcher:
    """The fetcher of a unit in a cluster; see `Fetcher`. Any thread may call `hear`.

    donors: returns who may give the data of a task.
    send: sends a message to the node's transfer process; one that is lost is sent again.
    """

    def __init__(
        self,
        donors: Callable[[TaskKey], Donors],
        send: Callable[[relay.Fetch | relay.StopFetch], object],
        clock: Clock = CLOCK,
    ) -> None:
        self.donors, self._send, self._clock = donors, send, clock
        self._heard: deque[relay.Fetching | relay.Fetched] = deque()
        self._under_way: dict[str, _UnderWay] = {}
        self._unordered: set[str] = set()

    def hear(self, message: relay.Fetching | relay.Fetched) -> None:
        """Take in what the transfer process says of a fetch."""
        self._heard.append(message)

    def begin(self, place: Place, order: FetchOrder) -> None:
        """Begin to fetch the data of a task into the folder beside its own."""
        name = place.key.full_name
        donors = [(copy.node, copy.unit) for copy in order.donors]
        fetch = relay.Fetch(
            name, donors, order.topic_id, order.log_start, FORMATS, str(place.folder.absolute())
        )
        now_s = self._clock.now()
        self._under_way[name] = _UnderWay(fetch, now_s, now_s, Fetching())
        self._send(fetch)

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        """Return how far the fetch of a task has come, or how it has ended. After its end it is forgotten."""
        self._take_all()
        name, now_s = task.full_name, self._clock.now()
        each = self._under_way[name]
        if isinstance(each.found, FetchEnd):
            del self._under_way[name]
        elif now_s - each.heard_s >= _AGAIN_S:
            if each.asked >= _QUESTIONS_MAX:
                self.stop(task)
                return FetchEnd("the node's transfer process does not answer", is_final=True)
            each.heard_s, each.asked = now_s, each.asked + 1
            self._send(each.fetch)
        return each.found

    def stop(self, task: TaskKey) -> None:
        """End the fetch of a task, if there is one. What has come stays."""
        name = task.full_name
        self._under_way.pop(name, None)
        self._send(relay.StopFetch(name))

    def unordered(self) -> Collection[str]:
        """Return the full names of the tasks whose data is being fetched, as was heard since the last call, though this
        unit has not begun that, or has stopped it.
        """
        self._take_all()
        found, self._unordered = self._unordered, set()
        return found

    def _take_all(self) -> None:
        while self._heard:
            self._take(self._heard.popleft())

    def _take(self, message: relay.Fetching | relay.Fetched) -> None:
        each = self._under_way.get(message.task)
        if each is None:
            self._unordered.add(message.task)
            return
        each.heard_s, each.asked = self._clock.now(), 0
        if isinstance(message, relay.Fetching):
            each.found = Fetching(
                donor=message.donor,
                fetched=message.fetched,
                total=message.total,
                hashed=message.hashed,
            )
            return
        each.found = FetchEnd(message.error, message.is_final)
        if not message.error:
            _log.info(
                "%s: its data up to offset %d has come from %s in %.1f s: %d bytes, and %d were here already",
                message.task,
                message.position,
                message.donor,
                each.heard_s - each.begun_s,
                message.bytes,
                message.linked,
            )
