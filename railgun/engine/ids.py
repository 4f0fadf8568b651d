"""Ids for events that have none: UUIDs of version 7 (RFC 9562), each greater than the one before."""

import os
import uuid

import numpy as np
from numpy.typing import NDArray

from railgun.wire.columns import REF_LENGTH_BITS, Column
from railgun.wire.schema import STRING

_TEXT_BYTES = 36
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
# Where the 32 hexadecimal digits of a UUID stand in its text.
_PLACES = np.array([i for i in range(_TEXT_BYTES) if i not in (8, 13, 18, 23)])
_VARIANT = 0b10 << 62
_COUNTER_BITS = 62


class IdMaker:
    """Makes ids. Those of one millisecond count up from a random number, as they do when the clock goes back.

    Not to be shared between threads.
    """

    def __init__(self) -> None:
        self._time_ms = -1
        self._high = 0
        self._counter = 0

    def next(self, now_ms: int) -> str:
        """One id, made at this time (ms since 1970, not negative)."""
        self._reserve(now_ms, 1)
        return str(uuid.UUID(int=self._high << 64 | _VARIANT | self._counter))

    def column(self, now_ms: int, n: int) -> Column:
        """n ids as a string column."""
        first = self._reserve(now_ms, n)
        low = np.uint64(_VARIANT | first) + np.arange(n, dtype=np.uint64)
        both = np.empty((n, 2), ">u8")
        both[:, 0], both[:, 1] = self._high, low
        octets = both.view(np.uint8).reshape(n, 16)
        heap = np.full((n, _TEXT_BYTES), ord("-"), np.uint8)
        digits: NDArray[np.uint8] = np.empty((n, 32), np.uint8)
        digits[:, 0::2], digits[:, 1::2] = _DIGITS[octets >> 4], _DIGITS[octets & 15]
        heap[:, _PLACES] = digits
        places = np.arange(n, dtype=np.uint64) * np.uint64(_TEXT_BYTES)
        words = (places << np.uint64(REF_LENGTH_BITS)) | np.uint64(_TEXT_BYTES)
        return Column(STRING, words, None, heap.reshape(-1))

    def _reserve(self, now_ms: int, n: int) -> int:
        """Take n numbers of one millisecond; the first of them. The last one is kept as the counter."""
        if now_ms > self._time_ms or self._counter + n >= 1 << _COUNTER_BITS:
            self._time_ms = max(now_ms, self._time_ms + 1)
            seed = int.from_bytes(os.urandom(10), "big")
            self._high = (self._time_ms & (1 << 48) - 1) << 16 | 7 << 12 | seed >> 68
            # The upper half of the counter's range is left free to count in.
            self._counter = seed & (1 << _COUNTER_BITS - 1) - 1
        first = self._counter + 1
        self._counter += n
        return first
