"""String items: the bytes of strings with a count of their holders, kept in the page pool like pages.

Values of aggregators refer to strings by these kernels (`railgun/aggregators/values.py`). The id of an item is the
string's 128-bit hash with the top bit of its upper word set. An item without holders is deleted when its page is next
written or evicted. All kernels return a number >= 0 or a status.

The caller must call `str_ready` before `str_retain`, and handle no status in between: an item that has no holder yet
lives in memory only.
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import mark_dirty, move_page, open_page, set_up_page, tick
from railgun.state.paged.blocks import blocks_there, need, need_nothing
from railgun.state.paged.layout import (
    BODY,
    BROKEN,
    HEAD_BYTES,
    STORED,
    TEXT,
    block_words,
    class_for,
    count_of,
    make_state,
    set_count,
    set_state,
    state_of,
)
from railgun.state.paged.outbox import outbox_full
from railgun.state.status import DRAIN, FAULT, ROOM
from reservoir.native.jit import copy_bytes, jit, ldi64, st32, sti64

STRING_BYTES_MAX = 65_535

_BYTES = BODY + 8
_UNKNOWN = 1 << 13  # no bytes yet: the item is not stored


@jit
def string_id_hi(hi: int) -> Any:
    """Upper word of the id of the string with this upper word of its hash (int64)."""
    return np.int64(np.uint64(hi) | np.uint64(1 << 63))


@jit
def load_absent_string(ctx: int, hi: int, lo: int, epoch: int) -> Any:
    """Make a page for a string that is not stored; return its address, or ROOM. epoch: of its tombstone, or 0."""
    need_nothing(ctx)
    need(ctx, 0, 1)
    if not blocks_there(ctx):
        return ROOM
    page = set_up_page(ctx, 0, hi, lo, make_state(0, TEXT, 0, 0, 0) | _UNKNOWN)
    st32(page + STORED, np.uint32(epoch))
    sti64(page + BODY, 0)
    return page


@jit
def str_ready(ctx: int, hi: int, lo: int, text: int, size_bytes: int) -> Any:
    """Make an item resident. A new item gets these bytes, and no holder. Returns 0, or FAULT, or ROOM.

    BROKEN: the string is longer than STRING_BYTES_MAX, or another string has this hash.
    """
    if size_bytes > STRING_BYTES_MAX:
        return BROKEN
    tick(ctx)
    page = open_page(ctx, string_id_hi(hi), lo)
    if page < 0:
        return FAULT
    if not state_of(page) & _UNKNOWN:
        return np.int64(0) if count_of(page) == size_bytes else BROKEN
    if HEAD_BYTES + 8 + size_bytes > 8 * block_words(page):
        size_class = class_for(1 + ((size_bytes + 7) >> 3))
        need_nothing(ctx)
        need(ctx, size_class, 0)
        if not blocks_there(ctx):
            return ROOM
        page = move_page(ctx, page, size_class)
    if size_bytes:
        sti64(page + _BYTES + ((size_bytes - 1) & ~7), 0)
        copy_bytes(page + _BYTES, text, size_bytes)
    set_count(page, size_bytes)
    set_state(page, state_of(page) & ~_UNKNOWN)
    return np.int64(0)


@jit
def _hold(ctx: int, hi: int, lo: int, change: int) -> Any:
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    page = open_page(ctx, string_id_hi(hi), lo)
    if page < 0:
        return FAULT
    holders = ldi64(page + BODY) + change
    if holders < 0 or state_of(page) & _UNKNOWN:
        return BROKEN
    mark_dirty(ctx, page)
    sti64(page + BODY, holders)
    return holders


@jit
def str_retain(ctx: int, hi: int, lo: int) -> Any:
    """Add a holder; return the number of holders, or FAULT, DRAIN. BROKEN if the item is not `str_ready`."""
    return _hold(ctx, hi, lo, 1)


@jit
def str_release(ctx: int, hi: int, lo: int) -> Any:
    """Remove a holder; return how many are left, or FAULT, DRAIN. BROKEN if there was none."""
    return _hold(ctx, hi, lo, -1)


@jit
def str_address(ctx: int, hi: int, lo: int) -> Any:
    """Address of the bytes, or FAULT; BROKEN if there is no such string."""
    tick(ctx)
    page = open_page(ctx, string_id_hi(hi), lo)
    if page < 0:
        return FAULT
    return BROKEN if state_of(page) & _UNKNOWN else page + _BYTES


@jit
def str_length(ctx: int, hi: int, lo: int) -> Any:
    """Length in bytes, or FAULT; BROKEN if there is no such string."""
    tick(ctx)
    page = open_page(ctx, string_id_hi(hi), lo)
    if page < 0:
        return FAULT
    return BROKEN if state_of(page) & _UNKNOWN else count_of(page)
