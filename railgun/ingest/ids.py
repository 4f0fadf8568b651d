"""Makes ids for events without an id: UUIDs (RFC 9562) made from the time, or from the position that an event came
from.

Engines and front-ends make ids from the time, inputs from topics make them from the position.
"""

import hashlib
import os
import uuid
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from railgun.wire.columns import REF_LENGTH_BITS, Column
from railgun.wire.schema import STRING

_TEXT_BYTES = 36
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
# The places of the 32 hexadecimal digits in the text of a UUID.
_PLACES = np.array([i for i in range(_TEXT_BYTES) if i not in (8, 13, 18, 23)])
_VARIANT = 0b10 << 62
_COUNTER_BITS = 62


class Ids(Protocol):
    """Makes the ids of n events, all at once or one after another."""

    def next(self, now_ms: int, row: int) -> str:
        """Return the id of the event at a row."""

    def column(self, now_ms: int, n: int) -> Column:
        """Return n ids as a string column."""


class IdMaker:
    """Makes UUIDs of version 7, each greater than the one before.

    The ids of one millisecond count up from a random number. So do ids that are made after the clock went back.
    Not thread-safe.
    """

    def __init__(self) -> None:
        self._time_ms = -1
        self._high = 0
        self._counter = 0

    def next(self, now_ms: int, row: int = 0) -> str:
        """Return an id made at a time (ms since 1970, not negative). The row does not matter."""
        self._reserve(now_ms, 1)
        return str(uuid.UUID(int=self._high << 64 | _VARIANT | self._counter))

    def column(self, now_ms: int, n: int) -> Column:
        """Return n ids as a string column."""
        first = self._reserve(now_ms, n)
        return _texts(self._high, np.uint64(_VARIANT | first) + np.arange(n, dtype=np.uint64))

    def _reserve(self, now_ms: int, n: int) -> int:
        """Reserve n successive numbers of one millisecond. Returns the first one; the counter is set to
        the last one.
        """
        if now_ms > self._time_ms or self._counter + n >= 1 << _COUNTER_BITS:
            self._time_ms = max(now_ms, self._time_ms + 1)
            seed = int.from_bytes(os.urandom(10), "big")
            self._high = (self._time_ms & (1 << 48) - 1) << 16 | 7 << 12 | seed >> 68
            # The counter starts in the lower half of its range, so that the upper half is left to count in.
            self._counter = seed & (1 << _COUNTER_BITS - 1) - 1
        first = self._counter + 1
        self._counter += n
        return first


class PositionIds:
    """UUIDs of version 8 for n events of one partition of a topic. An event gets the same id whenever it is read.

    place: a name of the partition that no other partition has ever had.
    offsets: int64[n].
    """

    def __init__(self, place: str, offsets: NDArray[np.int64]) -> None:
        digest = int.from_bytes(hashlib.blake2b(place.encode(), digest_size=8).digest(), "big")
        self._high = digest >> 16 << 16 | 8 << 12 | digest & (1 << 12) - 1
        self._offsets = offsets

    def next(self, now_ms: int, row: int) -> str:
        """Return the id of the event at a row."""
        return str(uuid.UUID(int=self._high << 64 | _VARIANT | int(self._offsets[row])))

    def column(self, now_ms: int, n: int) -> Column:
        """Return the ids of the first n events as a string column."""
        return _texts(self._high, np.uint64(_VARIANT) | self._offsets[:n].astype(np.uint64))


def _texts(high: int, low: NDArray[np.uint64]) -> Column:
    """Format UUIDs as a string column. low: uint64[n], the lower halves."""
    n = len(low)
    both = np.empty((n, 2), ">u8")
    both[:, 0], both[:, 1] = high, low
    octets = both.view(np.uint8).reshape(n, 16)
    heap = np.full((n, _TEXT_BYTES), ord("-"), np.uint8)
    digits: NDArray[np.uint8] = np.empty((n, 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _DIGITS[octets >> 4], _DIGITS[octets & 15]
    heap[:, _PLACES] = digits
    places = np.arange(n, dtype=np.uint64) * np.uint64(_TEXT_BYTES)
    words = (places << np.uint64(REF_LENGTH_BITS)) | np.uint64(_TEXT_BYTES)
    return Column(STRING, words, None, heap.reshape(-1))
