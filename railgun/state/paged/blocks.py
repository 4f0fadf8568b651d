"""Blocks of memory for pages. They lie in slabs; a slab has blocks of one size class until it is empty again.

The other kernels of pages take blocks here, and give them back. The slab table has 8 words per slab: class (-1: empty),
live blocks, first free block (its number within the pool's memory in units of 64 bytes, plus 1; 0: none), blocks ever
carved, next and previous slab of its list. A slab is either full, or in the list of its class (`PARTIAL_SLAB`), or in
the list of empty slabs.
"""

from typing import Any

import numpy as np

from railgun.state.paged.layout import (
    CLASSES,
    EMPTY_SLAB,
    EMPTY_SLABS,
    FREE_BLOCKS,
    LO,
    MEMORY,
    NEEDED,
    NEEDED_PAGES,
    PAGES,
    PAGES_LIMIT,
    PARTIAL_SLAB,
    SLAB_SHIFT,
    SLAB_TABLE,
    class_of,
    set_state,
)
from reservoir.native.jit import jit, ldi64, sti64

SLAB_CLASS, SLAB_LIVE, SLAB_FREE, SLAB_CARVED, SLAB_NEXT, SLAB_PREVIOUS = 0, 8, 16, 24, 32, 40
SLAB_ENTRY_WORDS = 8


@jit
def slab_entry(ctx: int, slab: int) -> Any:
    """Address of a slab's entry in the slab table."""
    return ldi64(ctx + SLAB_TABLE) + slab * (8 * SLAB_ENTRY_WORDS)


@jit
def blocks_per_slab(ctx: int, size_class: int) -> Any:
    """Blocks of a size class in one slab."""
    return np.int64(1) << (ldi64(ctx + SLAB_SHIFT) - 6 - size_class)


@jit
def block_at(ctx: int, slab: int, size_class: int, index: int) -> Any:
    """Address of the index-th block of a slab."""
    return ldi64(ctx + MEMORY) + (slab << ldi64(ctx + SLAB_SHIFT)) + (index << (6 + size_class))


@jit
def _link(ctx: int, head: int, slab: int) -> None:
    entry = slab_entry(ctx, slab)
    first = ldi64(head)
    sti64(entry + SLAB_NEXT, first)
    sti64(entry + SLAB_PREVIOUS, -1)
    if first >= 0:
        sti64(slab_entry(ctx, first) + SLAB_PREVIOUS, slab)
    sti64(head, slab)


@jit
def unlink(ctx: int, head: int, slab: int) -> None:
    """Take a slab out of the list that begins at `head`."""
    entry = slab_entry(ctx, slab)
    following, previous = ldi64(entry + SLAB_NEXT), ldi64(entry + SLAB_PREVIOUS)
    if previous >= 0:
        sti64(slab_entry(ctx, previous) + SLAB_NEXT, following)
    else:
        sti64(head, following)
    if following >= 0:
        sti64(slab_entry(ctx, following) + SLAB_PREVIOUS, previous)


@jit
def add_empty_slab(ctx: int, slab: int) -> None:
    """Put a slab that holds nothing among the empty ones."""
    sti64(slab_entry(ctx, slab) + SLAB_CLASS, -1)
    sti64(slab_entry(ctx, slab) + SLAB_LIVE, 0)
    _link(ctx, ctx + EMPTY_SLAB, slab)
    sti64(ctx + EMPTY_SLABS, ldi64(ctx + EMPTY_SLABS) + 1)


@jit
def _open_slab(ctx: int, size_class: int) -> Any:
    slab = ldi64(ctx + EMPTY_SLAB)
    unlink(ctx, ctx + EMPTY_SLAB, slab)
    sti64(ctx + EMPTY_SLABS, ldi64(ctx + EMPTY_SLABS) - 1)
    entry = slab_entry(ctx, slab)
    sti64(entry + SLAB_CLASS, size_class)
    sti64(entry + SLAB_LIVE, 0)
    sti64(entry + SLAB_FREE, 0)
    sti64(entry + SLAB_CARVED, 0)
    _link(ctx, ctx + PARTIAL_SLAB + 8 * size_class, slab)
    free = ctx + FREE_BLOCKS + 8 * size_class
    sti64(free, ldi64(free) + blocks_per_slab(ctx, size_class))
    return slab


@jit
def take_block(ctx: int, size_class: int) -> Any:
    """Address of a block of the class. The caller must have made sure that there is one (`blocks_there`)."""
    head = ctx + PARTIAL_SLAB + 8 * size_class
    slab = ldi64(head)
    if slab < 0:
        slab = _open_slab(ctx, size_class)
    entry = slab_entry(ctx, slab)
    handle, carved = ldi64(entry + SLAB_FREE), ldi64(entry + SLAB_CARVED)
    if handle:
        block = ldi64(ctx + MEMORY) + ((handle - 1) << 6)
        handle = ldi64(block + LO)
        sti64(entry + SLAB_FREE, handle)
    else:
        block = block_at(ctx, slab, size_class, carved)
        carved += 1
        sti64(entry + SLAB_CARVED, carved)
    sti64(entry + SLAB_LIVE, ldi64(entry + SLAB_LIVE) + 1)
    free = ctx + FREE_BLOCKS + 8 * size_class
    sti64(free, ldi64(free) - 1)
    if handle == 0 and carved == blocks_per_slab(ctx, size_class):
        unlink(ctx, head, slab)
    return block


@jit
def give_block(ctx: int, block: int) -> None:
    """Free the block of a page that has left the directory. A slab that becomes empty may go to another class."""
    size_class = class_of(block)
    slab = (block - ldi64(ctx + MEMORY)) >> ldi64(ctx + SLAB_SHIFT)
    entry = slab_entry(ctx, slab)
    head, free = ctx + PARTIAL_SLAB + 8 * size_class, ctx + FREE_BLOCKS + 8 * size_class
    capacity = blocks_per_slab(ctx, size_class)
    live = ldi64(entry + SLAB_LIVE) - 1
    set_state(block, 0)
    if live == 0:
        if capacity > 1:
            unlink(ctx, head, slab)
        sti64(free, ldi64(free) + 1 - capacity)
        add_empty_slab(ctx, slab)
        return
    sti64(block + LO, ldi64(entry + SLAB_FREE))
    sti64(entry + SLAB_FREE, ((block - ldi64(ctx + MEMORY)) >> 6) + 1)
    sti64(entry + SLAB_LIVE, live)
    sti64(free, ldi64(free) + 1)
    if live + 1 == capacity:
        _link(ctx, head, slab)


@jit
def need_nothing(ctx: int) -> None:
    """Clear the list of blocks that an operation needs."""
    for size_class in range(CLASSES):
        sti64(ctx + NEEDED + 8 * size_class, 0)
    sti64(ctx + NEEDED_PAGES, 0)


@jit
def need(ctx: int, size_class: int, new_pages: int) -> None:
    """Add one block of a class to that list. new_pages: 1 if it is for a page that is new to the directory, else 0."""
    where = ctx + NEEDED + 8 * size_class
    sti64(where, ldi64(where) + 1)
    sti64(ctx + NEEDED_PAGES, ldi64(ctx + NEEDED_PAGES) + new_pages)


@jit
def blocks_there(ctx: int) -> Any:
    """Whether all blocks on that list can be taken now."""
    if ldi64(ctx + PAGES) + ldi64(ctx + NEEDED_PAGES) > ldi64(ctx + PAGES_LIMIT):
        return False
    slabs = np.int64(0)
    for size_class in range(CLASSES):
        missing = ldi64(ctx + NEEDED + 8 * size_class) - ldi64(ctx + FREE_BLOCKS + 8 * size_class)
        if missing > 0:
            if 6 + size_class > ldi64(ctx + SLAB_SHIFT):
                return False
            capacity = blocks_per_slab(ctx, size_class)
            slabs += (missing + capacity - 1) // capacity
    return slabs <= ldi64(ctx + EMPTY_SLABS)
