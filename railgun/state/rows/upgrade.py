"""Kernels that upgrade an outdated row to its group's newest layout, and that take all rows of a group out of memory.

A row is upgraded only when it is next needed. A new layout itself changes no row, because there may be hundreds of
thousands, of which few are needed at a time.
"""

from typing import Any

import numpy as np

from railgun.state.rows.access import (
    copy_row,
    group_record,
    older_layout,
    outdated_version,
    row_group,
)
from railgun.state.rows.context import (
    CLASS_BYTES,
    CURSOR_SEGMENT,
    CURSOR_SLOT,
    FLAG_USED,
    GROUP_CELLS,
    GROUP_CLASS,
    GROUP_NAME,
    LOW32,
    MAP_RUN_COUNT,
    MAP_RUNS,
    ROW_EPOCHS,
    ROW_HEAD_BYTES,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_EPOCH,
    ROWS_SEGMENT_COUNT,
    ROWS_STAMP,
    RUN_BYTES,
    SEGMENT_CARVED,
    SEGMENT_CLASS,
    SEGMENT_LIVE,
    SEGMENT_MARK,
)
from railgun.state.rows.evict import OUT_FULL, evict_row
from railgun.state.rows.slots import (
    class_record,
    forget_row,
    free_slot,
    move_entry,
    release_segment,
    row_own_tag,
    segment_base,
    segment_of,
    segment_record,
    take_slot,
)
from reservoir.native.jit import jit, ld64, ldi64, st64, sti64

# The results of `upgrade_row`.
UPGRADED = np.int64(0)
NO_SLOT = np.int64(1)
COPIES_FULL = np.int64(2)
RUNS_UNKNOWN = np.int64(3)
# The results of `leave_rows`, beside OUT_FULL.
LEFT = np.int64(1)
MORE = np.int64(2)


@jit
def upgrade_row(ctx: int, row: int) -> Any:
    """Give an outdated row the newest layout, and stamp it. Returns UPGRADED, or a status with nothing changed.

    The row keeps its slot if the slot has the right width and its cells stay in front; otherwise it gets another.
    NO_SLOT: no slot is free. COPIES_FULL: there is no room for its image of the old epoch, in the old layout.
    RUNS_UNKNOWN: `RowGroups.work_out` has to be called for its version.
    """
    record = group_record(ctx, row_group(row))
    older = older_layout(record, outdated_version(record, row))
    if ldi64(older + MAP_RUN_COUNT) < 0:
        return RUNS_UNKNOWN
    dirty, epoch = ld64(row + ROW_EPOCHS) & LOW32, ld64(ctx + ROWS_EPOCH)
    if dirty != np.uint64(0) and dirty != epoch and not copy_row(ctx, row):
        return COPIES_FULL
    tags = ld64(record + GROUP_NAME) | FLAG_USED | (ld64(ctx + ROWS_STAMP) << np.uint64(32))
    runs, run_count = ldi64(older + MAP_RUNS), ldi64(older + MAP_RUN_COUNT)
    if (
        ldi64(segment_record(ctx, segment_of(ctx, row)) + SEGMENT_CLASS) == ldi64(record + GROUP_CLASS)
        and run_count == 1
        and ldi64(runs) == 0
        and ldi64(runs + 8) == 0
    ):
        kept = ldi64(runs + 16)
        clear_words(row + ROW_HEAD_BYTES + 8 * kept, ldi64(record + GROUP_CELLS) - kept)
        st64(row + ROW_TAGS, tags)
        return UPGRADED
    target = take_slot(ctx, ldi64(record + GROUP_CLASS))
    if target == 0:
        return NO_SLOT
    for word in (ROW_HI, ROW_LO, ROW_EPOCHS):
        st64(target + word, ld64(row + word))
    st64(target + ROW_TAGS, tags)
    clear_words(target + ROW_HEAD_BYTES, ldi64(record + GROUP_CELLS))
    copy_runs(row + ROW_HEAD_BYTES, target + ROW_HEAD_BYTES, runs, run_count)
    if ld64(row + ROW_EPOCHS) & LOW32 != np.uint64(0):
        sti64(segment_record(ctx, segment_of(ctx, target)) + SEGMENT_MARK, np.int64(epoch))
    move_entry(ctx, row_own_tag(ctx, row), row, target)
    left = segment_of(ctx, row)
    free_slot(ctx, row)
    if ldi64(segment_record(ctx, left) + SEGMENT_LIVE) == 0:
        release_segment(ctx, left)
    return UPGRADED


@jit
def leave_rows(ctx: int, cursor: int, group: int, dropped: int, slots: int) -> Any:
    """Take resident rows of a group out of memory. Looks at `slots` slots from a cursor on.

    dropped: the epoch in which the group was dropped; images of this and later epochs are not needed. 0 if it was not
        dropped.
    Returns LEFT if all are done, MORE if not, and OUT_FULL if images must be written before it is called again.
    """
    for at in range(ldi64(cursor + CURSOR_SEGMENT), ldi64(ctx + ROWS_SEGMENT_COUNT)):
        segment = segment_record(ctx, at)
        owner = ldi64(segment + SEGMENT_CLASS)
        if owner >= 0:
            size = ldi64(class_record(ctx, owner) + CLASS_BYTES)
            for slot in range(ldi64(cursor + CURSOR_SLOT), ldi64(segment + SEGMENT_CARVED)):
                sti64(cursor + CURSOR_SLOT, np.int64(slot))
                if slots <= 0:
                    return MORE
                slots -= 1
                row = segment_base(ctx, at) + slot * size
                if row_group(row) != group:
                    continue
                dirty = np.int64(ld64(row + ROW_EPOCHS) & LOW32)
                if dropped > 0 and (dirty == 0 or dirty >= dropped):
                    forget_row(ctx, row)
                elif not evict_row(ctx, row):
                    return OUT_FULL
            if ldi64(segment + SEGMENT_LIVE) == 0:
                release_segment(ctx, at)
        sti64(cursor + CURSOR_SEGMENT, np.int64(at + 1))
        sti64(cursor + CURSOR_SLOT, np.int64(0))
    return LEFT


@jit
def clear_words(target: int, n: int) -> None:
    """Set n words to zero."""
    for i in range(n):
        st64(target + 8 * i, np.uint64(0))


@jit
def copy_runs(source: int, target: int, runs: int, run_count: int) -> None:
    """Copy cells of one layout to their places in another."""
    for i in range(run_count):
        run = runs + i * RUN_BYTES
        old, new = source + 8 * ldi64(run), target + 8 * ldi64(run + 8)
        for j in range(ldi64(run + 16)):
            st64(new + 8 * j, ld64(old + 8 * j))
