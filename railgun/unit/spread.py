"""Decides which unit runs which task, as a pure function of the catalogue. Nodes do not negotiate about it yet."""

from typing import Protocol

from railgun.catalog.catalog import Catalog
from railgun.host.place import TaskKey


class Assignments(Protocol):
    """Decides which tasks one unit runs."""

    def mine(self, catalog: Catalog) -> list[TaskKey]:
        """Return this unit's tasks, in the order in which to open them."""


def spread(catalog: Catalog, units: int) -> dict[TaskKey, int]:
    """Return the unit of every task, 0 to units - 1. The tasks of a stream go to successive units.

    The first unit follows from the stream's place in the catalogue. So a stream that is added or dropped moves no
    task of another stream.
    """
    dealt: dict[TaskKey, int] = {}
    for entry in catalog.streams.values():
        stream = entry.stream
        own = [TaskKey(stream.name, entry.created, *task) for task in stream.tasks]
        dealt.update((key, (entry.created + number) % units) for number, key in enumerate(own))
    return dealt


class Spread:
    """The tasks of unit `index` of `units`."""

    def __init__(self, index: int, units: int) -> None:
        self._index, self._units = index, units

    def mine(self, catalog: Catalog) -> list[TaskKey]:
        return [key for key, unit in spread(catalog, self._units).items() if unit == self._index]
