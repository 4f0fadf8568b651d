"""Runs before the interpreter: makes sure that the entity row of every record and every crossing row is in memory.

An *edge* is one end of a window, and a *crossing row* is an event that passes one. `railgun/task/execution.py` calls
`resolve`, and has rows loaded until none is missing. Rows are stamped, so that they stay in memory until the batch is
done, and marked dirty. A *frame* holds decoded events: a chunk, or the open region of the reservoir. It caches the
address of the row of each of its entities, and the batch in which the row was found. Within that batch the address is
valid. In a later batch it is used only if the row at the address still belongs to the entity.
"""

from typing import Any

import numpy as np

from railgun.interpreter import layout as at
from railgun.state.rows.access import find_row, prefetch_entry, prefetch_row, row_is, touch_row
from railgun.state.rows.context import ROWS_BATCH
from reservoir.frames import COLUMN_CODES, COLUMN_PAIRS, COLUMN_ROW_CACHE, column_at
from reservoir.native.jit import jit, ld8, ld32, ld64, ldi32, ldi64, prefetch, st64, sti64

# How many records or entries ahead memory is prefetched: enough to hide a miss, and not so far that it is evicted.
_NEAR, _FAR = 8, 16
_ENTRY_NEAR, _ENTRY_FAR = 16, 32


@jit
def _miss(ctx: Any, group: Any, hi: Any, lo: Any) -> Any:
    """Add a row to the list of rows to load; MISSING when the list is full."""
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
    """Find the rows of the records themselves, for one group-by; 0 or a status."""
    table = ldi64(ctx + at.RUN_TABLE * 8)
    rows = ldi64(ctx + at.RUN_ROWS * 8) + group * ldi64(ctx + at.RUN_STRIDE * 8) * 8
    his = ldi64(ldi64(ctx + at.RUN_HASH_HI * 8) + group * 8)
    los = ldi64(ldi64(ctx + at.RUN_HASH_LO * 8) + group * 8)
    status_of = ldi64(ctx + at.RUN_STATUS * 8)
    first, limit = ldi64(ctx + at.RUN_FIRST * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    # Two prefetches: the far one loads the table's entry, the near one the row that the entry points to.
    for i in range(first, min(limit, first + _FAR)):
        prefetch_entry(table, group, ld64(los + i * 8))
    for i in range(first, limit):
        if i + _FAR < limit:
            prefetch_entry(table, group, ld64(los + (i + _FAR) * 8))
        if i + _NEAR < limit:
            prefetch_row(prefetch_entry(table, group, ld64(los + (i + _NEAR) * 8)))
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
def _look_up(table: Any, batch: Any, group: Any, pairs: Any, place: Any, code: Any) -> Any:
    """Find and touch the row of a code, and cache its address at `place`: the address, 0, or a status below 0."""
    hi, lo = ld64(pairs + code * 16), ld64(pairs + code * 16 + 8)
    row = ldi64(place)
    if row == 0 or not row_is(table, row, group, hi, lo):
        row = find_row(table, group, hi, lo)
        sti64(place, row)
    if row != 0:
        status = touch_row(table, row)
        if status != 0:
            return status
        sti64(place + 8, batch)
    return row


@jit
def _entries(ctx: Any, edge: Any, group: Any, column: Any, start: Any) -> Any:
    """Find the rows of the entries that cross one edge, for one group-by, from an entry on.

    Returns a status, and the entry to continue from: the first one whose row is missing or that caused the status; -1
    when all are done.
    """
    table, records = ldi64(ctx + at.RUN_TABLE * 8), ldi64(ctx + at.RUN_ENTRY_AT * 8)
    frames, batch = ldi64(ctx + at.RUN_FRAMES * 8), ldi64(table + ROWS_BATCH)
    frame_of, row_of = ldi64(ctx + at.RUN_ENTRY_FRAME * 8), ldi64(ctx + at.RUN_ENTRY_ROW * 8)
    entities = ldi64(ctx + at.RUN_ENTITIES * 8) + group * ldi64(ctx + at.RUN_ENTITIES_STRIDE * 8) * 8
    end, limit = ldi64(ldi64(ctx + at.RUN_EDGE_END * 8) + edge * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    codes, pairs, cache = np.int64(0), np.int64(0), np.int64(0)
    held = np.int64(-1)
    missed: Any = np.int64(-1)
    for entry in range(start, end):
        if ldi32(records + entry * 4) >= limit:
            break
        frame: Any = np.int64(ldi32(frame_of + entry * 4))
        if frame != held:
            values = column_at(frames, frame, column)
            codes, pairs = ldi64(values + COLUMN_CODES * 8), ldi64(values + COLUMN_PAIRS * 8)
            cache, held = ldi64(values + COLUMN_ROW_CACHE * 8), frame
        if entry + _ENTRY_FAR < end and np.int64(ldi32(frame_of + (entry + _ENTRY_FAR) * 4)) == frame:
            code = _code_of(codes, np.int64(ldi32(row_of + (entry + _ENTRY_FAR) * 4)))
            place = cache + 16 * code
            if ldi64(place) == 0:
                prefetch_entry(table, group, ld64(pairs + code * 16 + 8))
            elif ldi64(place + 8) != batch:
                prefetch(ldi64(place))
            code = _code_of(codes, np.int64(ldi32(row_of + (entry + _ENTRY_NEAR) * 4)))
            if ldi64(cache + 16 * code) == 0:
                prefetch_row(prefetch_entry(table, group, ld64(pairs + code * 16 + 8)))
        code = _code_of(codes, np.int64(ldi32(row_of + entry * 4)))
        place = cache + 16 * code
        row = ldi64(place)
        if ldi64(place + 8) != batch:
            found = _look_up(table, batch, group, pairs, place, code)
            if found < 0:
                return found, entry if missed < 0 else missed
            if found == 0:
                missed = entry if missed < 0 else missed
                status = _miss(ctx, group, ld64(pairs + code * 16), ld64(pairs + code * 16 + 8))
                if status != 0:
                    return status, missed
            row = found
        sti64(entities + entry * 8, row)
    return np.int64(0), missed


@jit
def _code_of(codes: Any, row: Any) -> Any:
    """The code of the entity of a row, which is the row number itself if there are no codes."""
    if codes == 0:
        return row
    return np.int64(ld32(codes + row * 4))


@jit
def resolve(ctx: Any) -> Any:
    """Find and touch every row that records RUN_FIRST to RUN_LIMIT need: 0, MISSING or ROWS_DRAIN.

    The caller must set RUN_NEXT_PAIR to -1 and RUN_NEXT_ENTRY to 0 before the first call. After MISSING, with the list
    of rows to load, or ROWS_DRAIN it must call again, and this continues from the first entry that is not done.
    """
    sti64(ctx + at.RUN_MISSING_COUNT * 8, 0)
    next_pair, next_entry = ldi64(ctx + at.RUN_NEXT_PAIR * 8), ldi64(ctx + at.RUN_NEXT_ENTRY * 8)
    is_noted = False
    if next_pair < 0:
        if ldi64(ctx + at.RUN_DRAIN * 8) == 0:
            for group in range(ldi64(ctx + at.RUN_GROUPS * 8)):
                if ldi64(ldi64(ctx + at.RUN_HASH_HI * 8) + group * 8) == 0:
                    continue
                status = _records(ctx, group)
                if status != 0:
                    return status
        is_noted = ldi64(ctx + at.RUN_MISSING_COUNT * 8) > 0
        next_pair = np.int64(0)
    for p in range(next_pair, ldi64(ctx + at.RUN_PAIR_COUNT * 8)):
        pair = ldi64(ctx + at.RUN_PAIRS * 8) + p * 24
        start = ldi64(ldi64(ctx + at.RUN_EDGE_START * 8) + ldi64(pair) * 8)
        if p == next_pair:
            start = max(start, next_entry)
        status, left = _entries(ctx, ldi64(pair), ldi64(pair + 8), ldi64(pair + 16), start)
        if left >= 0 and not is_noted:
            is_noted = True
            sti64(ctx + at.RUN_NEXT_PAIR * 8, p)
            sti64(ctx + at.RUN_NEXT_ENTRY * 8, left)
        if status != 0:
            return status
    return np.int64(at.MISSING if ldi64(ctx + at.RUN_MISSING_COUNT * 8) > 0 else 0)


@jit
def pass_entries(ctx: Any, edges: Any) -> None:
    """Skip the entries of records before RUN_LIMIT, which a run has processed."""
    records, limit = ldi64(ctx + at.RUN_ENTRY_AT * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    for edge in range(edges):
        where = ldi64(ctx + at.RUN_EDGE_START * 8) + edge * 8
        entry, end = ldi64(where), ldi64(ldi64(ctx + at.RUN_EDGE_END * 8) + edge * 8)
        while entry < end and ldi32(records + entry * 4) < limit:
            entry += 1
        sti64(where, entry)
