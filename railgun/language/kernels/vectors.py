"""Access to the operands of a program's row, and to the bytes of strings, by the addresses in the context."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    HEAP_BATCH,
    HEAP_SHIFT,
    LENGTH_BITS,
    OFFSET_BITS,
    OFFSET_SHIFT,
    VECTORS,
)
from reservoir.native.jit import jit, ldi64, view_u8, view_u64

# Any, like the results of all kernels.
_view_u64: Any = view_u64
_view_u8: Any = view_u8
_HEAP_SHIFT = np.uint64(HEAP_SHIFT)
_OFFSET_SHIFT = np.uint64(OFFSET_SHIFT)
_OFFSET_MASK = np.uint64((1 << OFFSET_BITS) - 1)
_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)


@jit
def words_of(context: Any, row: Any, operand: Any, n: Any) -> Any:
    """The words of the vector that one word of a program's row (RESULT, A, B, C) names, as uint64[n]."""
    vector = ldi64(row + 8 * operand)
    return _view_u64(ldi64(context + 8 * (VECTORS + 2 * vector)), n)


@jit
def nulls_of(context: Any, row: Any, operand: Any, n: Any) -> Any:
    """The null bytes of the vector that one word of a program's row names, as uint8[n]."""
    vector = ldi64(row + 8 * operand)
    return _view_u8(ldi64(context + 8 * (VECTORS + 2 * vector + 1)), n)


@jit
def string_start(context: Any, word: Any) -> Any:
    """The address of a string's first byte."""
    heap = np.int64(word >> _HEAP_SHIFT)
    offset = np.int64((word >> _OFFSET_SHIFT) & _OFFSET_MASK)
    return ldi64(context + 8 * (HEAP_BATCH + heap)) + offset


@jit
def string_length(word: Any) -> Any:
    """A string's length in bytes."""
    return np.int64(word & _LENGTH_MASK)
