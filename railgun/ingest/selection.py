"""Decides which events of an input topic are left out: those that do not satisfy the stream's condition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.ingest.computed_values import ComputedValues
from railgun.language.computed import ComputedField
from railgun.wire.table_validator import AdmittedTable


class Selection:
    """A condition over the recorded fields of a stream. Events for which it is false or null are left out.

    Only events whose values are of the right types are asked about. Not thread-safe.
    """

    def __init__(self, where: ComputedField, stream: StreamDefinition) -> None:
        self._where = ComputedValues([where], [(each.name, each.type) for each in stream.fields])

    def leaves_out(self, values: Sequence[Any]) -> bool:
        """Return whether an event is left out. values: of its recorded fields, as the validator gives them."""
        return self._where.of(values) != [1]

    def left_out(self, admitted: AdmittedTable) -> NDArray[np.uint8]:
        """Return which of many events are left out: uint8[n], 1 where one is."""
        found = np.zeros(len(admitted.bad), np.uint8)
        rows = np.flatnonzero(admitted.mistyped == 0)
        if len(rows):
            events = admitted.events if len(rows) == len(found) else admitted.events.take(rows)
            (column,) = self._where.columns(events)
            holds = column.words == 1 if column.nulls is None else (column.words == 1) & (column.nulls == 0)
            found[rows] = ~holds
        return found
