"""A faster form of the general loop in run.py, for *simple* nodes.

A node is one (window, filter, group-by) of the plan. It is simple if it has only counts and sums, and its window is
sliding or infinite. Most nodes are. This loop runs a simple node once it is *full*: its fill from stored events has
ended, and it lacks no earlier events (NODE_AFTER is NO_BOUND).

A *frame* holds decoded rows: a chunk, or the open region (frame 0). Addresses are looked up once per frame, not once
per row (prepared.py). A *crossing row* is an event that passes one of the window's edges: at the head edge it is added,
at the tail edge it is removed.

Where they can, `change_plain` and `read_plain` (plain.py) do a row's ops or results in one step; they return False if
they cannot.

A value that needs more, such as a double outside the narrow accumulator, is left to the general op. If that op has to
stop, the place is stored, and the general loop continues from there.
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
)
from railgun.aggregators.exact.narrow import PLACE_MAX, add_narrow, normal_mantissa, place_of, round_narrow
from railgun.aggregators.sum_long import add_sum as add_sum_long
from railgun.interpreter import layout as at
from railgun.interpreter.operations import result, update
from railgun.interpreter.plain import change_plain, plain_cells, plain_outs, read_plain
from railgun.interpreter.prepared import (
    PREPARED_BYTES,
    PREPARED_CELL,
    PREPARED_CODE,
    PREPARED_FRAME,
    PREPARED_NULLS,
    PREPARED_TABLE_BYTES,
    PREPARED_WORDS,
)
from railgun.interpreter.times import is_passed
from reservoir.frames import COLUMN_NULLS, COLUMN_WORDS_AT, column_at
from reservoir.native.jit import bits_f64, f64_bits, jit, ld8, ld64, ldi32, ldi64, prefetch, st8, st64, sti64

u = np.uint64

_AHEAD = 16  # how many records or entries ahead a row's cells are prefetched

# The stages of a record, in order: rows that cross the head, rows that cross the tail, results of EXCLUDE CURRENT, the
# record itself, and all other results.
_HEADS, _TAILS, _BEFORE, _ARRIVAL, _RESULTS = range(5)
# The results of `_apply` that are not the number of an op.
_ALL_DONE = -1
_FILTERED = -2


@jit
def _prepare(ctx: Any, node: Any, frame: Any, table: Any) -> None:
    """Fill a table with a node's prepared ops for a frame. The filter's column comes first."""
    sti64(table + PREPARED_FRAME, frame)
    frames, updates = ldi64(ctx + at.RUN_FRAMES * 8), ldi64(ctx + at.RUN_UPDATES * 8)
    predicate = ldi64(node + at.NODE_FILTER * 8)
    sti64(table + PREPARED_WORDS, 0)
    if predicate >= 0:
        sti64(table + PREPARED_WORDS, ldi64(column_at(frames, frame, predicate) + COLUMN_WORDS_AT * 8))
    place = table + PREPARED_BYTES
    for k in range(ldi64(node + at.NODE_UPDATES * 8), ldi64(node + at.NODE_UPDATES_END * 8)):
        op = updates + k * (at.UPDATE_WORDS * 8)
        sti64(place + PREPARED_CODE, ldi64(op + at.UPDATE_OP * 8))
        sti64(place + PREPARED_CELL, ldi64(op + at.UPDATE_CELL * 8))
        column = ldi64(op + at.UPDATE_COLUMN * 8)
        words, nulls = np.int64(0), np.int64(0)
        if column >= 0:
            values = column_at(frames, frame, column)
            words, nulls = ldi64(values + COLUMN_WORDS_AT * 8), ldi64(values + COLUMN_NULLS * 8)
        sti64(place + PREPARED_WORDS, words)
        sti64(place + PREPARED_NULLS, nulls)
        place += PREPARED_BYTES


@jit
def _apply(table: Any, ops: Any, first: Any, row: Any, entity: Any, adding: Any) -> Any:
    """Apply prepared ops from `first` on. Returns _ALL_DONE, _FILTERED, or the number of an op for the general code."""
    predicate = ldi64(table + PREPARED_WORDS)
    if predicate != 0 and ld64(predicate + row * 8) == u(0):
        return np.int64(_FILTERED)
    for k in range(first, ops):
        op = table + (k + 1) * PREPARED_BYTES
        words, value = ldi64(op + PREPARED_WORDS), u(0)
        if words != 0:
            nulls = ldi64(op + PREPARED_NULLS)
            if nulls != 0 and ld8(nulls + row) != 0:
                continue
            value = ld64(words + row * 8)
        code, cell = ldi64(op + PREPARED_CODE), entity + ldi64(op + PREPARED_CELL)
        if code == COUNT:
            st64(cell, ld64(cell) + (u(1) if adding else ~u(0)))
        elif code == SUM_DOUBLE:
            place = place_of(value)
            if u(place) > PLACE_MAX:
                return np.int64(k)
            add_narrow(cell + 8, normal_mantissa(value), place, ((value >> u(63)) != u(0)) == adding)
        else:
            add_sum_long(cell, value, not adding)
    return np.int64(_ALL_DONE)


@jit
def _apply_all(
    ctx: Any, node: Any, table: Any, ops: Any, frame: Any, row: Any, entity: Any, adding: Any
) -> Any:
    """Apply a node's ops to an entity's row for one row of a frame. Returns 0, or a status with the op in RUN_AT_OP."""
    k = _apply(table, ops, 0, row, entity, adding)
    while k >= 0:
        op = ldi64(ctx + at.RUN_UPDATES * 8) + (ldi64(node + at.NODE_UPDATES * 8) + k) * (at.UPDATE_WORDS * 8)
        status = update(ctx, op, adding, frame, row, entity)
        if status != 0:
            sti64(ctx + at.RUN_AT_OP * 8, k)
            return status
        k = _apply(table, ops, k + 1, row, entity, adding)
    return np.int64(0)


@jit
def _lists(ctx: Any, node: Any) -> Any:
    """Return the addresses of four lists of the crossing rows: the record at which each crosses, its frame, its row in
    the frame, and its entity's row.
    """
    entities = ldi64(node + at.NODE_GROUP * 8) * ldi64(ctx + at.RUN_ENTITIES_STRIDE * 8) * 8
    return (
        ldi64(ctx + at.RUN_ENTRY_AT * 8),
        ldi64(ctx + at.RUN_ENTRY_FRAME * 8),
        ldi64(ctx + at.RUN_ENTRY_ROW * 8),
        ldi64(ctx + at.RUN_ENTITIES * 8) + entities,
    )


@jit
def _crossings(
    ctx: Any,
    node: Any,
    table: Any,
    ops: Any,
    plain: Any,
    lists: Any,
    first_cell: Any,
    entry: Any,
    end: Any,
    record: Any,
    adding: Any,
) -> Any:
    """Add or remove the rows that cross an edge up to a record: entries of the lists, from `entry` up to `end`.

    Returns the next entry, or -1 with a status stored.
    """
    records, frame_of, row_of, entity_of = lists
    while entry < end and ldi32(records + entry * 4) <= record:
        if entry + _AHEAD < end:
            prefetch(ldi64(entity_of + (entry + _AHEAD) * 8) + first_cell)
        frame: Any = np.int64(ldi32(frame_of + entry * 4))
        if frame != ldi64(table + PREPARED_FRAME):
            _prepare(ctx, node, frame, table)
        row: Any = np.int64(ldi32(row_of + entry * 4))
        entity = ldi64(entity_of + entry * 8)
        if not change_plain(plain, table, row, entity, adding):
            status = _apply_all(ctx, node, table, ops, frame, row, entity, adding)
            if status != 0:
                sti64(ctx + (at.RUN_AT_HEAD if adding else at.RUN_AT_TAIL) * 8, entry)
                sti64(ctx + at.RUN_STOPPED * 8, status)
                return np.int64(-1)
        entry += 1
    return entry


@jit
def _results(ctx: Any, first: Any, end: Any, record: Any, entity: Any) -> Any:
    """Write the results of ops `first` to `end` - 1 for a record. Returns 0, or a status with the op in RUN_AT_OP."""
    results, stride = ldi64(ctx + at.RUN_RESULTS * 8), ldi64(ctx + at.RUN_STRIDE * 8)
    outs, nulls = ldi64(ctx + at.RUN_OUT * 8) + record * 16, ldi64(ctx + at.RUN_OUT_NULLS * 8) + record
    rounded, total = np.int64(-1), u(0)
    for k in range(first, end):
        op = results + k * (at.RESULT_WORDS * 8)
        code, offset = ldi64(op), ldi64(op + at.RESULT_CELL * 8)
        where = ldi64(op + at.RESULT_OUT * 8) * stride
        out, cell = outs + where * 16, entity + offset
        null = np.uint8(0)
        if code == RESULT_COUNT:
            st64(out, ld64(cell))
        elif (code == RESULT_SUM_DOUBLE or code == RESULT_AVG_DOUBLE) and ld64(cell) == u(0):  # noqa: SIM109
            n = ld64(entity + ldi64(op + at.RESULT_COUNT * 8))
            null = np.uint8(n == u(0))
            if n != u(0):
                if rounded != offset:
                    total, rounded = round_narrow(cell + 8), offset
                value = total
                if code == RESULT_AVG_DOUBLE:
                    value = f64_bits(bits_f64(total) / np.float64(n) + 0.0)
                st64(out, value)
        else:
            status = result(ctx, op, entity, out)
            if status < 0:
                sti64(ctx + at.RUN_AT_OP * 8, k - first)
                return status
            null = np.uint8(status == NULL)
        st8(nulls + where, null)
    return np.int64(0)


@jit
def _stop(ctx: Any, stage: Any, record: Any, head: Any, tail: Any) -> Any:
    """Store the place where the general loop has to continue. Returns the status."""
    sti64(ctx + at.RUN_AT_STAGE * 8, stage)
    sti64(ctx + at.RUN_AT_RECORD * 8, record)
    # In the stages _HEADS and _TAILS, `_crossings` has stored that edge's entry.
    if stage != _HEADS:
        sti64(ctx + at.RUN_AT_HEAD * 8, head)
    if stage != _TAILS:
        sti64(ctx + at.RUN_AT_TAIL * 8, tail)
    return ldi64(ctx + at.RUN_STOPPED * 8)


@jit
def is_simple(node: Any) -> Any:
    """Whether this loop can run a node now."""
    if ldi64(node + at.NODE_SIMPLE * 8) == 0 or ldi64(node + at.NODE_AFTER * 8) != at.NO_BOUND:
        return False
    return ldi64(node + at.NODE_FILLED_TIME * 8) == at.FULL


@jit
def _crossed(ctx: Any, edge: Any) -> Any:
    """Return the first entry of the rows that cross an edge, and the end of these entries. edge: -1 for no edge."""
    if edge < 0:
        return np.int64(0), np.int64(0)
    starts, ends = ldi64(ctx + at.RUN_EDGE_START * 8), ldi64(ctx + at.RUN_EDGE_END * 8)
    return ldi64(starts + edge * 8), ldi64(ends + edge * 8)


@jit
def run_simple(ctx: Any, node: Any, first: Any, limit: Any) -> Any:
    """Run records `first` to `limit` - 1 of one node. Returns 0, or a status with the place stored."""
    head, head_end = _crossed(ctx, ldi64(node + at.NODE_HEAD * 8))
    tail, tail_end = _crossed(ctx, ldi64(node + at.NODE_TAIL * 8))
    arriving = ldi64(ctx + at.RUN_PREPARED * 8)
    entering, leaving = arriving + PREPARED_TABLE_BYTES, arriving + 2 * PREPARED_TABLE_BYTES
    _prepare(ctx, node, 0, arriving)
    sti64(entering + PREPARED_FRAME, -1)
    sti64(leaving + PREPARED_FRAME, -1)
    ops = ldi64(node + at.NODE_UPDATES_END * 8) - ldi64(node + at.NODE_UPDATES * 8)
    plain, lists = plain_cells(node), _lists(ctx, node)
    outs = plain_outs(ctx, node, at.NODE_PLAIN_OUT_ALL)
    outs_before = plain_outs(ctx, node, at.NODE_PLAIN_BEFORE_ALL)
    results, results_end = ldi64(node + at.NODE_RESULTS * 8), ldi64(node + at.NODE_RESULTS_END * 8)
    before, before_end = ldi64(node + at.NODE_BEFORE * 8), ldi64(node + at.NODE_BEFORE_END * 8)
    delay = ldi64(node + at.NODE_DELAY * 8)
    behind = delay + ldi64(node + at.NODE_SIZE * 8)
    sliding = ldi64(node + at.NODE_KIND * 8) == at.SLIDING
    accepted, times = ldi64(ctx + at.RUN_ACCEPTED * 8), ldi64(ctx + at.RUN_TIME * 8)
    clocks, slots = ldi64(ctx + at.RUN_CLOCK * 8), ldi64(ctx + at.RUN_SLOT * 8)
    rows = ldi64(ctx + at.RUN_ROWS * 8) + ldi64(node + at.NODE_GROUP * 8) * ldi64(ctx + at.RUN_STRIDE * 8) * 8
    first_cell = ldi64(node + at.NODE_FIRST_CELL * 8)
    for i in range(first, limit):
        if i + _AHEAD < limit:
            prefetch(ldi64(rows + (i + _AHEAD) * 8) + first_cell)
        if head < head_end:
            reached = _crossings(ctx, node, entering, ops, plain, lists, first_cell, head, head_end, i, True)
            if reached < 0:
                return _stop(ctx, _HEADS, i, head, tail)
            head = reached
        if tail < tail_end:
            reached = _crossings(ctx, node, leaving, ops, plain, lists, first_cell, tail, tail_end, i, False)
            if reached < 0:
                return _stop(ctx, _TAILS, i, head, tail)
            tail = reached
        entity = ldi64(rows + i * 8)
        if entity == 0:
            continue
        if before < before_end and not read_plain(plain, outs_before, entity, i):
            status = _results(ctx, before, before_end, i, entity)
            if status != 0:
                sti64(ctx + at.RUN_STOPPED * 8, status)
                return _stop(ctx, _BEFORE, i, head, tail)
        if ld8(accepted + i) != 0:
            time, clock = ldi64(times + i * 8), ldi64(clocks + i * 8)
            # The event is in the window on arrival: past the head edge, not yet past the tail edge.
            if is_passed(time, clock, delay) and not (sliding and is_passed(time, clock, behind)):
                slot: Any = np.int64(ldi32(slots + i * 4))
                if not change_plain(plain, arriving, slot, entity, True):
                    status = _apply_all(ctx, node, arriving, ops, 0, slot, entity, True)
                    if status != 0:
                        sti64(ctx + at.RUN_STOPPED * 8, status)
                        return _stop(ctx, _ARRIVAL, i, head, tail)
        if results < results_end and not read_plain(plain, outs, entity, i):
            status = _results(ctx, results, results_end, i, entity)
            if status != 0:
                sti64(ctx + at.RUN_STOPPED * 8, status)
                return _stop(ctx, _RESULTS, i, head, tail)
    return np.int64(0)
