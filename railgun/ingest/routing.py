"""Decides which tasks an event goes to: one partition of each partitioner, or none if the partitioner's field is null.

A partitioner is a field by which a stream is divided among tasks, each of which is one partition of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import ALL, StreamDefinition
from railgun.ingest.computed_values import ComputedValues
from railgun.wire.columns import Column, EventColumns
from railgun.wire.partition import NOT_SENT, partition_column, partition_key, partition_of


@dataclass(frozen=True, slots=True)
class Share:
    """The events of a batch that go to one task, which is a partition of a partitioner.

    rows: int64[...], the indexes of the events, ascending; None for all events.
    """

    partitioner: str
    partition: int
    rows: NDArray[np.int64] | None


class Router:
    """Routes the events of one stream. The partitioners of a stream and their partitions never change. Not thread-safe.

    It computes the partitioners that are computed fields.
    """

    def __init__(self, stream: StreamDefinition) -> None:
        recorded, computed = [each.name for each in stream.fields], [each.name for each in stream.computed]
        self.partitioners = stream.partitioners
        # For each partitioner, how many partitions it has; 0 for `*`.
        self._partitions = [0 if name == ALL else stream.partitions for name in stream.partitioners]
        # For each partitioner, the index of its field: a recorded one, a computed one; −1 for others.
        self._recorded = [recorded.index(name) if name in recorded else -1 for name in stream.partitioners]
        chosen = [name for name in computed if name in stream.partitioners]
        self._computed = [chosen.index(name) if name in chosen else -1 for name in stream.partitioners]
        self._values: ComputedValues | None = None
        if chosen:
            self._values = ComputedValues(
                [each for each in stream.computed if each.name in chosen],
                [(each.name, each.type) for each in stream.fields],
            )

    def routed(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values of the partitioners' fields in one event, in the order of the partitioners; None for `*`.

        values: the event's recorded fields in schema order, as the validator gives them.
        """
        if self._values is None:
            return tuple([None if place < 0 else values[place] for place in self._recorded])
        computed = [*self._values.of(values), None]
        return tuple(
            [
                computed[of_computed] if place < 0 else values[place]
                for place, of_computed in zip(self._recorded, self._computed)
            ]
        )

    def partitions(self, routed: Sequence[Any]) -> list[int]:
        """Return the partition of one event for each partitioner, in order; NOT_SENT if it is not sent there.

        routed: the values of the partitioners' fields, in order.
        """
        found: list[int] = []
        for value, count in zip(routed, self._partitions):
            if not count:
                found.append(0)
            elif value is None:
                found.append(NOT_SENT)
            else:
                found.append(0 if count == 1 else partition_of(partition_key(value), count))
        return found

    def shares(
        self, events: EventColumns, columns: Sequence[Column | None] | None = None
    ) -> list[list[Share]]:
        """Return for each partitioner, in order, the shares of its partitions. Empty shares are left out.

        columns: what `columns` has returned for the events, if it was asked.
        """
        if not len(events):
            return [[] for _ in self.partitioners]
        if columns is None:
            columns = self.columns(events)
        return [
            [Share(name, 0, None)] if column is None else _shares(column, name, count)
            for name, column, count in zip(self.partitioners, columns, self._partitions)
        ]

    def columns(self, events: EventColumns) -> list[Column | None]:
        """Return for each partitioner, in order, the values of its field; None for `*`."""
        computed = [*(() if self._values is None else self._values.columns(events)), None]
        return [
            computed[of_computed] if place < 0 else events.fields[place]
            for place, of_computed in zip(self._recorded, self._computed)
        ]


def _shares(column: Column, name: str, count: int) -> list[Share]:
    if count == 1:
        if column.nulls is None or not column.nulls.any():
            return [Share(name, 0, None)]
        rows = np.flatnonzero(column.nulls == 0)
        return [Share(name, 0, rows)] if len(rows) else []
    partitions = partition_column(column, count)
    order = np.argsort(partitions, kind="stable")
    bounds = np.searchsorted(partitions[order], np.arange(NOT_SENT, count + 1))
    pieces = [(p, order[bounds[p + 1] : bounds[p + 2]]) for p in range(count)]
    return [Share(name, p, None if len(rows) == len(order) else rows) for p, rows in pieces if len(rows)]
