"""The update and result ops of nodes. Frequent ones are compiled in place, the others are called by entry points.

A node is one (window, filter, group-by) of the plan. The interpreter's loops (run.py, simple.py) and the writer of
results call these for each op.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import (
    COUNT,
    NULL,
    RESULT_AVG_DOUBLE,
    RESULT_COUNT,
    RESULT_SUM_DOUBLE,
    SUM_DOUBLE,
    SUM_LONG,
    TYPE_STRING,
    VALUE,
)
from railgun.aggregators.exact.narrow import PLACE_MAX, add_narrow, normal_mantissa, place_of, round_narrow
from railgun.aggregators.sum_long import add_sum as add_sum_long
from railgun.interpreter import layout as at
from railgun.interpreter import rare
from reservoir.frames import (
    code_hi,
    code_lo,
    column_at,
    column_code,
    column_heap,
    column_null,
    column_word,
    frame_seq,
    frame_time,
)
from reservoir.native.jit import bits_f64, call_entry, f64_bits, jit, ld64, ldi64, st64, sti64

u = np.uint64


@jit
def update(ctx: Any, op: Any, adding: Any, frame: Any, row: Any, entity: Any) -> Any:
    """Apply one update op for one row of a frame to an entity's row; 0 or a status."""
    column = ldi64(op + at.UPDATE_COLUMN * 8)
    frames = ldi64(ctx + at.RUN_FRAMES * 8)
    type_code = ldi64(op + at.UPDATE_TYPE * 8)
    v0, v1 = u(0), u(0)
    text: Any = 0
    length: Any = 0
    if column >= 0:
        values = column_at(frames, frame, column)
        if type_code == TYPE_STRING:
            code = column_code(values, row)
            v0, v1 = code_hi(values, code), code_lo(values, code)
            if v0 == u(0):
                return np.int64(0)
            strings = ldi64(op + at.UPDATE_STRING * 8)
            if adding and strings >= 0:
                described = column_at(frames, frame, strings)
                reference = column_word(described, row)
                text = column_heap(described) + np.int64((reference >> u(24)) & u((1 << 38) - 1))
                length = np.int64(reference & u(0xFFFFFF))
        else:
            if column_null(values, row) != 0:
                return np.int64(0)
            v0 = column_word(values, row)
    code_of_op, cell = ldi64(op + at.UPDATE_OP * 8), entity + ldi64(op + at.UPDATE_CELL * 8)
    if code_of_op == COUNT:
        st64(cell, ld64(cell) + (u(1) if adding else ~u(0)))
        return np.int64(0)
    if code_of_op == SUM_DOUBLE:
        place = place_of(v0)
        if u(place) <= PLACE_MAX:
            add_narrow(cell + 8, normal_mantissa(v0), place, ((v0 >> u(63)) != u(0)) == adding)
            return np.int64(0)
    elif code_of_op == SUM_LONG:
        add_sum_long(cell, v0, not adding)
        return np.int64(0)
    block = ldi64(ctx + at.RUN_CALL * 8)
    sti64(block, code_of_op)
    sti64(block + rare.CALL_POOL * 8, ldi64(ctx + at.RUN_POOL * 8))
    sti64(block + rare.CALL_CELL * 8, cell)
    sti64(block + rare.CALL_COUNT * 8, entity + ldi64(op + at.UPDATE_COUNT * 8))
    sti64(block + rare.CALL_TYPE * 8, type_code)
    sti64(block + rare.CALL_TIME * 8, frame_time(frames, frame, row))
    sti64(block + rare.CALL_SEQ * 8, frame_seq(frames, frame, row))
    st64(block + rare.CALL_V0 * 8, v0)
    st64(block + rare.CALL_V1 * 8, v1)
    sti64(block + rare.CALL_TEXT * 8, text)
    sti64(block + rare.CALL_LENGTH * 8, length)
    return call_entry(ldi64(ctx + (at.RUN_ADD if adding else at.RUN_REMOVE) * 8), block)


@jit
def result(ctx: Any, op: Any, entity: Any, out: Any) -> Any:
    """Write one result at `out`; VALUE, NULL or a status."""
    code, cell = ldi64(op), entity + ldi64(op + at.RESULT_CELL * 8)
    if code == RESULT_COUNT:
        st64(out, ld64(cell))
        return np.int64(VALUE)
    count = entity + ldi64(op + at.RESULT_COUNT * 8)
    if code in (RESULT_SUM_DOUBLE, RESULT_AVG_DOUBLE) and ld64(cell) == u(0):
        n = ld64(count)
        if n == u(0):
            return np.int64(NULL)
        total = round_narrow(cell + 8)
        if code == RESULT_AVG_DOUBLE:
            total = f64_bits(bits_f64(total) / np.float64(n) + 0.0)
        st64(out, total)
        return np.int64(VALUE)
    block = ldi64(ctx + at.RUN_CALL * 8)
    sti64(block, code)
    sti64(block + rare.CALL_POOL * 8, ldi64(ctx + at.RUN_POOL * 8))
    sti64(block + rare.CALL_CELL * 8, cell)
    sti64(block + rare.CALL_COUNT * 8, count)
    sti64(block + rare.CALL_TYPE * 8, ldi64(op + at.RESULT_TYPE * 8))
    sti64(block + rare.CALL_SQUARES * 8, entity + ldi64(op + at.RESULT_SQUARES * 8))
    sti64(block + rare.CALL_SCALE * 8, ldi64(op + at.RESULT_SCALE * 8))
    sti64(block + rare.CALL_OUT * 8, out)
    return call_entry(ldi64(ctx + at.RUN_RESULT * 8), block)
