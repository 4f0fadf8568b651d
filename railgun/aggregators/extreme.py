"""`min` and `max` of windows from which no single value is removed (TUMBLING, INFINITE).

The cell holds the two words [v0, v1] of the least or the greatest value; zeros if there is none. The kernels return 0,
or a negative status after which the caller makes room and calls them again (railgun/state/status.py).
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import TYPE_STRING
from railgun.aggregators.values import (
    GREATER,
    LESS,
    VALUE_WORDS,
    compare_arrival,
    drop,
    keep,
    prepare_drop,
    prepare_keep,
    store,
)
from reservoir.native.jit import jit, ld64

u = np.uint64

WORDS = VALUE_WORDS


@jit
def add_extreme(
    ctx: int, cell: int, n: Any, greatest: bool, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Add a value; return 0 or a status.

    n (uint64): the number of values in the window, this one included.
    greatest: True for `max`, False for `min`.
    v0, v1, type_code: the words and the type of the value. text, length: the bytes of a string.
    """
    held0, held1 = ld64(cell), ld64(cell + 8)
    held = n > u(1)
    if held:
        order = compare_arrival(ctx, type_code, v0, v1, text, length, held0, held1)
        if order < 0:
            return order
        if order != (GREATER if greatest else LESS):
            return np.int64(0)
    status = prepare_keep(ctx, type_code, v0, v1, text, length)
    if status == 0 and held:
        status = prepare_drop(ctx, type_code, held0, held1)
    if status != 0:
        return status
    keep(ctx, type_code, v0, v1)
    if held:
        drop(ctx, type_code, held0, held1)
    store(cell, v0, v1)
    return np.int64(0)


@jit
def reset_extreme(ctx: int, cell: int, type_code: int) -> Any:
    """Empty the cell, whether it holds a value or not; return 0 or a status."""
    held0, held1 = ld64(cell), ld64(cell + 8)
    if type_code == TYPE_STRING and held0 != u(0):
        status = prepare_drop(ctx, type_code, held0, held1)
        if status != 0:
            return status
        drop(ctx, type_code, held0, held1)
    store(cell, u(0), u(0))
    return np.int64(0)
