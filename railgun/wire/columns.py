"""Typed columns of many events in memory. The columnar validator makes them, and the columnar encoder reads them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from railgun.wire.schema import FieldType

REF_LENGTH_BITS = 24
REF_LENGTH_MASK = (1 << REF_LENGTH_BITS) - 1


@dataclass(frozen=True, slots=True)
class Column:
    """One field of n events. Arrays are C-contiguous.

    words: uint64[n]. For long, timestamp and unscaled decimal: the bits of an int64. For double: IEEE bits. For
        boolean: 0 or 1. For string: offset << 24 | length, in bytes of `heap`.
    nulls: uint8[n], 1 where null; None if there are no nulls. The word of a null may be anything.
    heap: uint8[...], UTF-8; None for other types than string.
    """

    type: FieldType
    words: NDArray[np.uint64]
    nulls: NDArray[np.uint8] | None = None
    heap: NDArray[np.uint8] | None = None

    def string(self, row: int) -> str:
        """Return the text in one row of a string column. The row must not be null."""
        assert self.heap is not None
        ref = int(self.words[row])
        start = ref >> REF_LENGTH_BITS
        return self.heap[start : start + (ref & REF_LENGTH_MASK)].tobytes().decode()

    def lengths_bytes(self) -> NDArray[np.int64]:
        """Return the length of each text of a string column: int64[n], 0 for a null."""
        lengths = (self.words & np.uint64(REF_LENGTH_MASK)).view(np.int64)
        return lengths if self.nulls is None else np.where(self.nulls == 0, lengths, 0)

    def take(self, rows: NDArray[np.int64]) -> "Column":
        """Return the column with only these rows. The heap is shared."""
        nulls = None if self.nulls is None else self.nulls[rows]
        return Column(self.type, self.words[rows], nulls, self.heap)


@dataclass(frozen=True, slots=True)
class EventColumns:
    """n events that passed the validator.

    ids: a string column without nulls.
    times: int64[n], in ms since 1970 UTC.
    fields: one column for each field, in schema order.
    """

    ids: Column
    times: NDArray[np.int64]
    fields: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.times)

    def take(self, rows: NDArray[np.int64]) -> "EventColumns":
        """Return only these rows, in this order."""
        return EventColumns(
            self.ids.take(rows), self.times[rows], tuple(field.take(rows) for field in self.fields)
        )
