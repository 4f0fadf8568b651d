"""Kernels that evict and delete rows, and gather the images of dirty ones (their bytes for the store).

`RowEviction` and `EntityTable` call them. Eviction follows the clock algorithm: a hand goes round the slots of a class,
and spares each row once that was used since its last visit.
"""

from typing import Any

import numpy as np

from railgun.state.keys import ROW_KEY_BYTES
from railgun.state.rows.access import copy_row, layout_of_row, row_group
from railgun.state.rows.context import (
    BUFFER_CAPACITY,
    BUFFER_COUNT,
    BUFFER_LIMIT,
    BUFFER_USED,
    CLASS_BYTES,
    CLASS_HAND_SEGMENT,
    CLASS_HAND_SLOT,
    CLASS_HELD,
    CURSOR_SEGMENT,
    CURSOR_SLOT,
    FLAG_USED,
    GROUP_FREE,
    LOW32,
    ROW_EPOCHS,
    ROW_TAGS,
    ROWS_EPOCH,
    ROWS_OUT,
    ROWS_SEGMENT_COUNT,
    ROWS_STAMP,
    SEGMENT_CARVED,
    SEGMENT_CLASS,
    SEGMENT_MARK,
)
from railgun.state.rows.images import append_image, append_key, mark_stored
from railgun.state.rows.slots import (
    class_record,
    forget_row,
    release_segment,
    segment_base,
    segment_record,
)
from reservoir.native.jit import jit, ld64, ldi64, st64, sti64

# The results of `evict_segment`.
IN_USE = np.int64(-1)
OUT_FULL = np.int64(0)
RELEASED = np.int64(1)


@jit
def gather_image(ctx: int, row: int) -> Any:
    """Put a dirty row's image into the output buffer. False if the buffer must be written first."""
    cells, version = layout_of_row(ctx, row)
    return append_image(ctx, ctx + ROWS_OUT, row, cells, version)


@jit
def _is_current(ctx: int, row: int) -> Any:
    return ld64(row + ROW_TAGS) >> np.uint64(32) == ld64(ctx + ROWS_STAMP)


@jit
def evict_row(ctx: int, row: int) -> Any:
    """Gather a row's image if it is dirty, and evict the row. False, with nothing done, if there is no room for it."""
    if ld64(row + ROW_EPOCHS) & LOW32 != np.uint64(0) and not gather_image(ctx, row):
        return False
    forget_row(ctx, row)
    return True


@jit
def evict_rows(ctx: int, index: int, requested: int) -> Any:
    """Evict up to `requested` rows of a class. Returns (rows evicted, whether images must be written first).

    A row used since the hand's last visit is spared once, and a row of the current stamp always. The hand goes round
    twice at most.
    """
    record = class_record(ctx, index)
    segments = ldi64(ctx + ROWS_SEGMENT_COUNT)
    evicted = np.int64(0)
    left = 2 * ldi64(record + CLASS_HELD) + 1  # segments to enter
    while evicted < requested and left > 0:
        at = ldi64(record + CLASS_HAND_SEGMENT)
        slot = ldi64(record + CLASS_HAND_SLOT)
        segment = segment_record(ctx, at)
        if ldi64(segment + SEGMENT_CLASS) != index or slot >= ldi64(segment + SEGMENT_CARVED):
            if ldi64(segment + SEGMENT_CLASS) == index:
                left -= 1
            sti64(record + CLASS_HAND_SEGMENT, (at + 1) % segments)
            sti64(record + CLASS_HAND_SLOT, np.int64(0))
            if ldi64(record + CLASS_HELD) == 0:
                break
            continue
        row = segment_base(ctx, at) + slot * ldi64(record + CLASS_BYTES)
        if row_group(row) != GROUP_FREE and not _is_current(ctx, row):
            if ld64(row + ROW_TAGS) & FLAG_USED:
                st64(row + ROW_TAGS, ld64(row + ROW_TAGS) & ~FLAG_USED)
            elif evict_row(ctx, row):
                evicted += 1
            else:
                return evicted, True
        sti64(record + CLASS_HAND_SLOT, slot + 1)
    return evicted, False


@jit
def evict_segment(ctx: int, at: int) -> Any:
    """Evict every row of a segment, and take the segment from its class.

    Returns RELEASED; IN_USE if a row is of the current stamp; or OUT_FULL if images must be written first, before it
    is called again.
    """
    segment = segment_record(ctx, at)
    record = class_record(ctx, ldi64(segment + SEGMENT_CLASS))
    base, size = segment_base(ctx, at), ldi64(record + CLASS_BYTES)
    for slot in range(ldi64(segment + SEGMENT_CARVED)):
        row = base + slot * size
        if row_group(row) != GROUP_FREE and _is_current(ctx, row):
            return IN_USE
    for slot in range(ldi64(segment + SEGMENT_CARVED)):
        row = base + slot * size
        if row_group(row) != GROUP_FREE and not evict_row(ctx, row):
            return OUT_FULL
    release_segment(ctx, at)
    return RELEASED


@jit
def gather_pending(ctx: int, cursor: int, epoch: int, limit_bytes: int, slots: int) -> Any:
    """Gather the images of rows that are dirty in `epoch`, and mark the rows as clean.

    When the images are written, they are also kept as undo entries of the current epoch; so the rows count as stored
    in that epoch. Continues from the cursor over at most about `slots` slots and `limit_bytes` of images. Returns True
    if the cursor has reached the end.
    """
    used = np.int64(0)
    while ldi64(cursor + CURSOR_SEGMENT) < ldi64(ctx + ROWS_SEGMENT_COUNT):
        at = ldi64(cursor + CURSOR_SEGMENT)
        slot = ldi64(cursor + CURSOR_SLOT)
        segment = segment_record(ctx, at)
        owner = ldi64(segment + SEGMENT_CLASS)
        if owner < 0 or ldi64(segment + SEGMENT_MARK) < epoch or slot >= ldi64(segment + SEGMENT_CARVED):
            sti64(cursor + CURSOR_SEGMENT, at + 1)
            sti64(cursor + CURSOR_SLOT, np.int64(0))
            continue
        size = ldi64(class_record(ctx, owner) + CLASS_BYTES)
        row = segment_base(ctx, at) + slot * size
        if np.int64(ld64(row + ROW_EPOCHS) & LOW32) == epoch and row_group(row) != GROUP_FREE:
            if used >= limit_bytes or not gather_image(ctx, row):
                return False
            mark_stored(row, ld64(ctx + ROWS_EPOCH))
            used += size
        sti64(cursor + CURSOR_SLOT, slot + 1)
        slots -= 1
        if slots <= 0:
            return False
    return True


@jit
def gather_tombstones(ctx: int, rows: int, start: int, n: int) -> Any:
    """Delete rows, and gather tombstones of the current epoch for those that the store may have.

    rows: address of int64[n]. Returns how many rows are done; fewer than n if images must be written first.
    """
    out = ctx + ROWS_OUT
    for i in range(start, n):
        row = ldi64(rows + 8 * i)
        dirty = np.int64(ld64(row + ROW_EPOCHS) & LOW32)
        if ldi64(out + BUFFER_COUNT) == ldi64(out + BUFFER_CAPACITY) or (
            ldi64(out + BUFFER_USED) + ROW_KEY_BYTES + 8 > ldi64(out + BUFFER_LIMIT)
        ):
            return np.int64(i)
        if dirty != 0 and dirty != ldi64(ctx + ROWS_EPOCH):
            if not copy_row(ctx, row):
                return np.int64(i)
        if ld64(row + ROW_EPOCHS) >> np.uint64(32) != np.uint64(0):
            append_key(ctx, out, row, ldi64(ctx + ROWS_EPOCH))
        forget_row(ctx, row)
    return np.int64(n)
