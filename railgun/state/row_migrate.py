"""Kernels: the resident rows of a group take on a new layout, or go with their group."""

from typing import Any

import numpy as np

from railgun.state.row_access import row_group
from railgun.state.row_context import (
    CLASS_BYTES,
    CURSOR_SEGMENT,
    CURSOR_SLOT,
    GROUP_CELLS,
    GROUP_CLASS,
    ROW_EPOCHS,
    ROW_HEAD_BYTES,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_EPOCH,
    ROWS_SEGMENT_COUNT,
    SEGMENT_CARVED,
    SEGMENT_CLASS,
    SEGMENT_LIVE,
    SEGMENT_MARK,
)
from railgun.state.row_evict import evict_row
from railgun.state.row_load import clear_words, copy_runs, group_record
from railgun.state.row_slots import (
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
from reservoir.compiled import copy_bytes, jit, ld64, ldi64, st64, sti64

# What is to become of the rows of a group, int64 words; a cursor comes first.
(
    MOVE_SEGMENT,
    MOVE_SLOT,
    MOVE_GROUP,
    MOVE_CELLS,  # cell words of the new layout
    MOVE_CLASS,  # its class
    MOVE_RUNS,  # address of int64[][3]: old offset, new offset, words
    MOVE_RUN_COUNT,
    MOVE_SCRATCH,  # address of words for the new layout
) = range(0, 8 * 8, 8)
MOVE_WORDS = 8


@jit
def migrate_rows(ctx: int, move: int) -> Any:
    """Bring all resident rows of a group into a new layout; one that finds no slot is evicted in the old one.

    True when done; False when images must be written first, then call again. The record of the group still
    tells the old layout, and no row is dirty in the old epoch.
    """
    group = ldi64(move + MOVE_GROUP)
    owner = ldi64(group_record(ctx, group) + GROUP_CLASS)
    size = ldi64(class_record(ctx, owner) + CLASS_BYTES)
    for at in range(ldi64(move + CURSOR_SEGMENT), ldi64(ctx + ROWS_SEGMENT_COUNT)):
        segment = segment_record(ctx, at)
        if ldi64(segment + SEGMENT_CLASS) == owner:
            for slot in range(ldi64(move + CURSOR_SLOT), ldi64(segment + SEGMENT_CARVED)):
                row = segment_base(ctx, at) + slot * size
                if row_group(row) == group and not _migrate(ctx, move, owner, row):
                    sti64(move + CURSOR_SLOT, np.int64(slot))
                    return False
            if ldi64(segment + SEGMENT_LIVE) == 0:
                release_segment(ctx, at)
        sti64(move + CURSOR_SEGMENT, np.int64(at + 1))
        sti64(move + CURSOR_SLOT, np.int64(0))
    return True


@jit
def _migrate(ctx: int, move: int, owner: int, row: int) -> Any:
    target_class, cells = ldi64(move + MOVE_CLASS), ldi64(move + MOVE_CELLS)
    runs, run_count = ldi64(move + MOVE_RUNS), ldi64(move + MOVE_RUN_COUNT)
    if target_class == owner:
        scratch = ldi64(move + MOVE_SCRATCH)
        clear_words(scratch, cells)
        copy_runs(row + ROW_HEAD_BYTES, scratch, runs, run_count)
        copy_bytes(row + ROW_HEAD_BYTES, scratch, 8 * cells)
        return True
    target = take_slot(ctx, target_class)
    if target == 0:
        return evict_row(ctx, row)
    for word in (ROW_HI, ROW_LO, ROW_EPOCHS, ROW_TAGS):
        st64(target + word, ld64(row + word))
    clear_words(target + ROW_HEAD_BYTES, cells)
    copy_runs(row + ROW_HEAD_BYTES, target + ROW_HEAD_BYTES, runs, run_count)
    sti64(segment_record(ctx, segment_of(ctx, target)) + SEGMENT_MARK, ldi64(ctx + ROWS_EPOCH))
    move_entry(ctx, row_own_tag(ctx, row), row, target)
    free_slot(ctx, row)
    return True


@jit
def drop_rows(ctx: int, group: int) -> None:
    """Forget all resident rows of a group, with whatever they hold."""
    record = group_record(ctx, group)
    owner = ldi64(record + GROUP_CLASS)
    size = ldi64(class_record(ctx, owner) + CLASS_BYTES)
    for at in range(ldi64(ctx + ROWS_SEGMENT_COUNT)):
        segment = segment_record(ctx, at)
        if ldi64(segment + SEGMENT_CLASS) != owner:
            continue
        for slot in range(ldi64(segment + SEGMENT_CARVED)):
            row = segment_base(ctx, at) + slot * size
            if row_group(row) == group:
                forget_row(ctx, row)
        if ldi64(segment + SEGMENT_LIVE) == 0:
            release_segment(ctx, at)
    sti64(record + GROUP_CELLS, np.int64(0))
