"""A submission to Kafka as what goes to a partition in one request: a large entry is several."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from railgun.messaging.block import sizes_of
from railgun.messaging.errors import RecordTooLargeError
from railgun.messaging.kafka.submission import held_bytes
from railgun.messaging.transport import RECORD_LIMIT_BYTES, Entry
from railgun.wire.encode import Records

TOGETHER_BYTES = 4 << 20
"""What one request to a partition holds at most, unless one record is larger."""


class Part(NamedTuple):
    """Some of an entry's records, in order. held_bytes: what they take while they wait."""

    entry: Entry
    records: int
    held_bytes: int


def parts_of(entry: Entry) -> list[Part]:
    """An entry's records in as many parts as it takes. Raises RecordTooLargeError; ValueError for what is no entry."""
    n, size_bytes, largest = sizes_of(entry.records)
    if n == 0:
        raise ValueError(f"nothing to append to {entry.where}")
    if largest > RECORD_LIMIT_BYTES:
        raise RecordTooLargeError(str(entry.where), largest, RECORD_LIMIT_BYTES)
    for each in (entry.keys, entry.headers):
        if each is not None and len(each) != n:
            raise ValueError(f"{n} records to {entry.where} have {len(each)} keys or headers")
    held = held_bytes(n, size_bytes)
    return [Part(entry, n, held)] if held <= TOGETHER_BYTES else list(_divided(entry))


def _divided(entry: Entry) -> Iterator[Part]:
    lengths = _lengths(entry.records)
    ends = np.cumsum(lengths + held_bytes(1, 0))
    first, base = 0, 0
    while first < len(ends):
        after = max(first + 1, int(np.searchsorted(ends, base + TOGETHER_BYTES, "right")))
        own = Entry(
            entry.where,
            _between(entry.records, first, after),
            entry.keys and entry.keys[first:after],
            entry.headers and entry.headers[first:after],
        )
        yield Part(own, after - first, int(ends[after - 1]) - base)
        first, base = after, int(ends[after - 1])


def _lengths(records: Sequence[bytes] | Records) -> NDArray[np.int64]:
    if isinstance(records, Records):
        return np.diff(records.offsets)
    return np.fromiter(map(len, records), np.int64, len(records))


def _between(records: Sequence[bytes] | Records, first: int, after: int) -> Sequence[bytes] | Records:
    """Records first to after - 1, with no more of a buffer than they are in: it is copied when they are sent."""
    if not isinstance(records, Records):
        return records[first:after]
    begin, end = records.offsets[[first, after]]
    return Records(records.buffer[begin:end], records.offsets[first : after + 1] - begin)
