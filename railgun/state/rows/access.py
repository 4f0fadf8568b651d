"""Kernels of the hot path of the entity table: find a row, check a remembered address, stamp a row, mark it dirty.

The interpreter's `resolve` calls them for each event, and so do the other kernels of rows. A *stamp* is the number of a
batch; a row carries that of its last use. The address of a row stays readable as long as the table lives. But the row
may have moved, been evicted or deleted, or have an outdated layout: `row_is` tells. Between `load` and the next stamp,
no row of the current stamp goes away.
"""

from typing import Any

import numpy as np

from railgun.state.rows.context import (
    FLAG_USED,
    GROUP_BYTES,
    GROUP_CELLS,
    GROUP_MAP_COUNT,
    GROUP_MAPS,
    GROUP_MASK,
    GROUP_NAME,
    GROUP_VERSION,
    LAYOUT_SHIFT,
    LAYOUTS,
    LOW32,
    MAP_BYTES,
    MAP_CELLS,
    MAP_VERSION,
    NAME_MASK,
    ROW_EPOCHS,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_BASE,
    ROWS_COPY,
    ROWS_EPOCH,
    ROWS_GROUPS,
    ROWS_MASK,
    ROWS_SALT,
    ROWS_SEGMENTS,
    ROWS_SHIFT,
    ROWS_STAMP,
    ROWS_TABLE,
    SEGMENT_MARK,
    SEGMENT_RECORD_BYTES,
)
from railgun.state.rows.images import append_image, mark_stored
from railgun.state.status import DONE, ROWS_DRAIN
from reservoir.native.jit import jit, ld64, ldi64, prefetch, st64, sti64

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@jit
def row_tag(group: Any, lo: Any) -> Any:
    """The tag of a row, the word that stands for it in the hash table: its hash, mixed with its group."""
    return lo + np.uint64(group) * _SPREAD


@jit
def prefetch_entry(ctx: int, group: Any, lo: Any) -> Any:
    """Prefetch the hash table's entry for an entity, for a `find_row` soon. Returns the entry's address."""
    entry = ldi64(ctx + ROWS_TABLE) + np.int64((row_tag(group, lo) & ld64(ctx + ROWS_MASK)) << np.uint64(4))
    prefetch(entry)
    return entry


@jit
def prefetch_row(entry: int) -> None:
    """Prefetch the row to which an entry of the hash table leads."""
    prefetch(ldi64(entry + 8))


@jit
def group_record(ctx: int, group: Any) -> Any:
    """Address of the record of a group; the group's number must be below the table's count."""
    return ldi64(ctx + ROWS_GROUPS) + group * GROUP_BYTES


@jit
def find_row(ctx: int, group: Any, hi: Any, lo: Any) -> Any:
    """Address of the resident row of an entity (hi, lo: uint64), or 0. An outdated row is not found."""
    return _find(ctx, group, ld64(group_record(ctx, group) + GROUP_NAME), NAME_MASK, hi, lo)


@jit
def find_any_row(ctx: int, group: Any, hi: Any, lo: Any) -> Any:
    """Address of the resident row of an entity, outdated or not, or 0. The group may have been dropped."""
    return _find(ctx, group, np.uint64(group), GROUP_MASK, hi, lo)


@jit
def _find(ctx: int, group: Any, name: Any, mask_of_name: Any, hi: Any, lo: Any) -> Any:
    table = ldi64(ctx + ROWS_TABLE)
    mask = ld64(ctx + ROWS_MASK)
    tag = row_tag(group, lo)
    at = tag & mask
    while True:
        entry = table + np.int64(at << np.uint64(4))
        row = ldi64(entry + 8)
        if row == 0:
            return np.int64(0)
        if ld64(entry) == tag and _is_named(ctx, row, name, mask_of_name, hi, lo):
            return row
        at = (at + np.uint64(1)) & mask


@jit
def row_is(ctx: int, row: int, group: Any, hi: Any, lo: Any) -> Any:
    """Whether an address is still that of an entity's row, in the newest layout. row: once a row's address, not 0."""
    return _is_named(ctx, row, ld64(group_record(ctx, group) + GROUP_NAME), NAME_MASK, hi, lo)


@jit
def _is_named(ctx: int, row: int, name: Any, mask_of_name: Any, hi: Any, lo: Any) -> Any:
    return (
        ld64(row + ROW_HI) == hi
        and ld64(row + ROW_LO) == lo ^ ld64(ctx + ROWS_SALT)
        and (ld64(row + ROW_TAGS) & mask_of_name) == name
    )


@jit
def is_outdated(ctx: int, row: int) -> Any:
    """Whether a row has an older layout than the newest of its group."""
    return ld64(row + ROW_TAGS) & NAME_MASK != ld64(group_record(ctx, row_group(row)) + GROUP_NAME)


@jit
def layout_of_row(ctx: int, row: int) -> Any:
    """(cell words, version) of the layout that a row has."""
    record = group_record(ctx, row_group(row))
    newest = ldi64(record + GROUP_VERSION)
    if ld64(row + ROW_TAGS) & NAME_MASK == ld64(record + GROUP_NAME):
        return ldi64(record + GROUP_CELLS), newest
    older = older_layout(record, outdated_version(record, row))
    return ldi64(older + MAP_CELLS), ldi64(older + MAP_VERSION)


@jit
def outdated_version(record: int, row: int) -> Any:
    """The version of the layout of an outdated row, which is less than LAYOUTS behind its group's newest."""
    newest = ldi64(record + GROUP_VERSION)
    version = np.int64(ld64(row + ROW_TAGS) >> np.uint64(LAYOUT_SHIFT))
    return newest - ((newest - version) & np.int64(LAYOUTS - 1))


@jit
def older_layout(record: int, version: int) -> Any:
    """Address of the record of an older version, or 0. Uses binary search."""
    low, high = np.int64(0), ldi64(record + GROUP_MAP_COUNT)
    while low < high:
        middle = (low + high) >> 1
        older = ldi64(record + GROUP_MAPS) + middle * MAP_BYTES
        if ldi64(older + MAP_VERSION) == version:
            return older
        if ldi64(older + MAP_VERSION) < version:
            low = middle + 1
        else:
            high = middle
    return np.int64(0)


@jit
def row_hi(row: int) -> Any:
    """Upper half of the hash of a row's entity, uint64."""
    return ld64(row + ROW_HI)


@jit
def row_lo(ctx: int, row: int) -> Any:
    """Lower half of the hash of a row's entity, uint64."""
    return ld64(row + ROW_LO) ^ ld64(ctx + ROWS_SALT)


@jit
def row_group(row: int) -> Any:
    """Group index of a row; 65535 for an empty slot."""
    return np.int64(ld64(row + ROW_TAGS) & GROUP_MASK)


@jit
def read_touch(ctx: int, row: int) -> None:
    """Stamp a row, so that it stays in memory until the next stamp."""
    stamp = ld64(ctx + ROWS_STAMP)
    tags = ld64(row + ROW_TAGS)
    if tags >> np.uint64(32) != stamp:
        st64(row + ROW_TAGS, (tags & NAME_MASK) | FLAG_USED | (stamp << np.uint64(32)))


@jit
def touch_row(ctx: int, row: int) -> Any:
    """Stamp a row and mark it dirty in the current epoch. To be called before its cells are changed.

    Returns DONE. Returns ROWS_DRAIN, having changed nothing, if its image of the old epoch has to be copied and the
    copy buffer is full; drain it and call again.
    """
    epoch = ld64(ctx + ROWS_EPOCH)
    epochs = ld64(row + ROW_EPOCHS)
    if epochs & LOW32 != epoch:
        if epochs & LOW32 == np.uint64(0):
            mark_dirty(ctx, row)
        elif not copy_row(ctx, row):
            return ROWS_DRAIN
    read_touch(ctx, row)
    return DONE


@jit
def mark_dirty(ctx: int, row: int) -> None:
    """Mark a clean row as dirty in the current epoch."""
    epoch = ld64(ctx + ROWS_EPOCH)
    st64(row + ROW_EPOCHS, ld64(row + ROW_EPOCHS) | epoch)
    segment = (row - ldi64(ctx + ROWS_BASE)) >> ldi64(ctx + ROWS_SHIFT)
    sti64(ldi64(ctx + ROWS_SEGMENTS) + segment * SEGMENT_RECORD_BYTES + SEGMENT_MARK, np.int64(epoch))


@jit
def copy_row(ctx: int, row: int) -> bool:
    """Put the image of a row that is dirty in an older epoch into the copy buffer. False if there is no room.

    When the image is written, it is also kept as undo entry of the current epoch; so the row counts as stored in that
    epoch. The row is then dirty in the current epoch. It must not be clean, because a clean row may be evicted
    without being written, and the store does not have this one yet.
    """
    cells, version = layout_of_row(ctx, row)
    if not append_image(ctx, ctx + ROWS_COPY, row, cells, version):
        return False
    mark_stored(row, ld64(ctx + ROWS_EPOCH))
    mark_dirty(ctx, row)
    return True
