"""Kernels for the slots of rows, which are cut from segments of equal size, and for the hash table of the rows.

The kernels that load, evict and upgrade rows call these.
"""

from typing import Any

import numpy as np

from railgun.state.rows.access import row_tag
from railgun.state.rows.context import (
    CLASS_BYTES,
    CLASS_HELD,
    CLASS_LIVE,
    CLASS_OPEN,
    CLASS_RECORD_BYTES,
    CLASS_SLOTS,
    FREE_TAGS,
    GROUP_MASK,
    ROW_EPOCHS,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_BASE,
    ROWS_CLASSES,
    ROWS_COUNT,
    ROWS_MASK,
    ROWS_SALT,
    ROWS_SEGMENT_COUNT,
    ROWS_SEGMENTS,
    ROWS_SHIFT,
    ROWS_TABLE,
    SEGMENT_CARVED,
    SEGMENT_CLASS,
    SEGMENT_FREE,
    SEGMENT_LIVE,
    SEGMENT_MARK,
    SEGMENT_RECORD_BYTES,
    UNOWNED,
)
from reservoir.native.jit import jit, ld64, ldi64, st64, sti64

# --- records ------------------------------------------------------------------------------------------


@jit
def class_record(ctx: int, index: int) -> Any:
    """Address of the record of a class."""
    return ldi64(ctx + ROWS_CLASSES) + index * CLASS_RECORD_BYTES


@jit
def segment_record(ctx: int, index: Any) -> Any:
    """Address of the record of a segment."""
    return ldi64(ctx + ROWS_SEGMENTS) + index * SEGMENT_RECORD_BYTES


@jit
def segment_base(ctx: int, index: int) -> Any:
    """Address of the first slot of a segment."""
    return ldi64(ctx + ROWS_BASE) + (index << ldi64(ctx + ROWS_SHIFT))


@jit
def segment_of(ctx: int, row: int) -> Any:
    """Index of the segment that a row lies in."""
    return (row - ldi64(ctx + ROWS_BASE)) >> ldi64(ctx + ROWS_SHIFT)


# --- slots --------------------------------------------------------------------------------------------


@jit
def _has_slot(segment: int, record: int) -> Any:
    return ldi64(segment + SEGMENT_FREE) != 0 or ldi64(segment + SEGMENT_CARVED) < ldi64(record + CLASS_SLOTS)


@jit
def _open_segment(ctx: int, index: int) -> Any:
    """Index of a segment with an empty slot for the class: one of its own, else an unowned one; or -1."""
    record = class_record(ctx, index)
    found = np.int64(-1)
    for at in range(ldi64(ctx + ROWS_SEGMENT_COUNT)):
        segment = segment_record(ctx, at)
        owner = ldi64(segment + SEGMENT_CLASS)
        if owner == index and _has_slot(segment, record):
            return np.int64(at)
        if owner == UNOWNED and found == -1:
            found = np.int64(at)
    if found != -1:
        segment = segment_record(ctx, found)
        sti64(segment + SEGMENT_CLASS, index)
        sti64(segment + SEGMENT_LIVE, np.int64(0))
        sti64(segment + SEGMENT_CARVED, np.int64(0))
        sti64(segment + SEGMENT_FREE, np.int64(0))
        sti64(segment + SEGMENT_MARK, np.int64(0))
        sti64(record + CLASS_HELD, ldi64(record + CLASS_HELD) + 1)
    return found


@jit
def take_slot(ctx: int, index: int) -> Any:
    """Take an empty slot of a class, and count it as a row. Returns its address, or 0. Its content is undefined."""
    record = class_record(ctx, index)
    opened = ldi64(record + CLASS_OPEN)
    if opened == -1 or not _has_slot(segment_record(ctx, opened), record):
        opened = _open_segment(ctx, index)
        sti64(record + CLASS_OPEN, opened)
        if opened == -1:
            return np.int64(0)
    segment = segment_record(ctx, opened)
    slot = ldi64(segment + SEGMENT_FREE)
    if slot != 0:
        sti64(segment + SEGMENT_FREE, ldi64(slot + ROW_EPOCHS))
    else:
        carved = ldi64(segment + SEGMENT_CARVED)
        slot = segment_base(ctx, opened) + carved * ldi64(record + CLASS_BYTES)
        sti64(segment + SEGMENT_CARVED, carved + 1)
    sti64(segment + SEGMENT_LIVE, ldi64(segment + SEGMENT_LIVE) + 1)
    sti64(record + CLASS_LIVE, ldi64(record + CLASS_LIVE) + 1)
    return slot


@jit
def free_slot(ctx: int, slot: int) -> None:
    """Mark a row's slot as empty. The hash table is not changed."""
    segment = segment_record(ctx, segment_of(ctx, slot))
    record = class_record(ctx, ldi64(segment + SEGMENT_CLASS))
    st64(slot + ROW_HI, np.uint64(0))
    st64(slot + ROW_LO, np.uint64(0))
    st64(slot + ROW_TAGS, FREE_TAGS)
    sti64(slot + ROW_EPOCHS, ldi64(segment + SEGMENT_FREE))
    sti64(segment + SEGMENT_FREE, slot)
    sti64(segment + SEGMENT_LIVE, ldi64(segment + SEGMENT_LIVE) - 1)
    sti64(record + CLASS_LIVE, ldi64(record + CLASS_LIVE) - 1)


@jit
def release_segment(ctx: int, at: int) -> None:
    """Take a segment without rows from its class."""
    segment = segment_record(ctx, at)
    record = class_record(ctx, ldi64(segment + SEGMENT_CLASS))
    if ldi64(record + CLASS_OPEN) == at:
        sti64(record + CLASS_OPEN, np.int64(-1))
    sti64(record + CLASS_HELD, ldi64(record + CLASS_HELD) - 1)
    sti64(segment + SEGMENT_CLASS, np.int64(UNOWNED))


# --- the hash table: linear probing, entries of (tag, address) ------------------------------------------


@jit
def row_own_tag(ctx: int, row: int) -> Any:
    """The tag of a row in the hash table."""
    return row_tag(ld64(row + ROW_TAGS) & GROUP_MASK, ld64(row + ROW_LO) ^ ld64(ctx + ROWS_SALT))


@jit
def enter_row(ctx: int, tag: Any, row: int) -> None:
    """Add a row that is not in the hash table, which must have room."""
    table = ldi64(ctx + ROWS_TABLE)
    mask = ld64(ctx + ROWS_MASK)
    at = tag & mask
    while ldi64(table + np.int64(at << np.uint64(4)) + 8) != 0:
        at = (at + np.uint64(1)) & mask
    entry = table + np.int64(at << np.uint64(4))
    st64(entry, tag)
    sti64(entry + 8, row)
    sti64(ctx + ROWS_COUNT, ldi64(ctx + ROWS_COUNT) + 1)


@jit
def _entry_of(ctx: int, tag: Any, row: int) -> Any:
    """Position of the entry of a row that is in the hash table."""
    table = ldi64(ctx + ROWS_TABLE)
    mask = ld64(ctx + ROWS_MASK)
    at = tag & mask
    while ldi64(table + np.int64(at << np.uint64(4)) + 8) != row:
        at = (at + np.uint64(1)) & mask
    return at


@jit
def move_entry(ctx: int, tag: Any, row: int, target: int) -> None:
    """Set the address of a row in the hash table to `target`, after the row has moved."""
    at = _entry_of(ctx, tag, row)
    sti64(ldi64(ctx + ROWS_TABLE) + np.int64(at << np.uint64(4)) + 8, target)


@jit
def forget_row(ctx: int, row: int) -> None:
    """Remove a row from the hash table, and mark its slot as empty."""
    table = ldi64(ctx + ROWS_TABLE)
    mask = ld64(ctx + ROWS_MASK)
    hole = _entry_of(ctx, row_own_tag(ctx, row), row)
    at = hole
    while True:
        at = (at + np.uint64(1)) & mask
        entry = table + np.int64(at << np.uint64(4))
        if ldi64(entry + 8) == 0:
            break
        home = ld64(entry) & mask
        # Move an entry into the hole unless its home lies behind the hole, up to where it is.
        if ((at - home) & mask) >= ((at - hole) & mask):
            target = table + np.int64(hole << np.uint64(4))
            st64(target, ld64(entry))
            sti64(target + 8, ldi64(entry + 8))
            hole = at
    sti64(table + np.int64(hole << np.uint64(4)) + 8, np.int64(0))
    sti64(ctx + ROWS_COUNT, ldi64(ctx + ROWS_COUNT) - 1)
    free_slot(ctx, row)


@jit
def rehash(ctx: int, table: int, entries: int) -> None:
    """Move all entries into a larger table, which must be zeros, and use it as the hash table."""
    old = ldi64(ctx + ROWS_TABLE)
    old_entries = ldi64(ctx + ROWS_MASK) + 1
    sti64(ctx + ROWS_TABLE, table)
    sti64(ctx + ROWS_MASK, entries - 1)
    sti64(ctx + ROWS_COUNT, np.int64(0))
    for at in range(old_entries):
        row = ldi64(old + at * 16 + 8)
        if row != 0:
            enter_row(ctx, ld64(old + at * 16), row)
