"""Decides which unit runs which task, as a pure function of the catalogue. Nodes do not negotiate about it yet."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from railgun.catalog.catalog import Catalog
from railgun.cluster.copies import CopyName
from railgun.host.place import TaskKey


class Assignments(Protocol):
    """Decides which tasks one unit runs."""

    def mine(self, catalog: Catalog) -> Mapping[TaskKey, Sequence[CopyName]]:
        """Return this unit's tasks in the order in which to open them, each with its copies in order of preference."""


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
    """The tasks of unit `index` of `units`, whose copies are called `name`. Each task has one copy."""

    def __init__(self, index: int, units: int, name: CopyName) -> None:
        self._index, self._units, self._name = index, units, name

    def mine(self, catalog: Catalog) -> Mapping[TaskKey, Sequence[CopyName]]:
        return {
            key: [self._name] for key, unit in spread(catalog, self._units).items() if unit == self._index
        }
