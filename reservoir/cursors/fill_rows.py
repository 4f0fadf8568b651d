"""The kernel of a fill, which reads stored rows for newer metrics.

It lists the rows after a position, in (time, seq) order, in chunks or the open region.
"""

from typing import Any

import numpy as np

from reservoir.cursors.edges import find_frame, index_word, open_rows, open_slot, use_frame, want_behind, word
from reservoir.frames import FRAME_ROWS, FRAME_SEQ, FRAME_TIME, frame_at
from reservoir.layout import (
    DONE,
    ENTRY_AT,
    ENTRY_COUNT,
    ENTRY_FRAME,
    ENTRY_ROW,
    FRAMES,
    FRAMES_STAMP,
    FULL,
    INDEX_FIRST_TIME,
    INDEX_LAST_SEQ,
    INDEX_LAST_TIME,
    INDEX_NEXT,
    LOAD,
    NEED_CHUNK,
    NEED_SET,
    OPEN_SEQ,
    OPEN_TIME,
    WANTS_COUNT,
)
from reservoir.native.jit import jit, ldi64, sti32, sti64

FILL_WORDS = 4
(
    FILL_SET,  # column set with which its frames are decoded
    FILL_CHUNK,  # the first chunk that may have rows not yet given
    FILL_TIME,  # (time, seq) of the last row given
    FILL_SEQ,
) = range(4)


@jit
def _row_at(ctx: int, frame: int, row: int) -> Any:
    """(time, seq, row in the frame) of the row at a place in the order. Frame 0 is the open region."""
    if frame == 0:
        slot = open_slot(ctx, row)
        return ldi64(word(ctx, OPEN_TIME) + slot * 8), ldi64(word(ctx, OPEN_SEQ) + slot * 8), slot
    head = frame_at(word(ctx, FRAMES), frame)
    time, seq = ldi64(ldi64(head + FRAME_TIME * 8) + row * 8), ldi64(ldi64(head + FRAME_SEQ * 8) + row * 8)
    return time, seq, np.int64(row)


@jit
def _behind(ctx: int, frame: int, rows: int, time: int, seq: int) -> Any:
    """First place in the order whose (time, seq) is greater than this one."""
    low, high = 0, rows
    while low < high:
        middle = (low + high) >> 1
        row_time, row_seq, _ = _row_at(ctx, frame, middle)
        if row_time < time or (row_time == time and row_seq <= seq):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _give(ctx: int, fill: int, frame: int, rows: int, limit: int, up_to: int) -> Any:
    """List rows of one frame. DONE if all its rows up to `up_to` are given, FULL if `limit` was reached."""
    place = _behind(ctx, frame, rows, ldi64(fill + FILL_TIME * 8), ldi64(fill + FILL_SEQ * 8))
    count = word(ctx, ENTRY_COUNT)
    while place < rows:
        time, seq, row = _row_at(ctx, frame, place)
        if time > up_to:
            break
        if count >= limit:
            return FULL
        sti32(word(ctx, ENTRY_AT) + count * 4, np.int32(0))
        sti32(word(ctx, ENTRY_FRAME) + count * 4, np.int32(frame))
        sti32(word(ctx, ENTRY_ROW) + count * 4, np.int32(row))
        sti64(fill + FILL_TIME * 8, time)
        sti64(fill + FILL_SEQ * 8, seq)
        place += 1
        count += 1
        sti64(ctx + ENTRY_COUNT * 8, count)
    return DONE


@jit
def fill_rows(ctx: int, fill: int, limit: int, up_to: int, resume: int) -> Any:
    """List at most `limit` rows after the fill's position with time <= up_to, as entries from 0 on.

    Returns DONE if there are no more, FULL if there may be, and LOAD if a frame is lacking. After LOAD it is called
    again with `resume`.
    """
    if resume == 0:
        sti64(ctx + ENTRY_COUNT * 8, 0)
        sti64(ctx + WANTS_COUNT * 8, 0)
        sti64(ctx + FRAMES_STAMP * 8, word(ctx, FRAMES_STAMP) + 1)
    column_set = ldi64(fill + FILL_SET * 8)
    while True:
        chunk = ldi64(fill + FILL_CHUNK * 8)
        if chunk >= word(ctx, INDEX_NEXT):
            return _give(ctx, fill, 0, open_rows(ctx), limit, up_to)
        time, seq = ldi64(fill + FILL_TIME * 8), ldi64(fill + FILL_SEQ * 8)
        last_time, last_seq = index_word(ctx, INDEX_LAST_TIME, chunk), index_word(ctx, INDEX_LAST_SEQ, chunk)
        if last_time < time or (last_time == time and last_seq <= seq):
            sti64(fill + FILL_CHUNK * 8, chunk + 1)
            continue
        if index_word(ctx, INDEX_FIRST_TIME, chunk) > up_to:
            return DONE
        if word(ctx, ENTRY_COUNT) >= limit:
            return FULL
        frame = find_frame(ctx, column_set, chunk, 0)
        if frame == 0:
            sti64(ctx + NEED_SET * 8, column_set)
            sti64(ctx + NEED_CHUNK * 8, chunk)
            return LOAD
        use_frame(ctx, frame)
        want_behind(ctx, column_set, chunk)
        rows = ldi64(frame_at(word(ctx, FRAMES), frame) + FRAME_ROWS * 8)
        if _give(ctx, fill, frame, rows, limit, up_to) == FULL:
            return FULL
        if index_word(ctx, INDEX_LAST_TIME, chunk) > up_to:
            return DONE
        sti64(fill + FILL_CHUNK * 8, chunk + 1)
