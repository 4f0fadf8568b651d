"""Kernels that open, change, make, grow and free single pages, and those for the raw pages of wide accumulators.

The kernels of ordered maps, of strings and of wide sums are made of these. The address of a page is valid until the
pool next handles a status (`PagePool.handle`), or until the page grows. A kernel that returns DRAIN, ROOM or FAULT
(railgun/state/status.py) has changed nothing; it is called again after `PagePool.handle`.
"""

from typing import Any

import numpy as np

from railgun.state.paged.blocks import blocks_there, give_block, need, need_nothing, take_block
from railgun.state.paged.directory import enter_page, find_page, leave_page
from railgun.state.paged.layout import (
    BODY,
    BROKEN,
    CLOCK,
    DIRTY,
    DIRTY_NOW,
    DIRTY_OLD,
    EPOCH,
    FAULT_HI,
    FAULT_LO,
    FREE,
    HEAD_BYTES,
    HI,
    LO,
    NEXT_ID,
    RAW,
    STAMP,
    STORED,
    body_words,
    class_for,
    make_state,
    set_state,
    state_of,
)
from railgun.state.paged.outbox import outbox_full, post_deletion, post_image
from railgun.state.status import DRAIN, FAULT, ROOM
from reservoir.native.jit import copy_bytes, jit, ld32, ldi64, st32, sti64


@jit
def tick(ctx: int) -> None:
    """Begin an operation: advance the pool's clock, so that the pages it uses count as used last."""
    sti64(ctx + CLOCK, ldi64(ctx + CLOCK) + 1)


@jit
def open_page(ctx: int, hi: int, lo: int) -> Any:
    """Stamp a page as used and return its address. FAULT if it is not resident; its id is then in the context."""
    page = find_page(ctx, hi, lo)
    if page == 0:
        sti64(ctx + FAULT_HI, hi)
        sti64(ctx + FAULT_LO, lo)
        return FAULT
    st32(page + STAMP, np.uint32(ldi64(ctx + CLOCK)))
    return page


@jit
def mark_dirty(ctx: int, page: int) -> None:
    """Mark a page as dirty in the current epoch, before it is changed. An unwritten image of the old epoch is kept."""
    now = ldi64(ctx + EPOCH)
    dirty = np.int64(ld32(page + DIRTY))
    if dirty == now:
        return
    if dirty != 0:
        post_image(ctx, page, dirty)
        sti64(ctx + DIRTY_OLD, ldi64(ctx + DIRTY_OLD) - 1)
    st32(page + DIRTY, np.uint32(now))
    sti64(ctx + DIRTY_NOW, ldi64(ctx + DIRTY_NOW) + 1)


@jit
def set_up_page(ctx: int, size_class: int, hi: int, lo: int, state: Any) -> Any:
    """Make a clean page that the store does not know. `state`: without the size class.

    The caller must have made sure that there is a free block (`blocks_there`).
    """
    page = take_block(ctx, size_class)
    sti64(page + HI, hi)
    sti64(page + LO, lo)
    st32(page + DIRTY, np.uint32(0))
    st32(page + STORED, np.uint32(0))
    set_state(page, state | size_class)
    st32(page + STAMP, np.uint32(ldi64(ctx + CLOCK)))
    enter_page(ctx, page)
    return page


@jit
def make_page(ctx: int, size_class: int, state: Any) -> Any:
    """Make a page with the next id, dirty in the current epoch. The caller must have made sure of a free block."""
    number = ldi64(ctx + NEXT_ID)
    sti64(ctx + NEXT_ID, number + 1)
    page = set_up_page(ctx, size_class, 0, number, state)
    mark_dirty(ctx, page)
    return page


@jit
def move_page(ctx: int, page: int, size_class: int) -> Any:
    """Move a page into a block of another class, and return its new address.

    The caller must have made sure that a block large enough is free.
    """
    target = take_block(ctx, size_class)
    state = state_of(page)
    copy_bytes(target, page, HEAD_BYTES + 8 * body_words(state))
    set_state(target, (state & ~15) | size_class)
    enter_page(ctx, target)
    give_block(ctx, page)
    return target


@jit
def drop_page(ctx: int, page: int) -> None:
    """Free a page and have its stored value deleted, in the current epoch. The outbox must not be full."""
    now = ldi64(ctx + EPOCH)
    dirty = np.int64(ld32(page + DIRTY))
    if dirty == now:
        sti64(ctx + DIRTY_NOW, ldi64(ctx + DIRTY_NOW) - 1)
    elif dirty != 0:
        post_image(ctx, page, dirty)
        sti64(ctx + DIRTY_OLD, ldi64(ctx + DIRTY_OLD) - 1)
    if ld32(page + STORED) != 0:
        post_deletion(ctx, page, now)
    leave_page(ctx, page)
    give_block(ctx, page)


@jit
def page_new(ctx: int, words: int) -> Any:
    """Id of a new raw page with a body of `words` zeros (at most 65,535), or ROOM, or DRAIN."""
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    size_class = class_for(words)
    need_nothing(ctx)
    need(ctx, size_class, 1)
    if not blocks_there(ctx):
        return ROOM
    page = make_page(ctx, size_class, make_state(0, RAW, 0, 0, words))
    for at in range(words):
        sti64(page + BODY + 8 * at, 0)
    return ldi64(page + LO)


@jit
def page_address(ctx: int, number: int) -> Any:
    """Address of the body of a raw page, to be read; or FAULT."""
    tick(ctx)
    page = open_page(ctx, 0, number)
    if page < 0:
        return FAULT
    return page + BODY


@jit
def page_touch(ctx: int, number: int) -> Any:
    """Address of the body of a raw page, to be changed; or FAULT, or DRAIN."""
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    page = open_page(ctx, 0, number)
    if page < 0:
        return FAULT
    mark_dirty(ctx, page)
    return page + BODY


@jit
def page_free(ctx: int, number: int) -> Any:
    """Free a raw page: 0, or FAULT, or DRAIN."""
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    page = open_page(ctx, 0, number)
    if page < 0:
        return FAULT
    drop_page(ctx, page)
    return np.int64(0)


@jit
def load_page(ctx: int, hi: int, lo: int, epoch: int, body: int, size_bytes: int) -> Any:
    """Make a stored body a resident page; return its address. ROOM, or BROKEN if it cannot be the body of a page."""
    state, words = np.int64(ld32(body)), np.int64(ld32(body + 4))
    if size_bytes != 8 + 8 * words or words != body_words(state) or (state >> 4) & 3 == FREE:
        return BROKEN
    need_nothing(ctx)
    need(ctx, class_for(words), 1)
    if not blocks_there(ctx):
        return ROOM
    page = set_up_page(ctx, class_for(words), hi, lo, state & ~15)
    st32(page + STORED, np.uint32(epoch))
    copy_bytes(page + BODY, body + 8, 8 * words)
    return page


@jit
def absent_pages(ctx: int, ids: int, n: int, out: int) -> Any:
    """Write to `out` (int64) the indexes of those of n ids (hi, lo) that are not resident; return how many."""
    found = np.int64(0)
    for index in range(n):
        if find_page(ctx, ldi64(ids + 16 * index), ldi64(ids + 16 * index + 8)) == 0:
            sti64(out + 8 * found, index)
            found += 1
    return found
