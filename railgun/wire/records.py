"""The kinds of records in a task's log, and `Records`, which holds many records in one buffer.

A record's first byte says its kind. A record with an unknown first byte counts as an event, and the decoder of events
then reports what is wrong with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

EVENT = 0x01
"""An event, which gets a reply."""
CONTROL = 0x02
"""A change of the catalogue, or a metric that answers from there on."""

_KINDS = (EVENT, CONTROL)
# The kind of a record by its first byte.
_KIND_OF = np.full(256, EVENT, np.uint8)
_KIND_OF[list(_KINDS)] = _KINDS


@dataclass(frozen=True, slots=True)
class Records:
    """n records in one buffer: record i is buffer[offsets[i]:offsets[i + 1]] (uint8, int64[n + 1])."""

    buffer: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, records: Sequence[bytes]) -> "Records":
        """Join records that are separate bytes."""
        if len(records) == 1:
            (record,) = records
            return cls(np.frombuffer(record, np.uint8), np.array((0, len(record)), np.int64))
        offsets = np.zeros(len(records) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, records), np.int64, len(records)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(records), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def size_bytes(self) -> int:
        """The bytes of all records together."""
        return int(self.offsets[-1] - self.offsets[0])

    def part(self, first: int, after: int) -> "Records":
        """Return records `first` to `after` - 1. The buffer is shared."""
        return Records(self.buffer, self.offsets[first : after + 1])

    def record(self, row: int) -> bytes:
        """Return one record as bytes."""
        return self.buffer[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def joined(self) -> bytes:
        """Return all records end to end, as bytes."""
        return self.buffer[self.offsets[0] : self.offsets[-1]].tobytes()

    def to_list(self) -> list[bytes]:
        """Return each record as bytes."""
        data = self.joined()
        ends = (self.offsets - self.offsets[0]).tolist()
        return [data[start:end] for start, end in pairwise(ends)]


def kind_of(record: bytes) -> int:
    """Return the kind of one record."""
    return int(_KIND_OF[record[0]]) if record else EVENT


def runs_of(records: Records) -> Iterator[tuple[int, Records]]:
    """Iterate over runs of consecutive records of one kind, in order: (kind, records)."""
    n = len(records)
    if n == 1:
        start, end = records.offsets.tolist()
        yield (int(_KIND_OF[records.buffer[start]]) if start < end else EVENT), records
    elif not records.size_bytes:
        if n:
            yield EVENT, records
    else:
        kinds = _kinds(records)
        changes = (np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist()
        for first, after in pairwise((0, *changes, n)):
            yield int(kinds[first]), records.part(first, after)


def _kinds(records: Records) -> NDArray[np.uint8]:
    starts = records.offsets[:-1]
    # Empty records may lie at the end of the buffer, so their index is clipped.
    kinds = _KIND_OF.take(records.buffer.take(starts, mode="clip"))
    kinds[starts == records.offsets[1:]] = EVENT
    return kinds
