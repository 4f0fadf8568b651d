"""Entries of cells: [time, seq, v0, v1], one value and its place in the order of time; zeros if there is no value.

A cell is an aggregate's words in an entity's row. `first`, `last`, `prev` and the maps of values keep such entries. seq
is the log position of the event, which orders events of one time.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import TYPE_STRING
from railgun.aggregators.exact.limbs import clear
from railgun.aggregators.values import drop, prepare_drop
from reservoir.native.jit import jit, ld64, ldi64, st64, sti64

u = np.uint64

ENTRY_WORDS = 4
ENTRY_BYTES = 8 * ENTRY_WORDS
VALUE_OFFSET = 16


@jit
def is_after(time: int, seq: int, entry: int) -> Any:
    """Whether (time, seq) comes after the (time, seq) of an entry."""
    held = ldi64(entry)
    return time > held or (time == held and seq > ldi64(entry + 8))


@jit
def write_entry(entry: int, time: int, seq: int, v0: Any, v1: Any) -> None:
    """Write an entry's four words."""
    sti64(entry, time)
    sti64(entry + 8, seq)
    st64(entry + VALUE_OFFSET, v0)
    st64(entry + VALUE_OFFSET + 8, v1)


@jit
def forget(ctx: int, entry: int, type_code: int) -> Any:
    """Empty an entry that holds a value; return 0 or a status."""
    v0, v1 = ld64(entry + VALUE_OFFSET), ld64(entry + VALUE_OFFSET + 8)
    status = prepare_drop(ctx, type_code, v0, v1)
    if status == 0:
        drop(ctx, type_code, v0, v1)
        clear(entry, ENTRY_WORDS)
    return status


@jit
def reset_entries(ctx: int, cell: int, entries: int, type_code: int) -> Any:
    """Empty all entries of a cell, whether they hold values or not; return 0 or a status."""
    for i in range(entries):
        entry = cell + ENTRY_BYTES * i
        if type_code == TYPE_STRING and ld64(entry + VALUE_OFFSET) != u(0):
            status = forget(ctx, entry, type_code)
            if status != 0:
                return status
        clear(entry, ENTRY_WORDS)
    return np.int64(0)
