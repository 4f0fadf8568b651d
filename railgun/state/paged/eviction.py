"""Makes room in the page pool: a hand goes round the slabs and evicts pages that have not been used for long.

`PagePool` calls these kernels when a page needs room, and to find the pages that a checkpoint has to write. A sample of
the resident pages tells how long is long. A slab in which few pages stay is emptied: they move to free blocks of other
slabs, so that memory can go from one size class to another. Whatever is written goes through the outbox, so that images
of one key (its content as bytes) keep their order.
"""

from typing import Any

import numpy as np

from railgun.state.paged.blocks import (
    SLAB_CARVED,
    SLAB_CLASS,
    SLAB_LIVE,
    add_empty_slab,
    block_at,
    blocks_per_slab,
    blocks_there,
    give_block,
    slab_entry,
    take_block,
    unlink,
)
from railgun.state.paged.directory import enter_page, leave_page
from railgun.state.paged.layout import (
    CLOCK,
    DIRTY,
    DIRTY_NOW,
    DIRTY_OLD,
    EPOCH,
    FREE,
    FREE_BLOCKS,
    HAND_BLOCK,
    HAND_SLAB,
    HEAD_BYTES,
    OUTBOX_USED,
    PARTIAL_SLAB,
    PROTECTED,
    RANDOM,
    SCAN_BLOCK,
    SCAN_SLAB,
    SLABS,
    STAMP,
    block_words,
    body_words,
    kind_of,
    state_of,
)
from railgun.state.paged.outbox import outbox_full, post_image, post_old
from railgun.state.status import DONE, DRAIN, ROOM
from reservoir.native.jit import copy_bytes, jit, ld32, ldi64, stack_words, sti64

_SAMPLES = 64
_PAGE_WORK_BYTES = 256
_EVICTED_PART = 4  # one in this many sampled pages counts as unused for long


@jit
def _age(ctx: int, page: int) -> Any:
    """Ticks since a page was last used (modulo 2^32)."""
    return (ldi64(ctx + CLOCK) - np.int64(ld32(page + STAMP))) & 0xFFFFFFFF


@jit
def _next_random(ctx: int) -> Any:
    word = np.uint64(ldi64(ctx + RANDOM)) * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    sti64(ctx + RANDOM, np.int64(word))
    return np.int64(word >> np.uint64(33))


@jit
def age_to_evict(ctx: int) -> Any:
    """The age that about a quarter of the pages have reached, from a sample; at least the protected one."""
    ages = stack_words(_SAMPLES)  # the greatest first
    n = 0
    for _ in range(4 * _SAMPLES):
        slab = _next_random(ctx) % ldi64(ctx + SLABS)
        entry = slab_entry(ctx, slab)
        size_class, carved = ldi64(entry + SLAB_CLASS), ldi64(entry + SLAB_CARVED)
        if size_class >= 0 and carved > 0:
            page = block_at(ctx, slab, size_class, _next_random(ctx) % carved)
            if kind_of(page) != FREE and n < _SAMPLES:
                age, place = _age(ctx, page), n
                while place > 0 and ldi64(ages + 8 * (place - 1)) < age:
                    sti64(ages + 8 * place, ldi64(ages + 8 * (place - 1)))
                    place -= 1
                sti64(ages + 8 * place, age)
                n += 1
    protected = ldi64(ctx + PROTECTED)
    if n == 0:
        return protected
    return max(protected, ldi64(ages + 8 * (n // _EVICTED_PART)))


@jit
def _evict(ctx: int, page: int) -> None:
    dirty = np.int64(ld32(page + DIRTY))
    if dirty:
        post_image(ctx, page, dirty)
        counter = ctx + DIRTY_NOW if dirty == ldi64(ctx + EPOCH) else ctx + DIRTY_OLD
        sti64(counter, ldi64(counter) - 1)
    leave_page(ctx, page)
    give_block(ctx, page)


@jit
def _vacate(ctx: int, slab: int) -> None:
    """Empty a slab by moving the pages left in it to others of its class, if they are few and fit there."""
    entry = slab_entry(ctx, slab)
    size_class, carved = ldi64(entry + SLAB_CLASS), ldi64(entry + SLAB_CARVED)
    live, capacity = ldi64(entry + SLAB_LIVE), blocks_per_slab(ctx, size_class)
    free = ctx + FREE_BLOCKS + 8 * size_class
    elsewhere = ldi64(free) - (capacity - live)
    if 2 * live > capacity or elsewhere < live:
        return
    unlink(ctx, ctx + PARTIAL_SLAB + 8 * size_class, slab)
    sti64(free, elsewhere)
    for index in range(carved):
        page = block_at(ctx, slab, size_class, index)
        if kind_of(page) != FREE:
            target = take_block(ctx, size_class)
            copy_bytes(target, page, HEAD_BYTES + 8 * body_words(state_of(page)))
            enter_page(ctx, target)
    add_empty_slab(ctx, slab)


@jit
def make_room(ctx: int, age: int, work_bytes: int) -> Any:
    """Evict pages older than `age` until the needed blocks are free and at least `work_bytes` of work is done.

    Work counts the bytes of the evicted blocks and 256 for each page, which is roughly what eviction costs.
    Returns DONE; DRAIN if the outbox is full (drain it and call again); or ROOM if the hand has gone once round and
    the blocks are still lacking.
    """
    turned = np.int64(0)
    work = np.int64(0)
    while work < work_bytes or not blocks_there(ctx):
        if outbox_full(ctx):
            return DRAIN
        slab, index = ldi64(ctx + HAND_SLAB), ldi64(ctx + HAND_BLOCK)
        entry = slab_entry(ctx, slab)
        size_class = ldi64(entry + SLAB_CLASS)
        if size_class >= 0 and index < ldi64(entry + SLAB_CARVED):
            sti64(ctx + HAND_BLOCK, index + 1)
            page = block_at(ctx, slab, size_class, index)
            if kind_of(page) != FREE:
                if _age(ctx, page) > age:
                    work += _PAGE_WORK_BYTES + 8 * block_words(page)
                    _evict(ctx, page)
            continue
        if size_class >= 0:
            _vacate(ctx, slab)
        turned += 1
        if turned > ldi64(ctx + SLABS):
            return DONE if blocks_there(ctx) else ROOM
        sti64(ctx + HAND_SLAB, (slab + 1) % ldi64(ctx + SLABS))
        sti64(ctx + HAND_BLOCK, 0)
    return DONE


@jit
def scan_old(ctx: int, limit_bytes: int, blocks: int) -> Any:
    """Post about `limit_bytes` of images of the old epoch to the outbox. Continues where the last scan stopped.

    Looks at `blocks` blocks at most, and returns at how many it looked. Scans go round until no image is left, so a
    page that moved behind the scan is found in the next round.
    """
    start = ldi64(ctx + OUTBOX_USED)
    looked = np.int64(0)
    while looked < blocks and ldi64(ctx + DIRTY_OLD) > 0 and not outbox_full(ctx):
        if ldi64(ctx + OUTBOX_USED) - start >= limit_bytes:
            break
        slab, index = ldi64(ctx + SCAN_SLAB), ldi64(ctx + SCAN_BLOCK)
        entry = slab_entry(ctx, slab)
        size_class = ldi64(entry + SLAB_CLASS)
        looked += 1
        if size_class < 0 or index >= ldi64(entry + SLAB_CARVED):
            sti64(ctx + SCAN_SLAB, (slab + 1) % ldi64(ctx + SLABS))
            sti64(ctx + SCAN_BLOCK, 0)
            continue
        sti64(ctx + SCAN_BLOCK, index + 1)
        page = block_at(ctx, slab, size_class, index)
        if kind_of(page) != FREE:
            post_old(ctx, page)
    return looked
