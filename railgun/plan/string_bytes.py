"""The bytes of string results, gathered from where the interpreter and the door left them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from reservoir.native.jit import address, copy_bytes, jit, ldi64

_LENGTH_BITS, _LENGTH_MASK = 24, 0xFFFFFF


def gather_strings(
    references: npt.NDArray[np.uint64], heap: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """(offsets int64[n + 1], their bytes one after another) of n references, offset << 24 | length into a heap."""
    lengths = (references & np.uint64(_LENGTH_MASK)).astype(np.int64)
    offsets = np.zeros(len(references) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(max(1, int(offsets[-1])), np.uint8)
    _gather(address(references), len(references), address(heap), address(data))
    return offsets, data


@jit
def _gather(references: Any, n: Any, heap: Any, target: Any) -> None:
    for row in range(n):
        reference = ldi64(references + 8 * row)
        length = reference & _LENGTH_MASK
        if length != 0:
            copy_bytes(target, heap + (reference >> _LENGTH_BITS), length)
            target += length
