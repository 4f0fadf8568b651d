"""The scratch heap, which holds the strings that operations make: heap 2 of a string's word."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    HEAP_SHIFT,
    OFFSET_SHIFT,
    SCRATCH,
    SCRATCH_CAPACITY,
    SCRATCH_USED,
    SCRATCH_WANTED,
)
from reservoir.native.jit import jit, ldi64, sti64

_SCRATCH_HEAP = np.uint64(SCRATCH << HEAP_SHIFT)
_OFFSET_SHIFT = np.uint64(OFFSET_SHIFT)


@jit
def fits_scratch(context: Any, wanted: Any) -> Any:
    """Whether the heap has so many bytes left. If not, SCRATCH_WANTED is set to the bytes that it needs in all."""
    used = ldi64(context + 8 * SCRATCH_USED)
    if used + wanted <= ldi64(context + 8 * SCRATCH_CAPACITY):
        return True
    sti64(context + 8 * SCRATCH_WANTED, used + wanted)
    return False


@jit
def scratch_word(offset: Any, length: Any) -> Any:
    """The word of a string of `length` bytes at an offset in the heap."""
    return _SCRATCH_HEAP | (np.uint64(offset) << _OFFSET_SHIFT) | np.uint64(length)
