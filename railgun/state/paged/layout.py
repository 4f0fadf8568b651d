"""The layout of the page pool's memory: the words of its context, the head of a page, kinds and size classes.

The page pool (pool.py) keeps pages of a task's state in memory: parts of trees, strings, and sums too large for a row.
All kernels of pages, and the Python code that calls them, use these numbers. Offsets are in bytes. A kernel reaches the
pool through one address, that of the context: an int64 array whose words are named here. DRAIN, ROOM and FAULT are
statuses with which a kernel stops (railgun/state/status.py). An epoch is the time between two checkpoints.

A page begins with a head of four words:

    +0   id, upper word (0 for trees and raw pages; top bit set for strings)
    +8   id, lower word (in a free block: the next free block of the slab)
    +16  dirty_epoch u32, stored_epoch u32        (see `resident.py`)
    +24  state u32: class 4 bits | kind 2 | value words 2 | level 5 | spare 3 | count 16
    +28  stamp u32: the pool's clock when the page was last used
    +32  body
"""

from typing import Any

import numpy as np

from reservoir.native.jit import clz64, jit, ld32, st32

# --- the context -----------------------------------------------------------------------------------

MEMORY = 8 * 0  # address of the first slab, a multiple of 64
SLAB_SHIFT = 8 * 1  # log2 of the bytes of a slab
SLABS = 8 * 2  # slabs that may be used by now
SLAB_TABLE = 8 * 3  # address of the slab table
EMPTY_SLAB = 8 * 4  # first empty slab, -1: none
EMPTY_SLABS = 8 * 5  # how many are empty
DIRECTORY = 8 * 6  # address of the directory's entries
DIRECTORY_LINES = 8 * 7  # its entries, in lines of eight
PAGES = 8 * 8  # resident pages
PAGES_LIMIT = 8 * 9  # most that the directory takes
CLOCK = 8 * 10  # ticks once per operation
EPOCH = 8 * 11  # the current epoch
NEXT_ID = 8 * 12  # id of the next new page; never given twice
OUTBOX = 8 * 13  # address of images on their way to the store
OUTBOX_USED = 8 * 14  # bytes
OUTBOX_FULL = 8 * 15  # above this many bytes no operation begins
FAULT_HI = 8 * 16  # the page that a FAULT asks for
FAULT_LO = 8 * 17
DIRTY_NOW = 8 * 18  # pages whose dirty_epoch is the current epoch
DIRTY_OLD = 8 * 19  # pages whose dirty_epoch is the old epoch, the one that a checkpoint is writing
TREE_CLASS = 8 * 20  # largest size class of a tree's page
GRAVES = 8 * 21  # root cell of the map of deferred pages: the ordered map of pages that are still to be freed
GRAVES_COUNT = 8 * 22
HAND_SLAB = 8 * 23  # the slab where eviction continues
HAND_BLOCK = 8 * 24
SCAN_SLAB = 8 * 25  # the slab where the scan for the old epoch continues
SCAN_BLOCK = 8 * 26
PROTECTED = 8 * 27  # a page used within this many ticks is not evicted
RANDOM = 8 * 28  # state of the sampling generator
PARTIAL_SLAB = 8 * 32  # per class: first slab with a free block, -1: none
FREE_BLOCKS = 8 * 44  # per class: free blocks in its slabs
NEEDED = 8 * 56  # per class: blocks that the operation which answered ROOM needs
NEEDED_PAGES = 8 * 68  # new directory entries that it needs
PATH = 8 * 70  # per level of the tree in use: address of the page, index in it
PLAN = PATH + 16 * 32  # per level: address of the sibling to merge with, 0: none
CONTEXT_WORDS = 70 + 2 * 32 + 32

# --- pages -----------------------------------------------------------------------------------------

HI, LO, DIRTY, STORED, STATE, STAMP, BODY = 0, 8, 16, 20, 24, 28, 32
HEAD_WORDS = 4
HEAD_BYTES = 8 * HEAD_WORDS

FREE, TREE, TEXT, RAW = 0, 1, 2, 3
CLASSES = 12  # blocks of 8, 16, 32 ... 16384 words
SMALLEST_BLOCK_WORDS = 8
LARGEST_BLOCK_WORDS = SMALLEST_BLOCK_WORDS << (CLASSES - 1)
DEPTH_MAX = 30

# A status for a defect of the program or a damaged store. The pool raises it as an error.
BROKEN = np.int64(-9)


@jit
def class_for(words: Any) -> Any:
    """Size class of the smallest block that holds a head and this many words of body."""
    blocks = (words + HEAD_WORDS - 1) >> 3
    return np.int64(64) - clz64(np.uint64(blocks))


@jit
def state_of(page: int) -> Any:
    """The state bits of a page, as int64."""
    return np.int64(ld32(page + STATE))


@jit
def set_state(page: int, state: Any) -> None:
    """Replace the state bits of a page."""
    st32(page + STATE, np.uint32(state))


@jit
def make_state(size_class: int, kind: int, value_words: int, level: Any, count: int) -> Any:
    """State bits from their parts."""
    return size_class | (kind << 4) | (value_words << 6) | (level << 8) | (count << 16)


@jit
def class_of(page: int) -> Any:
    """Size class of the block of a page."""
    return state_of(page) & 15


@jit
def kind_of(page: int) -> Any:
    """FREE, TREE, TEXT or RAW."""
    return (state_of(page) >> 4) & 3


@jit
def level_of(page: int) -> Any:
    """Level of a tree's page: 0 = leaf."""
    return (state_of(page) >> 8) & 31


@jit
def count_of(page: int) -> Any:
    """Entries of a tree's page, bytes of a string, words of a raw page."""
    return state_of(page) >> 16


@jit
def set_count(page: int, count: int) -> None:
    """Replace the count in the state bits."""
    set_state(page, (state_of(page) & 0xFFFF) | (count << 16))


@jit
def body_words(state: Any) -> Any:
    """Words of the body in use, from the state bits: what an image holds."""
    kind, count = (state >> 4) & 3, state >> 16
    if kind == TREE:
        return count * (3 if (state >> 8) & 31 else 2 + ((state >> 6) & 3))
    if kind == TEXT:
        return 1 + ((count + 7) >> 3)
    return count


@jit
def block_words(page: int) -> Any:
    """Words of the block of a page, head included."""
    return SMALLEST_BLOCK_WORDS << class_of(page)
