"""Converts columns of longs to text, for longs that serve as ids or partition keys."""

from typing import Any

import numpy as np

from railgun.wire.columns import REF_LENGTH_BITS, Column
from railgun.wire.schema import STRING
from reservoir.native.jit import address, jit, ldi64, st8, sti64

_LONGEST = 20
_NOTHING, _TEN, _ZERO = np.uint64(0), np.uint64(10), np.uint64(48)


@jit
def _write_longs(words: Any, n: Any, heap: Any, refs: Any) -> None:
    """Write n longs in decimal into the heap, each right-aligned in 20 bytes, and write references to them."""
    for row in range(n):
        value = ldi64(words + 8 * row)
        # This is also right for the least long: as an unsigned word its negation is its magnitude.
        rest = np.uint64(-value) if value < 0 else np.uint64(value)
        end = (row + 1) * _LONGEST
        at = end
        while True:
            at -= 1
            quotient = rest // _TEN
            st8(heap + at, np.uint8(_ZERO + rest - quotient * _TEN))
            rest = quotient
            if rest == _NOTHING:
                break
        if value < 0:
            at -= 1
            st8(heap + at, np.uint8(45))
        sti64(refs + 8 * row, (at << REF_LENGTH_BITS) | (end - at))


def longs_as_text(column: Column) -> Column:
    """Return a long column as a string column of ASCII decimals, with the same nulls."""
    n = len(column.words)
    heap = np.empty(max(n, 1) * _LONGEST, np.uint8)
    refs = np.empty(n, np.uint64)
    _write_longs(address(column.words), n, address(heap), address(refs))
    return Column(STRING, refs, column.nulls, heap)
