"""The protocol by which a unit's hosts get the data of their tasks from other nodes.

A unit is a process that runs copies of tasks, and a host runs one copy. `railgun/unit/fetching.py` implements it.
"""

from dataclasses import dataclass
from typing import Protocol

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.donors import Donors
from railgun.cluster.reports import Fetching
from railgun.host.place import Place


@dataclass(frozen=True, slots=True)
class FetchOrder:
    """An order to fetch the data of a task.

    donors: copies that may give it, in order of preference.
    topic_id: of the task's log.
    log_start: data at an earlier offset than this is of no use.
    """

    donors: tuple[CopyName, ...]
    topic_id: str
    log_start: int


@dataclass(frozen=True, slots=True)
class FetchEnd:
    """The end of a fetch. error: one line; empty if the data is there and verified."""

    error: str = ""


class Fetcher(Protocol):
    """Fetches the data of tasks, and knows who may give it. The unit's loop calls all methods, and none waits."""

    def donors(self, task: TaskKey) -> Donors:
        """Return who may give the data of a task at present."""

    def begin(self, place: Place, order: FetchOrder) -> None:
        """Begin to fetch the data of a task into the folder beside its own."""

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        """Return how far the fetch of a task has come, or how it has ended. After its end it is forgotten."""

    def stop(self, task: TaskKey) -> None:
        """End the fetch of a task, if there is one. What has come stays."""


class NoFetcher:
    """The fetcher of units that have no other node."""

    def donors(self, task: TaskKey) -> Donors:
        """Return that there are none."""
        return Donors()

    def begin(self, place: Place, order: FetchOrder) -> None:
        """Never called: there are no donors."""

    def look(self, task: TaskKey) -> Fetching | FetchEnd:
        """Never called."""
        return FetchEnd("nothing is fetched here")

    def stop(self, task: TaskKey) -> None:
        """Nothing is fetched."""
