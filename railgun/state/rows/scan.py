"""Kernels over many rows, resident or unpacked into scratch memory: gather them, copy them, find the empty ones.

`RowReader`, the sweep and the entity table call them.
"""

from typing import Any

import numpy as np

from railgun.state.keys import ROW_KEY_BYTES
from railgun.state.rows.access import (
    find_any_row,
    find_row,
    group_record,
    is_outdated,
    older_layout,
    outdated_version,
    row_group,
    row_hi,
    row_lo,
)
from railgun.state.rows.context import (
    CLASS_BYTES,
    CURSOR_SEGMENT,
    CURSOR_SLOT,
    GROUP_FREE,
    GROUP_NAME,
    MAP_RUN_COUNT,
    MAP_RUNS,
    ROW_HEAD_BYTES,
    ROW_HI,
    ROW_LO,
    ROW_TAGS,
    ROWS_SALT,
    ROWS_SEGMENT_COUNT,
    SEGMENT_CARVED,
    SEGMENT_CLASS,
)
from railgun.state.rows.images import swap64
from railgun.state.rows.slots import class_record, segment_base, segment_record
from railgun.state.rows.upgrade import clear_words, copy_runs
from reservoir.native.jit import jit, ld8, ld64, ldi64, st8, st64, sti64

ANY_GROUP = -1
OUTDATED = -2  # in place of a group: the outdated rows of any group

# When a row of a group counts as empty; one record per group index.
(
    RULE_ZEROS,  # address of int64[]: byte offsets from the row of words that must be zero
    RULE_ZERO_COUNT,  # -1: there is no rule, no row is empty
    RULE_BUCKETS,  # address of int64[]: byte offsets of bucket numbers
    RULE_BUCKET_COUNT,
    RULE_BOUNDS,  # address of int64[]: buckets below this are past
) = range(0, 5 * 8, 8)
RULE_BYTES = 5 * 8


@jit
def gather_rows(ctx: int, cursor: int, group: int, slots: int, out: int, capacity: int) -> Any:
    """Write to `out` (int64[capacity]) the addresses of resident rows of a group from a cursor on.

    group: a number, ANY_GROUP, or OUTDATED. Looks at about `slots` slots. Returns how many were found. The cursor is at
    the end if none are left.
    """
    found = np.int64(0)
    while ldi64(cursor + CURSOR_SEGMENT) < ldi64(ctx + ROWS_SEGMENT_COUNT):
        at, slot = ldi64(cursor + CURSOR_SEGMENT), ldi64(cursor + CURSOR_SLOT)
        segment = segment_record(ctx, at)
        owner = ldi64(segment + SEGMENT_CLASS)
        if owner < 0 or slot >= ldi64(segment + SEGMENT_CARVED):
            sti64(cursor + CURSOR_SEGMENT, at + 1)
            sti64(cursor + CURSOR_SLOT, np.int64(0))
            continue
        if found == capacity or slots <= 0:
            return found
        row = segment_base(ctx, at) + slot * ldi64(class_record(ctx, owner) + CLASS_BYTES)
        own = row_group(row)
        if own == group or (
            own != GROUP_FREE and (group == ANY_GROUP or (group == OUTDATED and is_outdated(ctx, row)))
        ):
            sti64(out + 8 * found, row)
            found += 1
        sti64(cursor + CURSOR_SLOT, slot + 1)
        slots -= 1
    return found


@jit
def copy_rows(
    ctx: int, rows: int, first: int, n: int, cells: int, ids: int, content: int, unknown: int
) -> Any:
    """Copy the hashes and the cells of n rows of one group, from `first` on.

    ids: uint64[n, 2] (hi, lo). content: uint64[n, cells], in the newest layout.
    Returns n, or the index of an outdated row. `unknown` then holds the version whose runs have to be worked out before
    the next call continues from there.
    """
    for i in range(first, n):
        row, target = ldi64(rows + 8 * i), content + 8 * i * cells
        st64(ids + 16 * i, row_hi(row))
        st64(ids + 16 * i + 8, row_lo(ctx, row))
        if is_outdated(ctx, row):
            record = group_record(ctx, row_group(row))
            version = outdated_version(record, row)
            older = older_layout(record, version)
            if ldi64(older + MAP_RUN_COUNT) < 0:
                sti64(unknown, version)
                return np.int64(i)
            clear_words(target, cells)
            copy_runs(row + ROW_HEAD_BYTES, target, ldi64(older + MAP_RUNS), ldi64(older + MAP_RUN_COUNT))
        else:
            for j in range(cells):
                st64(target + 8 * j, ld64(row + ROW_HEAD_BYTES + 8 * j))
    return np.int64(n)


@jit
def mark_outdated(ctx: int, rows: int, n: int, flags: int) -> None:
    """Write to `flags` (uint8[n]) for each of n rows 1 if it is outdated, else 0."""
    for i in range(n):
        st8(flags + i, np.uint8(is_outdated(ctx, ldi64(rows + 8 * i))))


@jit
def _key_group(key: int) -> Any:
    return (np.int64(ld8(key + 1)) << 8) | np.int64(ld8(key + 2))


@jit
def locate_rows(ctx: int, keys: int, n: int, rows: int) -> None:
    """Write to `rows` (int64[n]) the addresses of the resident rows of n keys; 0 for a key without one.

    keys: the keys end to end. A row may be outdated.
    """
    for i in range(n):
        key = keys + i * ROW_KEY_BYTES
        row = find_any_row(ctx, _key_group(key), swap64(ld64(key + 3)), swap64(ld64(key + 11)))
        sti64(rows + 8 * i, row)


@jit
def head_rows(ctx: int, keys: int, n: int, base: int, slot_bytes: int, rows: int) -> None:
    """Write heads of rows for n keys into scratch memory at `base`, and their addresses to `rows` (int64[n]).

    The rows get the newest layouts of their groups, which must exist.
    """
    for i in range(n):
        key, row = keys + i * ROW_KEY_BYTES, base + i * slot_bytes
        st64(row + ROW_HI, swap64(ld64(key + 3)))
        st64(row + ROW_LO, swap64(ld64(key + 11)) ^ ld64(ctx + ROWS_SALT))
        st64(row + ROW_TAGS, ld64(group_record(ctx, _key_group(key)) + GROUP_NAME))
        sti64(rows + 8 * i, row)


@jit
def _is_empty(row: int, rule: int) -> Any:
    for i in range(ldi64(rule + RULE_ZERO_COUNT)):
        if ld64(row + ldi64(ldi64(rule + RULE_ZEROS) + 8 * i)) != np.uint64(0):
            return False
    for i in range(ldi64(rule + RULE_BUCKET_COUNT)):
        bucket = ldi64(row + ldi64(ldi64(rule + RULE_BUCKETS) + 8 * i))
        if bucket >= ldi64(ldi64(rule + RULE_BOUNDS) + 8 * i):
            return False
    return True


@jit
def keep_empty(rules: int, rule_count: int, rows: int, n: int) -> Any:
    """Move the empty rows among n rows to the front of their array. Returns how many are empty."""
    kept = np.int64(0)
    for i in range(n):
        row = ldi64(rows + 8 * i)
        group = row_group(row)
        if group < rule_count:
            rule = rules + group * RULE_BYTES
            if ldi64(rule + RULE_ZERO_COUNT) >= 0 and _is_empty(row, rule):
                sti64(rows + 8 * kept, row)
                kept += 1
    return kept


@jit
def find_rows(ctx: int, entities: int, n: int, rows: int) -> None:
    """Write to `rows` (int64[n]) the addresses of the rows of entities; 0 if not resident, or outdated.

    entities: uint64[n, 3] of (group, hi, lo).
    """
    for i in range(n):
        entity = entities + 24 * i
        sti64(rows + 8 * i, find_row(ctx, ldi64(entity), ld64(entity + 8), ld64(entity + 16)))


@jit
def name_rows(ctx: int, rows: int, n: int, entities: int) -> None:
    """Write to `entities` (uint64[n, 3]) the (group, hi, lo) of n rows."""
    for i in range(n):
        row = ldi64(rows + 8 * i)
        sti64(entities + 24 * i, row_group(row))
        st64(entities + 24 * i + 8, row_hi(row))
        st64(entities + 24 * i + 16, row_lo(ctx, row))
