"""The outbox of the page pool: images and deletions of pages on their way to the store, in the order of their making.

A page's image goes here before the page is changed (copy on write) or evicted, and its deletion when it is freed.
Python writes the records to the store (`PagePool.drain`). A record has these bytes:

    +7   key: 'p' or 's', id big-endian (17 bytes; 7 bytes before it make the rest aligned)
    +24  epoch of the image u32, stored_epoch u32
    +32  length of the body i64, -1: deletion
    +40  body: state u32 (size class cleared), words u32, words   (FORMAT.md)
"""

from typing import Any

import numpy as np

from railgun.state.paged.layout import (
    BODY,
    DIRTY,
    DIRTY_OLD,
    EPOCH,
    HI,
    LO,
    OUTBOX,
    OUTBOX_FULL,
    OUTBOX_USED,
    STORED,
    TEXT,
    body_words,
    kind_of,
    state_of,
)
from reservoir.native.jit import copy_bytes, jit, ld32, ld64, ldi64, st8, st32, st64, sti64

RECORD_KEY, RECORD_EPOCHS, RECORD_LENGTH, RECORD_BODY = 7, 24, 32, 40
BODY_HEAD_BYTES = 8

_BYTES = np.uint64(0x00FF00FF00FF00FF)
_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_PAGE_LETTER = np.uint8(ord("p"))
_STRING_LETTER = np.uint8(ord("s"))


@jit
def _swapped(word: Any) -> Any:
    word = ((word >> np.uint64(8)) & _BYTES) | ((word & _BYTES) << np.uint64(8))
    word = ((word >> np.uint64(16)) & _PAIRS) | ((word & _PAIRS) << np.uint64(16))
    return (word >> np.uint64(32)) | (word << np.uint64(32))


@jit
def outbox_full(ctx: int) -> Any:
    """Whether the outbox must be drained before another operation begins. An operation may post up to a reserve."""
    return ldi64(ctx + OUTBOX_USED) > ldi64(ctx + OUTBOX_FULL)


@jit
def _begin(ctx: int, page: int, epoch: int) -> Any:
    record = ldi64(ctx + OUTBOX) + ldi64(ctx + OUTBOX_USED)
    st8(record + RECORD_KEY, _STRING_LETTER if kind_of(page) == TEXT else _PAGE_LETTER)
    st64(record + RECORD_KEY + 1, _swapped(ld64(page + HI)))
    st64(record + RECORD_KEY + 9, _swapped(ld64(page + LO)))
    st32(record + RECORD_EPOCHS, np.uint32(epoch))
    st32(record + RECORD_EPOCHS + 4, ld32(page + STORED))
    return record


@jit
def post_deletion(ctx: int, page: int, epoch: Any) -> None:
    """Post a deletion of the stored value of a page, in `epoch`."""
    record = _begin(ctx, page, epoch)
    sti64(record + RECORD_LENGTH, -1)
    sti64(ctx + OUTBOX_USED, ldi64(ctx + OUTBOX_USED) + RECORD_BODY)


@jit
def post_image(ctx: int, page: int, epoch: Any) -> None:
    """Post the content of a page as its image of `epoch`. For a string with no holder, post a deletion."""
    if kind_of(page) == TEXT and ldi64(page + BODY) == 0:
        if ld32(page + STORED) != 0:
            post_deletion(ctx, page, epoch)
            st32(page + STORED, np.uint32(epoch))
        return
    record = _begin(ctx, page, epoch)
    state = state_of(page)
    words = body_words(state)
    sti64(record + RECORD_LENGTH, BODY_HEAD_BYTES + 8 * words)
    st32(record + RECORD_BODY, np.uint32(state & ~15))
    st32(record + RECORD_BODY + 4, np.uint32(words))
    copy_bytes(record + RECORD_BODY + BODY_HEAD_BYTES, page + BODY, 8 * words)
    sti64(ctx + OUTBOX_USED, ldi64(ctx + OUTBOX_USED) + RECORD_BODY + BODY_HEAD_BYTES + 8 * words)
    st32(page + STORED, np.uint32(epoch))


@jit
def post_old(ctx: int, page: int) -> None:
    """Post the image of the old epoch, if it is still to be written. The page is then clean."""
    dirty = np.int64(ld32(page + DIRTY))
    if dirty != 0 and dirty != ldi64(ctx + EPOCH):
        post_image(ctx, page, dirty)
        st32(page + DIRTY, np.uint32(0))
        sti64(ctx + DIRTY_OLD, ldi64(ctx + DIRTY_OLD) - 1)


@jit
def index_outbox(ctx: int, at: Any, table: int, limit: int) -> Any:
    """Write four int64 to `table` for each record from `at` on: offset, length of the body, epoch, stored_epoch.

    Returns how many records were listed.
    """
    outbox, used = ldi64(ctx + OUTBOX), ldi64(ctx + OUTBOX_USED)
    n = np.int64(0)
    while at < used and n < limit:
        length = ldi64(outbox + at + RECORD_LENGTH)
        sti64(table, at)
        sti64(table + 8, length)
        sti64(table + 16, np.int64(ld32(outbox + at + RECORD_EPOCHS)))
        sti64(table + 24, np.int64(ld32(outbox + at + RECORD_EPOCHS + 4)))
        table += 32
        n += 1
        at += RECORD_BODY + (length if length > 0 else 0)
    return n
