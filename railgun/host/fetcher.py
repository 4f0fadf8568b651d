"""The protocol by which a unit's hosts get the data of their tasks from other nodes.

A unit is a process that runs copies of tasks, and a host runs one copy. `railgun/unit/fetching.py` implements it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donors
from railgun.cluster.reports import Fetching
from railgun.host.place import Place


@dataclass(frozen=True, slots=True)
class FetchRule:
    """When the data of a copy is fetched.

    after_records: if more records than this are missing, and another node's copy can give its data, that is fetched.
    wait_s: a copy without data waits for a copy that had data to come back, for this long, before it reads the log.
    """

    after_records: int = 0
    wait_s: float = 0.0


ALWAYS: Final = FetchRule()
"""However little is missing."""


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """An order to fetch the data of a task.

    donors: copies that may give it, in order of preference.
    topic_id: the id of the task's log.
    log_start: data at an earlier offset than this is of no use.
    """

    donors: tuple[CopyName, ...]
    topic_id: str
    log_start: int


@dataclass(frozen=True, slots=True)
class FetchEnd:
    """The end of a fetch.

    error: one line; empty if the data is there and verified.
    is_final: whether a fetch would end in the same way if it were begun again soon.
    """

    error: str = ""
    is_final: bool = False


class Fetcher(Protocol):
    """Fetches the data of tasks, and knows which copies may give it. The unit's loop calls all methods; none waits."""

    def donors(self, task: TaskKey) -> Donors:
        """Return the copies that may give the data of a task at present."""

    def begin(self, place: Place, order: FetchOrder) -> None:
        """Begin to fetch the data of a task into the folder beside its own."""

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        """Return how far the fetch of a task has come, or how it has ended. After its end it is forgotten."""

    def stop(self, task: TaskKey) -> None:
        """End the fetch of a task, if there is one. The data that was fetched stays."""

    def unordered(self) -> Collection[str]:
        """Return the full names of the tasks whose data is being fetched, as was heard since the last call, though this
        unit has not ordered that, or has stopped it.
        """


class NoFetcher:
    """The fetcher of units that have no other node."""

    def donors(self, task: TaskKey) -> Donors:
        """Return no copies."""
        return Donors()

    def begin(self, place: Place, order: FetchOrder) -> None:
        """Never called: there are no donors."""

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        """Never called."""
        return FetchEnd("nothing is fetched here")

    def stop(self, task: TaskKey) -> None:
        """Do nothing: no data is fetched."""

    def unordered(self) -> Collection[str]:
        """Return nothing: no data is fetched."""
        return ()
