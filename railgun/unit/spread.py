"""Which unit runs which task: a pure function of the catalogue, until nodes agree on it among themselves."""

from typing import Protocol

from railgun.catalog.catalog import Catalog
from railgun.host.place import TaskKey


class Assignments(Protocol):
    """What one unit is to run."""

    def mine(self, catalog: Catalog) -> list[TaskKey]:
        """This unit's tasks, in the order to open them."""


def spread(catalog: Catalog, units: int) -> dict[TaskKey, int]:
    """The unit, 0 to units - 1, of every task: tasks are dealt out in turn, beginning at their stream's place.

    A stream that comes or goes moves no task of another one.
    """
    dealt: dict[TaskKey, int] = {}
    for entry in catalog.streams.values():
        stream = entry.stream
        own = [TaskKey(stream.name, entry.created, *task) for task in stream.tasks]
        dealt.update((key, (entry.created + number) % units) for number, key in enumerate(own))
    return dealt


class Spread:
    """The share of unit `index` of `units`."""

    def __init__(self, index: int, units: int) -> None:
        self._index, self._units = index, units

    def mine(self, catalog: Catalog) -> list[TaskKey]:
        return [key for key, unit in spread(catalog, self._units).items() if unit == self._index]
