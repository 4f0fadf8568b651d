"""Before a run: make sure that the entity row of every record and every crossing row is in memory.

Rows are stamped, so that they stay until the batch is done, and marked dirty.  A frame remembers the address
of the row of each of its entities; an address is believed only when the row there is still that entity's.
"""

from typing import Any

import numpy as np

from railgun.interpreter import layout as at
from railgun.state.row_access import find_row, foresee_entry, foresee_row, row_is, touch_row
from reservoir.compiled import jit, ld8, ld64, ldi32, ldi64, prefetch, st64, sti64
from reservoir.frames import code_cache, code_hi, code_lo, column_at, column_code

# How many records or entries ahead memory is asked for: far enough to hide a miss, near enough to be kept.
_NEAR, _FAR = 8, 16
_ENTRIES_AHEAD = 20


@jit
def _miss(ctx: Any, group: Any, hi: Any, lo: Any) -> Any:
    """Note a row to load; MISSING when the list is full."""
    count = ldi64(ctx + at.RUN_MISSING_COUNT * 8)
    if count == ldi64(ctx + at.RUN_MISSING_CAPACITY * 8):
        return np.int64(at.MISSING)
    where = ldi64(ctx + at.RUN_MISSING * 8) + count * 24
    sti64(where, group)
    st64(where + 8, hi)
    st64(where + 16, lo)
    sti64(ctx + at.RUN_MISSING_COUNT * 8, count + 1)
    return np.int64(0)


@jit
def _records(ctx: Any, group: Any) -> Any:
    """The rows of the records themselves, for one group-by; 0 or a status."""
    table = ldi64(ctx + at.RUN_TABLE * 8)
    rows = ldi64(ctx + at.RUN_ROWS * 8) + group * ldi64(ctx + at.RUN_STRIDE * 8) * 8
    his = ldi64(ldi64(ctx + at.RUN_HASH_HI * 8) + group * 8)
    los = ldi64(ldi64(ctx + at.RUN_HASH_LO * 8) + group * 8)
    status_of = ldi64(ctx + at.RUN_STATUS * 8)
    first, limit = ldi64(ctx + at.RUN_FIRST * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    # Two looks ahead: the far one brings the table's entry, the near one the row that it leads to.
    for i in range(first, min(limit, first + _FAR)):
        foresee_entry(table, group, ld64(los + i * 8))
    for i in range(first, limit):
        if i + _FAR < limit:
            foresee_entry(table, group, ld64(los + (i + _FAR) * 8))
        if i + _NEAR < limit:
            foresee_row(foresee_entry(table, group, ld64(los + (i + _NEAR) * 8)))
        row = np.int64(0)
        if ld8(status_of + i) == 0:
            hi, lo = ld64(his + i * 8), ld64(los + i * 8)
            row = find_row(table, group, hi, lo)
            status = _miss(ctx, group, hi, lo) if row == 0 else touch_row(table, row)
            if status != 0:
                return status
        sti64(rows + i * 8, row)
    return np.int64(0)


@jit
def _remembered(ctx: Any, entry: Any, column: Any) -> Any:
    """(descriptor, code, remembered address) of the entity of a crossing row."""
    frame: Any = np.int64(ldi32(ldi64(ctx + at.RUN_ENTRY_FRAME * 8) + entry * 4))
    row: Any = np.int64(ldi32(ldi64(ctx + at.RUN_ENTRY_ROW * 8) + entry * 4))
    values = column_at(ldi64(ctx + at.RUN_FRAMES * 8), frame, column)
    code = column_code(values, row)
    return values, code, ldi64(code_cache(values, code))


@jit
def _entries(ctx: Any, edge: Any, group: Any, column: Any) -> Any:
    """The rows of what crosses one edge, for one group-by; 0 or a status."""
    table, records = ldi64(ctx + at.RUN_TABLE * 8), ldi64(ctx + at.RUN_ENTRY_AT * 8)
    entities = ldi64(ctx + at.RUN_ENTITIES * 8) + group * ldi64(ctx + at.RUN_ENTITIES_STRIDE * 8) * 8
    end, limit = ldi64(ldi64(ctx + at.RUN_EDGE_END * 8) + edge * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    start = ldi64(ldi64(ctx + at.RUN_EDGE_START * 8) + edge * 8)
    for entry in range(start, end):
        if ldi32(records + entry * 4) >= limit:
            break
        if entry + _ENTRIES_AHEAD < end:
            _, _, ahead = _remembered(ctx, entry + _ENTRIES_AHEAD, column)
            prefetch(ahead)
        values, code, row = _remembered(ctx, entry, column)
        hi, lo = code_hi(values, code), code_lo(values, code)
        if row == 0 or not row_is(table, row, group, hi, lo):
            row = find_row(table, group, hi, lo)
            sti64(code_cache(values, code), row)
        status = _miss(ctx, group, hi, lo) if row == 0 else touch_row(table, row)
        if status != 0:
            return status
        sti64(entities + entry * 8, row)
    return np.int64(0)


@jit
def resolve(ctx: Any) -> Any:
    """Find and touch every row that records RUN_FIRST to RUN_LIMIT need: 0, MISSING or ROWS_DRAIN.

    After MISSING (rows to load are listed) or ROWS_DRAIN it is called again from the start; what was touched
    already is only looked at.
    """
    sti64(ctx + at.RUN_MISSING_COUNT * 8, 0)
    if ldi64(ctx + at.RUN_DRAIN * 8) == 0:
        for group in range(ldi64(ctx + at.RUN_GROUPS * 8)):
            if ldi64(ldi64(ctx + at.RUN_HASH_HI * 8) + group * 8) == 0:
                continue
            status = _records(ctx, group)
            if status != 0:
                return status
    for p in range(ldi64(ctx + at.RUN_PAIR_COUNT * 8)):
        pair = ldi64(ctx + at.RUN_PAIRS * 8) + p * 24
        status = _entries(ctx, ldi64(pair), ldi64(pair + 8), ldi64(pair + 16))
        if status != 0:
            return status
    return np.int64(at.MISSING if ldi64(ctx + at.RUN_MISSING_COUNT * 8) > 0 else 0)


@jit
def pass_entries(ctx: Any, edges: Any) -> None:
    """Leave behind the entries of records before RUN_LIMIT: what a run has dealt with."""
    records, limit = ldi64(ctx + at.RUN_ENTRY_AT * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    for edge in range(edges):
        where = ldi64(ctx + at.RUN_EDGE_START * 8) + edge * 8
        entry, end = ldi64(where), ldi64(ldi64(ctx + at.RUN_EDGE_END * 8) + edge * 8)
        while entry < end and ldi32(records + entry * 4) < limit:
            entry += 1
        sti64(where, entry)
