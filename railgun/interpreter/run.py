"""The interpreter: one compiled loop over a program, a batch and its changelog, which computes results for every event.

`railgun/task/execution.py` calls it. The program is the plan of a task's metrics as tables; a *node* of it is one
(window, filter, group-by). An *edge* is one end of a window, and the changelog lists the stored events that cross it.
For each node and each record, in log order: rows that cross the head edge are added; rows that cross the tail edge are
removed; the results of EXCLUDE CURRENT are read; the record is added, if its time is in the window; and the other
results are read. The head comes before the tail, so that a row that crosses both edges at one record is added and then
removed. When state of variable size is not in memory, the kernel stops with a status, and continues from the same op
when it is called again.
"""

from typing import Any

import numpy as np

from railgun.interpreter import layout as at
from railgun.interpreter import rare
from railgun.interpreter.operations import update
from railgun.interpreter.results import bucket_at, write_results
from railgun.interpreter.simple import is_simple, run_simple
from railgun.interpreter.times import is_passed
from reservoir.frames import column_at, column_word, frame_seq, frame_time
from reservoir.native.jit import call_entry, jit, ld8, ldi32, ldi64, sti64

u = np.uint64

_HEADS, _TAILS, _BEFORE, _ARRIVAL, _RESULTS = range(5)


@jit
def _apply(ctx: Any, node: Any, adding: Any, frame: Any, row: Any, entity: Any) -> Any:
    """Apply a node's update ops for one row, from the op in RUN_AT_OP on; 0, or a status with the op in RUN_AT_OP."""
    filter_column = ldi64(node + at.NODE_FILTER * 8)
    if filter_column >= 0:
        if column_word(column_at(ldi64(ctx + at.RUN_FRAMES * 8), frame, filter_column), row) == u(0):
            return np.int64(0)
    updates = ldi64(ctx + at.RUN_UPDATES * 8)
    first = ldi64(node + at.NODE_UPDATES * 8) + ldi64(ctx + at.RUN_AT_OP * 8)
    for k in range(first, ldi64(node + at.NODE_UPDATES_END * 8)):
        status = update(ctx, updates + k * (at.UPDATE_WORDS * 8), adding, frame, row, entity)
        if status != 0:
            sti64(ctx + at.RUN_AT_OP * 8, k - ldi64(node + at.NODE_UPDATES * 8))
            return status
    sti64(ctx + at.RUN_AT_OP * 8, 0)
    return np.int64(0)


@jit
def _enter_bucket(ctx: Any, node: Any, entity: Any, bucket: Any) -> Any:
    """Empty a tumbling node's cells if the entity's row belongs to another bucket; 0 or a status."""
    where = entity + ldi64(node + at.NODE_BUCKET * 8)
    if ldi64(where) == bucket:
        return np.int64(0)
    updates, block = ldi64(ctx + at.RUN_UPDATES * 8), ldi64(ctx + at.RUN_CALL * 8)
    for k in range(ldi64(node + at.NODE_UPDATES * 8), ldi64(node + at.NODE_UPDATES_END * 8)):
        op = updates + k * (at.UPDATE_WORDS * 8)
        sti64(block, ldi64(op + at.UPDATE_OP * 8))
        sti64(block + rare.CALL_POOL * 8, ldi64(ctx + at.RUN_POOL * 8))
        sti64(block + rare.CALL_CELL * 8, entity + ldi64(op + at.UPDATE_CELL * 8))
        sti64(block + rare.CALL_TYPE * 8, ldi64(op + at.UPDATE_TYPE * 8))
        status = call_entry(ldi64(ctx + at.RUN_RESET * 8), block)
        if status != 0:
            return status
    sti64(where, bucket)
    return np.int64(0)


@jit
def _entity_of(ctx: Any, node: Any, entry: Any) -> Any:
    """The address of the entity row of a crossing row, as `resolve` stored it."""
    group = ldi64(node + at.NODE_GROUP * 8) * ldi64(ctx + at.RUN_ENTITIES_STRIDE * 8)
    return ldi64(ldi64(ctx + at.RUN_ENTITIES * 8) + (group + entry) * 8)


@jit
def _add_in_window(ctx: Any, node: Any, clock: Any, time: Any, frame: Any, row: Any, entity: Any) -> Any:
    """Add a row that is at or before the head, unless it is behind the tail or its bucket is past."""
    if ldi64(node + at.NODE_KIND * 8) == at.TUMBLING:
        bucket = bucket_at(node, clock)
        if time // ldi64(node + at.NODE_SIZE * 8) != bucket:
            return np.int64(0)
        status = _enter_bucket(ctx, node, entity, bucket)
        if status != 0:
            return status
    return _apply(ctx, node, True, frame, row, entity)


@jit
def _is_after(node: Any, time: Any) -> Any:
    """Whether a time is after the bound of the node's fill."""
    after = ldi64(node + at.NODE_AFTER * 8)
    return after == at.NO_BOUND or time > after


@jit
def _is_held(ctx: Any, node: Any, frame: Any, row: Any, time: Any) -> Any:
    """Whether the node has read this row: it is after the bound of the node's fill, and the fill has reached it."""
    filled = ldi64(node + at.NODE_FILLED_TIME * 8)
    if not _is_after(node, time) or time > filled:
        return False
    if time < filled or filled == at.FULL:
        return True
    return frame_seq(ldi64(ctx + at.RUN_FRAMES * 8), frame, row) <= ldi64(node + at.NODE_FILLED_SEQ * 8)


@jit
def _heads(ctx: Any, node: Any, i: Any) -> Any:
    """Add the rows that cross the head edge at record i; 0 or a status.

    A sliding node without a tail is being filled. Rows that its window has left already are not added.
    """
    edge = ldi64(node + at.NODE_HEAD * 8)
    end = ldi64(ldi64(ctx + at.RUN_EDGE_END * 8) + edge * 8)
    entry = ldi64(ctx + at.RUN_AT_HEAD * 8)
    times = ldi64(ctx + at.RUN_ENTRY_AT * 8)
    clock = ldi64(ldi64(ctx + at.RUN_CLOCK * 8) + i * 8)
    filling = ldi64(node + at.NODE_TAIL * 8) < 0 and ldi64(node + at.NODE_KIND * 8) == at.SLIDING
    tail = ldi64(node + at.NODE_DELAY * 8) + ldi64(node + at.NODE_SIZE * 8)
    while entry < end and ldi32(times + entry * 4) <= i:
        frame: Any = np.int64(ldi32(ldi64(ctx + at.RUN_ENTRY_FRAME * 8) + entry * 4))
        row: Any = np.int64(ldi32(ldi64(ctx + at.RUN_ENTRY_ROW * 8) + entry * 4))
        time = frame_time(ldi64(ctx + at.RUN_FRAMES * 8), frame, row)
        if not (filling and is_passed(time, clock, tail)) and _is_held(ctx, node, frame, row, time):
            status = _add_in_window(ctx, node, clock, time, frame, row, _entity_of(ctx, node, entry))
            if status != 0:
                sti64(ctx + at.RUN_AT_HEAD * 8, entry)
                return status
        entry += 1
    sti64(ctx + at.RUN_AT_HEAD * 8, entry)
    return np.int64(0)


@jit
def _tails(ctx: Any, node: Any, i: Any) -> Any:
    """Remove the rows that cross the tail edge at record i; 0 or a status."""
    edge = ldi64(node + at.NODE_TAIL * 8)
    end = ldi64(ldi64(ctx + at.RUN_EDGE_END * 8) + edge * 8)
    entry = ldi64(ctx + at.RUN_AT_TAIL * 8)
    times = ldi64(ctx + at.RUN_ENTRY_AT * 8)
    while entry < end and ldi32(times + entry * 4) <= i:
        frame: Any = np.int64(ldi32(ldi64(ctx + at.RUN_ENTRY_FRAME * 8) + entry * 4))
        row: Any = np.int64(ldi32(ldi64(ctx + at.RUN_ENTRY_ROW * 8) + entry * 4))
        status = np.int64(0)
        if _is_held(ctx, node, frame, row, frame_time(ldi64(ctx + at.RUN_FRAMES * 8), frame, row)):
            status = _apply(ctx, node, False, frame, row, _entity_of(ctx, node, entry))
        if status != 0:
            sti64(ctx + at.RUN_AT_TAIL * 8, entry)
            return status
        entry += 1
    sti64(ctx + at.RUN_AT_TAIL * 8, entry)
    return np.int64(0)


@jit
def _arrival(ctx: Any, node: Any, i: Any, entity: Any) -> Any:
    """Add record i itself if its time is in the window already. Otherwise the head's cursor will add it."""
    if ld8(ldi64(ctx + at.RUN_ACCEPTED * 8) + i) == 0:
        return np.int64(0)
    time = ldi64(ldi64(ctx + at.RUN_TIME * 8) + i * 8)
    clock = ldi64(ldi64(ctx + at.RUN_CLOCK * 8) + i * 8)
    delay = ldi64(node + at.NODE_DELAY * 8)
    if not is_passed(time, clock, delay) or not _is_after(node, time):
        return np.int64(0)
    filled = ldi64(node + at.NODE_FILLED_TIME * 8)
    if filled != at.FULL and time >= filled:
        return np.int64(0)
    if ldi64(node + at.NODE_KIND * 8) == at.SLIDING:
        if is_passed(time, clock, delay + ldi64(node + at.NODE_SIZE * 8)):
            return np.int64(0)
    slot: Any = np.int64(ldi32(ldi64(ctx + at.RUN_SLOT * 8) + i * 4))
    return _add_in_window(ctx, node, clock, time, 0, slot, entity)


@jit
def _results(ctx: Any, node: Any, i: Any, entity: Any, begin: Any, end: Any) -> Any:
    """Write results of the node, those of the ops begin to end, for record i; 0 or a status."""
    if ldi64(node + at.NODE_KIND * 8) == at.TUMBLING:
        clock = ldi64(ldi64(ctx + at.RUN_CLOCK * 8) + i * 8)
        status = _enter_bucket(ctx, node, entity, bucket_at(node, clock))
        if status != 0:
            return status
    return write_results(ctx, i, entity, begin, end)


@jit
def _record(ctx: Any, node: Any, i: Any) -> Any:
    """One record of one node, from the stage in RUN_AT_STAGE on; 0 or a status."""
    stage, drain = ldi64(ctx + at.RUN_AT_STAGE * 8), ldi64(ctx + at.RUN_DRAIN * 8)
    rows = ldi64(ctx + at.RUN_ROWS * 8) + ldi64(node + at.NODE_GROUP * 8) * ldi64(ctx + at.RUN_STRIDE * 8) * 8
    entity = ldi64(rows + i * 8) if drain == 0 else np.int64(0)
    status = np.int64(0)
    if stage == _HEADS:
        if ldi64(node + at.NODE_HEAD * 8) >= 0:
            status = _heads(ctx, node, i)
        stage = _HEADS if status != 0 else _TAILS
    if stage == _TAILS:
        if ldi64(node + at.NODE_TAIL * 8) >= 0:
            status = _tails(ctx, node, i)
        stage = _TAILS if status != 0 else _BEFORE
    if stage == _BEFORE:
        begin, end = ldi64(node + at.NODE_BEFORE * 8), ldi64(node + at.NODE_BEFORE_END * 8)
        if entity != 0 and begin < end:
            status = _results(ctx, node, i, entity, begin, end)
        stage = _BEFORE if status != 0 else _ARRIVAL
    if stage == _ARRIVAL:
        if entity != 0:
            status = _arrival(ctx, node, i, entity)
        stage = _ARRIVAL if status != 0 else _RESULTS
    if stage == _RESULTS and entity != 0:
        begin, end = ldi64(node + at.NODE_RESULTS * 8), ldi64(node + at.NODE_RESULTS_END * 8)
        status = _results(ctx, node, i, entity, begin, end)
    sti64(ctx + at.RUN_AT_STAGE * 8, stage if status != 0 else _HEADS)
    return status


@jit
def run(ctx: Any) -> Any:
    """Run the nodes over records RUN_FIRST to RUN_LIMIT; 0, or a status, with the place to continue from in RUN_AT_….

    The caller must set RUN_AT_NODE to RUN_NODE_FIRST, RUN_AT_RECORD to -1 and the other RUN_AT_ words to 0 before the
    first call.
    """
    first, limit = ldi64(ctx + at.RUN_FIRST * 8), ldi64(ctx + at.RUN_LIMIT * 8)
    starts = ldi64(ctx + at.RUN_EDGE_START * 8)
    record, drain = ldi64(ctx + at.RUN_AT_RECORD * 8), ldi64(ctx + at.RUN_DRAIN * 8)
    for n in range(ldi64(ctx + at.RUN_AT_NODE * 8), ldi64(ctx + at.RUN_NODE_LAST * 8)):
        node = ldi64(ctx + at.RUN_NODES * 8) + n * (at.NODE_WORDS * 8)
        if record < 0 and drain == 0 and is_simple(node):
            status = run_simple(ctx, node, first, limit)
            if status != 0:
                sti64(ctx + at.RUN_AT_NODE * 8, n)
                return status
            continue
        if record < 0:
            record = first
            head, tail = ldi64(node + at.NODE_HEAD * 8), ldi64(node + at.NODE_TAIL * 8)
            sti64(ctx + at.RUN_AT_HEAD * 8, ldi64(starts + head * 8) if head >= 0 else 0)
            sti64(ctx + at.RUN_AT_TAIL * 8, ldi64(starts + tail * 8) if tail >= 0 else 0)
        for i in range(record, limit):
            status = _record(ctx, node, i)
            if status != 0:
                sti64(ctx + at.RUN_AT_NODE * 8, n)
                sti64(ctx + at.RUN_AT_RECORD * 8, i)
                return status
        record = np.int64(-1)
    return np.int64(0)
