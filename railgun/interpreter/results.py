"""Writes the results of some ops of one node, for one record (run.py) or one key of a value query (reading.py).

A node is one (window, filter, group-by) of the plan.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import NULL, TYPE_STRING, VALUE
from railgun.interpreter import layout as at
from railgun.interpreter import rare
from railgun.interpreter.operations import result
from reservoir.cursors.edges import bound_of
from reservoir.native.jit import call_entry, copy_bytes, jit, ld64, ldi64, st8, st64, sti64

u = np.uint64


@jit
def bucket_at(node: Any, clock: Any) -> Any:
    """The number of the bucket of a tumbling node that is in force at a clock."""
    return bound_of(clock, ldi64(node + at.NODE_DELAY * 8)) // ldi64(node + at.NODE_SIZE * 8)


@jit
def _string_result(ctx: Any, out: Any) -> Any:
    """Replace a string's hash in a result by a reference to a copy of its bytes; 0 or a status."""
    block = ldi64(ctx + at.RUN_CALL * 8)
    sti64(block + rare.CALL_POOL * 8, ldi64(ctx + at.RUN_POOL * 8))
    st64(block + rare.CALL_V0 * 8, ld64(out))
    st64(block + rare.CALL_V1 * 8, ld64(out + 8))
    text = call_entry(ldi64(ctx + at.RUN_TEXT * 8), block)
    if text < 0:
        return text
    length = ldi64(block + rare.CALL_LENGTH * 8)
    used = ldi64(ctx + at.RUN_HEAP_USED * 8)
    if used + length > ldi64(ctx + at.RUN_HEAP_CAPACITY * 8):
        return np.int64(at.HEAP)
    copy_bytes(ldi64(ctx + at.RUN_HEAP * 8) + used, text, length)
    sti64(ctx + at.RUN_HEAP_USED * 8, used + length)
    st64(out, (u(used) << u(24)) | u(length))
    return np.int64(0)


@jit
def write_results(ctx: Any, i: Any, entity: Any, begin: Any, end: Any) -> Any:
    """Write the results of the ops begin to end from an entity's row, as those of record i; 0 or a status.

    It begins at the op in RUN_AT_OP, and notes there the op that met a status.
    """
    stride, results = ldi64(ctx + at.RUN_STRIDE * 8), ldi64(ctx + at.RUN_RESULTS * 8)
    for k in range(begin + ldi64(ctx + at.RUN_AT_OP * 8), end):
        op = results + k * (at.RESULT_WORDS * 8)
        where = ldi64(op + at.RESULT_OUT * 8) * stride + i
        out = ldi64(ctx + at.RUN_OUT * 8) + where * 16
        status = result(ctx, op, entity, out)
        st8(ldi64(ctx + at.RUN_OUT_NULLS * 8) + where, np.uint8(status == NULL))
        if status == VALUE and ldi64(op + at.RESULT_TYPE * 8) == TYPE_STRING:
            status = _string_result(ctx, out)
        if status < 0:
            sti64(ctx + at.RUN_AT_OP * 8, k - begin)
            return status
    sti64(ctx + at.RUN_AT_OP * 8, 0)
    return np.int64(0)
