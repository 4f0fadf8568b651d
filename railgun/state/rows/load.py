"""Kernels that load missing rows, for `LoadJob`: they give them slots, write their keys for the store, and unpack its
values.
"""

from typing import Any

import numpy as np

from railgun.state.keys import ROW_KEY_BYTES
from railgun.state.rows.access import (
    find_any_row,
    group_record,
    is_outdated,
    older_layout,
    outdated_version,
    read_touch,
    row_tag,
)
from railgun.state.rows.context import (
    CLASS_LOADED,
    FLAG_USED,
    GROUP_CELLS,
    GROUP_CLASS,
    GROUP_MASK,
    GROUP_NAME,
    GROUP_VERSION,
    MAP_CELLS,
    MAP_RUN_COUNT,
    MAP_RUNS,
    ROW_EPOCHS,
    ROW_HEAD_BYTES,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_COUNT,
    ROWS_EPOCH,
    ROWS_GROUP_COUNT,
    ROWS_MASK,
    ROWS_SALT,
    ROWS_STAMP,
)
from railgun.state.rows.images import VERSION_BYTES, body_version, read_body, write_row_key
from railgun.state.rows.slots import class_record, enter_row, forget_row, take_slot
from railgun.state.rows.upgrade import NO_SLOT, UPGRADED, clear_words, copy_runs, upgrade_row
from railgun.state.values import HEADER_BYTES, PACKED_FORMAT, TOMBSTONE_FORMAT, UNDO_ENTRY
from reservoir.native.jit import copy_bytes, jit, ld8, ld32, ld64, ldi64, st8, st32, st64, sti64

# The results of `place_missing` and `fill_rows`. `place_missing` also returns those of `upgrade_row`.
PLACED = UPGRADED
TABLE_FULL = np.int64(8)
NO_GROUP = np.int64(9)
FILLED = np.int64(0)
NO_MAP = np.int64(1)
BAD_VALUE = np.int64(2)

# The words (int64) of a job, which is the state of one load.
(
    JOB_MISSING,  # address of uint64[n][3]: group, hi, lo
    JOB_N,
    JOB_AT,  # index of the next entry
    JOB_ROWS,  # address of int64[n]: rows placed
    JOB_KEYS,  # address of their keys
    JOB_COUNT,  # rows placed
    JOB_VALUES,  # address of their values, end to end
    JOB_LENGTHS,  # address of int64[n]: bytes of each value; -1 where there is none
    JOB_OFFSET,  # offset of the next value
    JOB_FILLED,  # rows filled
    JOB_SCRATCH,  # address of words for the widest old layout
    JOB_KEPT,  # address where undo entries of all values go; 0: none are wanted
    JOB_KEPT_BYTES,  # bytes written there
    JOB_OUTDATED_VERSION,  # version of the layout of a row whose runs are unknown
) = range(0, 14 * 8, 8)
JOB_WORDS = 14

UNDO_ENTRY_BYTES = UNDO_ENTRY.size
KEPT_HEAD_BYTES = UNDO_ENTRY_BYTES + ROW_KEY_BYTES

_FORMAT_AT = HEADER_BYTES - 1


@jit
def place_missing(ctx: int, job: int) -> Any:
    """Give each missing entity an empty row of the current stamp, and write its key. Can be called again to continue.

    The row of an entity that is resident (or named twice) is only stamped. An outdated row is upgraded first.
    """
    n = ldi64(job + JOB_N)
    stamp = ld64(ctx + ROWS_STAMP)
    while ldi64(job + JOB_AT) < n:
        entry = ldi64(job + JOB_MISSING) + ldi64(job + JOB_AT) * 24
        group, hi, lo = ldi64(entry), ld64(entry + 8), ld64(entry + 16)
        if group < 0 or group >= ldi64(ctx + ROWS_GROUP_COUNT):
            return NO_GROUP
        record = group_record(ctx, group)
        if ldi64(record + GROUP_CELLS) == 0:
            return NO_GROUP
        row = find_any_row(ctx, group, hi, lo)
        if row != 0:
            if is_outdated(ctx, row):
                status = upgrade_row(ctx, row)
                if status != UPGRADED:
                    sti64(job + JOB_OUTDATED_VERSION, outdated_version(record, row))
                    return status
            else:
                read_touch(ctx, row)
        else:
            if 8 * ldi64(ctx + ROWS_COUNT) >= 5 * ldi64(ctx + ROWS_MASK):
                return TABLE_FULL
            index = ldi64(record + GROUP_CLASS)
            row = take_slot(ctx, index)
            if row == 0:
                return NO_SLOT
            owner = class_record(ctx, index)
            sti64(owner + CLASS_LOADED, ldi64(owner + CLASS_LOADED) + 1)
            st64(row + ROW_HI, hi)
            st64(row + ROW_LO, lo ^ ld64(ctx + ROWS_SALT))
            st64(row + ROW_EPOCHS, np.uint64(0))
            st64(row + ROW_TAGS, ld64(record + GROUP_NAME) | FLAG_USED | (stamp << np.uint64(32)))
            enter_row(ctx, row_tag(group, lo), row)
            count = ldi64(job + JOB_COUNT)
            sti64(ldi64(job + JOB_ROWS) + 8 * count, row)
            write_row_key(ldi64(job + JOB_KEYS) + count * ROW_KEY_BYTES, group, hi, lo)
            sti64(job + JOB_COUNT, count + 1)
        sti64(job + JOB_AT, ldi64(job + JOB_AT) + 1)
    return PLACED


@jit
def undo_load(ctx: int, job: int) -> None:
    """Remove the rows that a load placed and could not fill."""
    for i in range(ldi64(job + JOB_COUNT)):
        forget_row(ctx, ldi64(ldi64(job + JOB_ROWS) + 8 * i))


@jit
def fill_rows(ctx: int, job: int) -> Any:
    """Unpack the values into the rows, in the newest layout. Can be called again to continue at JOB_FILLED.

    Returns PLACED, or NO_MAP or BAD_VALUE for the row at JOB_FILLED.
    """
    count = ldi64(job + JOB_COUNT)
    while ldi64(job + JOB_FILLED) < count:
        i = ldi64(job + JOB_FILLED)
        row = ldi64(ldi64(job + JOB_ROWS) + 8 * i)
        length = ldi64(ldi64(job + JOB_LENGTHS) + 8 * i)
        value = ldi64(job + JOB_VALUES) + ldi64(job + JOB_OFFSET)
        status = _fill_row(ctx, row, value, length, ldi64(job + JOB_SCRATCH))
        if status != FILLED:
            return status
        if (
            ldi64(job + JOB_KEPT) != 0
            and length > 0
            and ld8(value + _FORMAT_AT) != np.uint8(TOMBSTONE_FORMAT)
        ):
            _keep(ctx, job, row, ldi64(job + JOB_KEYS) + i * ROW_KEY_BYTES, value, length)
        sti64(job + JOB_OFFSET, ldi64(job + JOB_OFFSET) + max(length, 0))
        sti64(job + JOB_FILLED, i + 1)
    return FILLED


@jit
def _keep(ctx: int, job: int, row: int, key: int, value: int, length: int) -> None:
    """Make the undo entry of a row for the current epoch, so that the row counts as stored in that epoch."""
    epoch = ld64(ctx + ROWS_EPOCH)
    if ld64(row + ROW_EPOCHS) >> np.uint64(32) == epoch:
        return
    entry = ldi64(job + JOB_KEPT) + ldi64(job + JOB_KEPT_BYTES)
    st8(entry, np.uint8(ROW_KEY_BYTES))
    st8(entry + 1, np.uint8(0))
    st32(entry + 2, np.uint32(length))
    copy_bytes(entry + UNDO_ENTRY_BYTES, key, ROW_KEY_BYTES)
    copy_bytes(entry + KEPT_HEAD_BYTES, value, length)
    sti64(job + JOB_KEPT_BYTES, ldi64(job + JOB_KEPT_BYTES) + KEPT_HEAD_BYTES + length)
    st64(row + ROW_EPOCHS, epoch << np.uint64(32))


@jit
def _fill_row(ctx: int, row: int, value: int, length: int, scratch: int) -> Any:
    record = group_record(ctx, np.int64(ld64(row + ROW_TAGS) & GROUP_MASK))
    cells = ldi64(record + GROUP_CELLS)
    target = row + ROW_HEAD_BYTES
    if length >= 0 and (length < HEADER_BYTES or ld8(value + _FORMAT_AT) > np.uint8(PACKED_FORMAT)):
        return BAD_VALUE
    st64(row + ROW_EPOCHS, np.uint64(ld32(value)) << np.uint64(32) if length >= 0 else np.uint64(0))
    if length < 0 or ld8(value + _FORMAT_AT) == np.uint8(TOMBSTONE_FORMAT):
        clear_words(target, cells)
        return FILLED
    if length < HEADER_BYTES + VERSION_BYTES:
        return BAD_VALUE
    body, end = value + HEADER_BYTES, value + length
    version, form = body_version(body), ld8(value + _FORMAT_AT)
    if version == ldi64(record + GROUP_VERSION):
        return FILLED if read_body(body, end, form, target, cells) else BAD_VALUE
    older = older_layout(record, version)
    if older == 0:
        return BAD_VALUE
    if ldi64(older + MAP_RUN_COUNT) < 0:
        return NO_MAP
    if not read_body(body, end, form, scratch, ldi64(older + MAP_CELLS)):
        return BAD_VALUE
    clear_words(target, cells)
    copy_runs(scratch, target, ldi64(older + MAP_RUNS), ldi64(older + MAP_RUN_COUNT))
    return FILLED
