"""Decides which tasks a unit (a process that runs tasks) has copies of, by the plan of the cluster's leader.

The unit's loop asks it in every round. It does no I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from railgun.catalog.catalog import Catalog
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.plan import Plan

Planned = Mapping[TaskKey, Sequence[CopyName]]
"""Tasks in the order in which to open them, each with all its copies in order of preference."""


class Assignments(Protocol):
    """Decides which tasks one unit has copies of."""

    @property
    def version(self) -> int:
        """A number that changes if the plan may have changed the tasks; 0 while nothing is known."""

    def mine(self, catalog: Catalog) -> Planned:
        """Return this unit's tasks."""


class PlannedTasks:
    """The tasks of a unit by the newest plan that it has read.

    name: the name of the unit's copies.
    folder: the id of the node's data folder. Copies planned for another folder of that node are not this unit's.
    plan: returns the newest plan.
    """

    def __init__(self, name: CopyName, folder: str, plan: Callable[[], Plan]) -> None:
        self._name, self._folder, self._plan = name, folder, plan

    @property
    def version(self) -> int:
        """The epoch of the plan."""
        return self._plan().epoch

    def mine(self, catalog: Catalog) -> Planned:
        """Return the tasks of the catalogue for which the plan names a copy of this unit."""
        planned, copies = {}, self._plan().copies
        for key in catalog.task_keys:
            of_task = copies.get(key, ())
            if any(each.copy == self._name and each.folder == self._folder for each in of_task):
                planned[key] = [each.copy for each in of_task]
        return planned
