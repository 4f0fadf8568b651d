"""Kernels that move edges with the clock, and list which rows cross which edge, at which record of the batch.

An edge is the beginning or end of windows, a fixed distance behind the clock. The list is the changelog; an *entry* of
it is one crossing row.
"""

from typing import Any

import numpy as np

from reservoir.cursors.edges import (
    EDGE_BOUND,
    EDGE_CHUNK,
    EDGE_DELTA,
    EDGE_FRAME,
    EDGE_NEXT_TIME,
    EDGE_ROW,
    EDGE_SET,
    EDGE_WORDS,
    bound_of,
    find_frame,
    index_word,
    open_passed,
    open_rows,
    open_slot,
    use_frame,
    want_behind,
    word,
)
from reservoir.frames import FRAME_TIME, frame_at
from reservoir.layout import (
    ADVANCE_AT,
    ADVANCE_DONE,
    ADVANCE_RECORD,
    ADVANCE_TO,
    DONE,
    EDGE_COUNT,
    EDGE_END,
    EDGE_ORDER,
    EDGE_SAVED,
    EDGE_START,
    EDGES,
    ENTRY_AT,
    ENTRY_COUNT,
    ENTRY_FRAME,
    ENTRY_LIMIT,
    ENTRY_ROW,
    FRAMES,
    FRAMES_STAMP,
    FULL,
    IN_CLOCK,
    INDEX_FIRST_TIME,
    INDEX_NEXT,
    INDEX_ROWS,
    INT64_MAX,
    INT64_MIN,
    LOAD,
    NEED_CHUNK,
    NEED_SET,
    OPEN_BATCH_FIRST,
    OPEN_BATCH_INDEX,
    OPEN_CAPACITY,
    OPEN_MIN_INSERTED,
    OPEN_NEXT,
    OPEN_TIME,
    WANTS_COUNT,
)
from reservoir.native.jit import jit, ldi32, ldi64, sti32, sti64


@jit
def _edge(ctx: int, place: int) -> Any:
    """Address of the edge at a place in EDGE_ORDER."""
    return word(ctx, EDGES) + np.int64(ldi32(word(ctx, EDGE_ORDER) + place * 4)) * (EDGE_WORDS * 8)


@jit
def reposition(ctx: int) -> None:
    """Find the places of edges in the open region again, after rows were inserted before these places."""
    least = word(ctx, OPEN_MIN_INSERTED)
    if least == INT64_MAX:
        return
    for place in range(word(ctx, EDGE_COUNT)):
        edge = _edge(ctx, place)
        if ldi64(edge + EDGE_CHUNK * 8) == word(ctx, INDEX_NEXT) and ldi64(edge + EDGE_ROW * 8) > 0:
            sti64(edge + EDGE_ROW * 8, open_passed(ctx, ldi64(edge + EDGE_BOUND * 8)))
    sti64(ctx + OPEN_MIN_INSERTED * 8, INT64_MAX)


@jit
def _cross_sealed(ctx: int, edge: int, frame: int, rows: int, bound: int) -> Any:
    """List the rows of one sealed chunk up to `bound`, and move the edge behind them. Returns DONE or FULL."""
    times = ldi64(frame_at(word(ctx, FRAMES), frame) + FRAME_TIME * 8)
    ats, frames, out = word(ctx, ENTRY_AT), word(ctx, ENTRY_FRAME), word(ctx, ENTRY_ROW)
    clock, delta = word(ctx, IN_CLOCK), ldi64(edge + EDGE_DELTA * 8)
    record, row, count = word(ctx, ADVANCE_RECORD), ldi64(edge + EDGE_ROW * 8), word(ctx, ENTRY_COUNT)
    limit, now = word(ctx, ENTRY_LIMIT), ldi64(clock + word(ctx, ADVANCE_RECORD) * 8)
    status = DONE
    while row < rows:
        time = ldi64(times + row * 8)
        if time > bound:
            break
        if count >= limit:
            status = FULL
            break
        passed_at = time + delta  # <= the clock at the end of the pass: no overflow
        while now < passed_at:
            record += 1
            now = ldi64(clock + record * 8)
        sti32(ats + count * 4, np.int32(record))
        sti32(frames + count * 4, np.int32(frame))
        sti32(out + count * 4, np.int32(row))
        row += 1
        count += 1
    sti64(ctx + ADVANCE_RECORD * 8, record)
    sti64(ctx + ENTRY_COUNT * 8, count)
    sti64(edge + EDGE_ROW * 8, row)
    return status


@jit
def _cross_open(ctx: int, edge: int, bound: int) -> Any:
    """List the open rows up to `bound`, except rows of this batch that were behind the edge when they arrived."""
    times, indexes = word(ctx, OPEN_TIME), word(ctx, OPEN_BATCH_INDEX)
    ats, frames, out = word(ctx, ENTRY_AT), word(ctx, ENTRY_FRAME), word(ctx, ENTRY_ROW)
    clock, delta = word(ctx, IN_CLOCK), ldi64(edge + EDGE_DELTA * 8)
    mask, first = word(ctx, OPEN_CAPACITY) - 1, word(ctx, OPEN_BATCH_FIRST)
    fresh = word(ctx, OPEN_NEXT) - first
    record, row, count = word(ctx, ADVANCE_RECORD), ldi64(edge + EDGE_ROW * 8), word(ctx, ENTRY_COUNT)
    rows, status = open_rows(ctx), DONE
    while row < rows:
        slot = open_slot(ctx, row)
        time = ldi64(times + slot * 8)
        if time > bound:
            break
        while ldi64(clock + record * 8) < time + delta:
            record += 1
        if ((slot - first) & mask) >= fresh or record > ldi32(indexes + slot * 4):
            if count >= word(ctx, ENTRY_LIMIT):
                status = FULL
                break
            sti32(ats + count * 4, np.int32(record))
            sti32(frames + count * 4, np.int32(0))
            sti32(out + count * 4, np.int32(slot))
            count += 1
        row += 1
    sti64(ctx + ADVANCE_RECORD * 8, record)
    sti64(ctx + ENTRY_COUNT * 8, count)
    sti64(edge + EDGE_ROW * 8, row)
    return status


@jit
def _cross_chunks(ctx: int, edge: int, bound: int) -> Any:
    """Move an edge through sealed chunks and the open region up to `bound`. Returns DONE, FULL or LOAD."""
    while True:
        chunk, row = ldi64(edge + EDGE_CHUNK * 8), ldi64(edge + EDGE_ROW * 8)
        if chunk >= word(ctx, INDEX_NEXT):
            sti64(edge + EDGE_NEXT_TIME * 8, INT64_MIN)
            return _cross_open(ctx, edge, bound)
        rows = index_word(ctx, INDEX_ROWS, chunk)
        if row >= rows:
            sti64(edge + EDGE_CHUNK * 8, chunk + 1)
            sti64(edge + EDGE_ROW * 8, 0)
            continue
        if row == 0:
            first = index_word(ctx, INDEX_FIRST_TIME, chunk)
            if first > bound:
                sti64(edge + EDGE_NEXT_TIME * 8, first)
                return DONE
        column_set = ldi64(edge + EDGE_SET * 8)
        frame = find_frame(ctx, column_set, chunk, ldi64(edge + EDGE_FRAME * 8))
        if frame == 0:
            sti64(ctx + NEED_SET * 8, column_set)
            sti64(ctx + NEED_CHUNK * 8, chunk)
            return LOAD
        sti64(edge + EDGE_FRAME * 8, frame)
        use_frame(ctx, frame)
        if row == 0:
            want_behind(ctx, column_set, chunk)
        status = _cross_sealed(ctx, edge, frame, rows, bound)
        if status != DONE:
            return status
        row = ldi64(edge + EDGE_ROW * 8)
        if row < rows:
            times = ldi64(frame_at(word(ctx, FRAMES), frame) + FRAME_TIME * 8)
            sti64(edge + EDGE_NEXT_TIME * 8, ldi64(times + row * 8))
            return DONE


@jit
def _save(ctx: int) -> None:
    """Save where every edge stands, so that a pass that gives too many entries can be undone."""
    saved = word(ctx, EDGE_SAVED)
    for place in range(word(ctx, EDGE_COUNT)):
        edge = _edge(ctx, place)
        sti64(saved + place * 24, ldi64(edge + EDGE_CHUNK * 8))
        sti64(saved + place * 24 + 8, ldi64(edge + EDGE_ROW * 8))
        sti64(saved + place * 24 + 16, ldi64(edge + EDGE_BOUND * 8))


@jit
def _restore(ctx: int) -> None:
    saved = word(ctx, EDGE_SAVED)
    for place in range(word(ctx, EDGE_COUNT)):
        edge = _edge(ctx, place)
        sti64(edge + EDGE_CHUNK * 8, ldi64(saved + place * 24))
        sti64(edge + EDGE_ROW * 8, ldi64(saved + place * 24 + 8))
        sti64(edge + EDGE_BOUND * 8, ldi64(saved + place * 24 + 16))
        sti64(edge + EDGE_NEXT_TIME * 8, INT64_MIN)


@jit
def _begin_pass(ctx: int, to: int) -> None:
    """Begin a pass, which moves all edges up to the clock of record `to` - 1. The changelog is empty then."""
    sti64(ctx + ADVANCE_TO * 8, to)
    sti64(ctx + ADVANCE_AT * 8, 0)
    sti64(ctx + ENTRY_COUNT * 8, 0)
    sti64(ctx + ADVANCE_RECORD * 8, word(ctx, ADVANCE_DONE))
    for place in range(word(ctx, EDGE_COUNT)):
        number = np.int64(ldi32(word(ctx, EDGE_ORDER) + place * 4))
        sti64(word(ctx, EDGE_START) + number * 8, 0)
        sti64(word(ctx, EDGE_END) + number * 8, 0)


@jit
def _begin(ctx: int, done: int, to: int, limit: int) -> None:
    """Begin an advance over records [done, to) of the batch, which gives `limit` entries at most."""
    reposition(ctx)
    sti64(ctx + FRAMES_STAMP * 8, word(ctx, FRAMES_STAMP) + 1)
    sti64(ctx + ADVANCE_DONE * 8, done)
    sti64(ctx + ENTRY_LIMIT * 8, limit)
    sti64(ctx + WANTS_COUNT * 8, 0)
    _save(ctx)
    _begin_pass(ctx, to)


@jit
def _run_edges(ctx: int) -> Any:
    """Move the edges from place ADVANCE_AT on up to the clock of the pass. Returns DONE, FULL or LOAD."""
    last = ldi64(word(ctx, IN_CLOCK) + (word(ctx, ADVANCE_TO) - 1) * 8)
    starts, ends, edges = word(ctx, EDGE_START), word(ctx, EDGE_END), word(ctx, EDGES)
    for place in range(word(ctx, ADVANCE_AT), word(ctx, EDGE_COUNT)):
        number = np.int64(ldi32(word(ctx, EDGE_ORDER) + place * 4))
        if place != word(ctx, ADVANCE_AT):
            sti64(ctx + ADVANCE_AT * 8, place)
            sti64(ctx + ADVANCE_RECORD * 8, word(ctx, ADVANCE_DONE))
            sti64(starts + number * 8, word(ctx, ENTRY_COUNT))
        edge = edges + number * (EDGE_WORDS * 8)
        delta = ldi64(edge + EDGE_DELTA * 8)
        if last >= INT64_MIN + delta:
            bound = bound_of(last, delta)
            if bound >= ldi64(edge + EDGE_NEXT_TIME * 8):
                status = _cross_chunks(ctx, edge, bound)
                if status != DONE:
                    sti64(ends + number * 8, word(ctx, ENTRY_COUNT))
                    return status
            sti64(edge + EDGE_BOUND * 8, bound)
        sti64(ends + number * 8, word(ctx, ENTRY_COUNT))
    return DONE


@jit
def advance_edges(ctx: int, done: int, to: int, limit: int, resume: int) -> Any:
    """Move all edges over records [done, to) of the batch. The changelog is in the ENTRY_ and EDGE_ arrays.

    Returns DONE if all edges are complete for records before ADVANCE_TO. That is less than `to` if `limit` entries
    were too few. Returns FULL if not even record `done` is complete. The entries are then a part of those that cross
    at this record, edges by ascending delta. Returns LOAD if the frame (NEED_SET, NEED_CHUNK) is lacking. Load it, and
    call again with `resume`.
    """
    if resume == 0:
        _begin(ctx, done, to, limit)
    while True:
        status = _run_edges(ctx)
        span = word(ctx, ADVANCE_TO) - word(ctx, ADVANCE_DONE)
        if status != FULL or span <= 1:
            return status
        _restore(ctx)
        _begin_pass(ctx, word(ctx, ADVANCE_DONE) + span // 2)


@jit
def edges_sealed(ctx: int, rows: int, next_chunk: int) -> Any:
    """Note that the first rows of the open region have become chunk next_chunk - 1.

    Returns 1 if an edge is in that chunk or next to it. Must be called after the chunk is in the index, before its rows
    leave the open region.
    """
    near = 0
    for place in range(word(ctx, EDGE_COUNT)):
        edge = _edge(ctx, place)
        row = ldi64(edge + EDGE_ROW * 8)
        if ldi64(edge + EDGE_CHUNK * 8) == next_chunk - 2:
            near = 1
        if ldi64(edge + EDGE_CHUNK * 8) != next_chunk - 1:
            continue
        if row >= rows:
            sti64(edge + EDGE_CHUNK * 8, next_chunk)
            sti64(edge + EDGE_ROW * 8, row - rows)
        else:
            near = 1
            sti64(edge + EDGE_NEXT_TIME * 8, ldi64(word(ctx, OPEN_TIME) + open_slot(ctx, row) * 8))
    return near
