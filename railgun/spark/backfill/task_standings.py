"""Tells from the topic of positions how the tasks of a stream that is deepened (given older history) get on."""

import time
from collections.abc import Callable, Iterable, Sequence

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.reports import CopyStatus
from railgun.cluster.silence import OFFER_KNOWN_S
from railgun.messaging.transport import Transport
from railgun.spark.backfill.unit_reports import UnitReports
from railgun.spark.errors import HistoryError

_ASK_S = 0.1

StreamKey = tuple[str, int]


class TaskStandings:
    """Reads the reports of units from now on.

    positions: the topic of reports.
    stream: the name of the stream, and the place of its first definition.
    history, offer: failures count if they are of this history, and of this offer of it.
    known_within_s: how long a copy may take to see the offer.
    """

    def __init__(
        self,
        transport: Transport,
        positions: str,
        stream: StreamKey,
        history: str,
        offer: str = "",
        known_within_s: float = OFFER_KNOWN_S,
    ) -> None:
        self._known_within_s = known_within_s
        self._stream, self._history, self._offer = stream, history, offer
        self._reports = UnitReports(transport, positions)

    def wait(self, tasks: Sequence[tuple[str, int]], is_so: Callable[[CopyStatus], bool]) -> None:
        """Return once a condition holds for every copy of some tasks.

        Raises HistoryError if a copy reports that it cannot be deepened, or if one that has caught up does not know the
        history.
        """
        names = [TaskKey(*self._stream, *task) for task in tasks]
        until_s = time.monotonic() + self._known_within_s
        while True:
            self.check()
            copies = [list(self._statuses(name)) for name in names]
            if all(statuses and all(map(is_so, statuses)) for statuses in copies):
                return
            if time.monotonic() > until_s:
                self._check_known(names)
            time.sleep(_ASK_S)

    def _check_known(self, names: Sequence[TaskKey]) -> None:
        for name in names:
            for heard in self._reports.table.copies(name):
                if heard.status.state.is_caught_up and not self._knows(heard.status):
                    raise HistoryError(
                        f"{name}: its copy on {heard.copy} does not see what was built for it: the folder backfill in "
                        "the data folder of each node is to be the same one; share it, then run this again (what is "
                        "built stays)"
                    )

    def _knows(self, status: CopyStatus) -> bool:
        return self._history in (status.history, (status.following or {}).get("history"))

    def check(self) -> None:
        """Read the reports to the end, because an earlier failure may be mended.

        Raises HistoryError if a task reports that it cannot be deepened.
        """
        self._reports.read()
        for name in sorted(self._reports.table.tasks(*self._stream)):
            for status in self._statuses(name):
                failure = self._failure(status)
                if failure:
                    raise HistoryError(
                        f"{name.stream}/{name.partitioner}/{name.partition} cannot be deepened: {failure}"
                    )

    def _statuses(self, name: TaskKey) -> Iterable[CopyStatus]:
        return (heard.status for heard in self._reports.table.copies(name))

    def _failure(self, status: CopyStatus) -> str:
        following = status.following or {}
        of = following.get("history"), following.get("offer", "")
        if of == (self._history, self._offer) and following.get("failure"):
            return str(following["failure"])
        return f"failed: {status.failure}" if status.state is CopyState.FAILED else ""
