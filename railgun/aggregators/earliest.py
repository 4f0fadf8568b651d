"""`first` of windows from which no single value is removed (TUMBLING, INFINITE): the earliest value, by (time, seq).

Cell: one entry [time, seq, v0, v1].
"""

from typing import Any

import numpy as np

from railgun.aggregators.entries import ENTRY_WORDS, VALUE_OFFSET, is_after, write_entry
from railgun.aggregators.values import drop, keep, prepare_drop, prepare_keep
from reservoir.native.jit import jit, ld64

u = np.uint64

WORDS = ENTRY_WORDS


@jit
def add_earliest(
    ctx: int, cell: int, n: Any, time: int, seq: int, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Add a value, in or out of order; return 0 or a status. n (uint64): the number of values, this one included."""
    held = n > u(1)
    if held and is_after(time, seq, cell):
        return np.int64(0)
    status = prepare_keep(ctx, type_code, v0, v1, text, length)
    if status == 0 and held:
        status = prepare_drop(ctx, type_code, ld64(cell + VALUE_OFFSET), ld64(cell + VALUE_OFFSET + 8))
    if status != 0:
        return status
    keep(ctx, type_code, v0, v1)
    if held:
        drop(ctx, type_code, ld64(cell + VALUE_OFFSET), ld64(cell + VALUE_OFFSET + 8))
    write_entry(cell, time, seq, v0, v1)
    return np.int64(0)
