"""`last` and `prev`: the newest value of a window and the one before it, by (time, seq).

Cell: the newest value [time, seq, v0, v1], then the one before it [time, seq, v0, v1]. Entries without a value are
zeros. Events leave a window in the order of (time, seq), so that the newest leaves last and the one before it second to
last: the number of values that are left says which entries to empty.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import NULL, VALUE
from railgun.aggregators.entries import (
    ENTRY_BYTES,
    ENTRY_WORDS,
    VALUE_OFFSET,
    forget,
    is_after,
    write_entry,
)
from railgun.aggregators.values import copy_value, drop, keep, prepare_drop, prepare_keep
from reservoir.native.jit import copy_bytes, jit, ld64

u = np.uint64

WORDS = 2 * ENTRY_WORDS


@jit
def add_latest(
    ctx: int, cell: int, n: Any, time: int, seq: int, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Add a value, in or out of order; return 0 or a status. n (uint64): the number of values, this one included."""
    before = cell + ENTRY_BYTES
    newest = n == u(1) or is_after(time, seq, cell)
    if not newest and n > u(2) and not is_after(time, seq, before):
        return np.int64(0)
    status = prepare_keep(ctx, type_code, v0, v1, text, length)
    if status == 0 and n > u(2):
        status = prepare_drop(ctx, type_code, ld64(before + VALUE_OFFSET), ld64(before + VALUE_OFFSET + 8))
    if status != 0:
        return status
    keep(ctx, type_code, v0, v1)
    if n > u(2):
        drop(ctx, type_code, ld64(before + VALUE_OFFSET), ld64(before + VALUE_OFFSET + 8))
    if newest:
        copy_bytes(before, cell, ENTRY_BYTES)
        write_entry(cell, time, seq, v0, v1)
    else:
        write_entry(before, time, seq, v0, v1)
    return np.int64(0)


@jit
def remove_latest(ctx: int, cell: int, n: Any, type_code: int) -> Any:
    """Remove the oldest value of the window; return 0 or a status. n (uint64): the number of values that are left."""
    if n > u(1):
        return np.int64(0)
    return forget(ctx, cell if n == u(0) else cell + ENTRY_BYTES, type_code)


@jit
def result_last(cell: int, n: Any, out: int) -> Any:
    """Write the newest value to `out`; return VALUE or NULL."""
    if n == u(0):
        return np.int64(NULL)
    copy_value(out, cell + VALUE_OFFSET)
    return np.int64(VALUE)


@jit
def result_prev(cell: int, n: Any, out: int) -> Any:
    """Write the value before the newest to `out`; return VALUE or NULL."""
    if n < u(2):
        return np.int64(NULL)
    copy_value(out, cell + ENTRY_BYTES + VALUE_OFFSET)
    return np.int64(VALUE)
