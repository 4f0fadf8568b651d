"""The memory of a page pool, which keeps parts of a task's state (trees, strings, large sums) as pages.

`PagePool` (pool.py) has one `PageMemory`, and calls `grow` when its kernels need room. The arrays are: the context,
words that tell kernels where all is; the slabs, which hold the pages, and a table of the slabs; the directory, a hash
table that finds a page by its id; the outbox, changed pages on their way to the store; and the inbox, one page that
comes from there.

The directory gets an eighth of `limit_bytes`, the outbox a small part, and the slabs the rest. All slabs are reserved
as one range of addresses at the start, and touched in steps. So memory in use follows need, and addresses never
change.
"""

import numpy as np

from railgun.state.paged.blocks import SLAB_ENTRY_WORDS, add_empty_slab
from railgun.state.paged.errors import PoolTooSmallError
from railgun.state.paged.layout import (
    CLASSES,
    CONTEXT_WORDS,
    DEPTH_MAX,
    DIRECTORY,
    DIRECTORY_LINES,
    EMPTY_SLAB,
    EPOCH,
    HEAD_WORDS,
    LARGEST_BLOCK_WORDS,
    MEMORY,
    NEXT_ID,
    OUTBOX,
    OUTBOX_FULL,
    PAGES_LIMIT,
    PARTIAL_SLAB,
    PROTECTED,
    RANDOM,
    SLAB_SHIFT,
    SLAB_TABLE,
    SLABS,
    TREE_CLASS,
    class_for,
)
from railgun.state.paged.outbox import BODY_HEAD_BYTES, RECORD_BODY
from reservoir.native.jit import address

SLABS_MIN = 12
OUTBOX_BATCH_BYTES = 128 * 1024
_STEP_BYTES = 2 << 20
# An operation on a tree puts (posts) at most this many pages into the outbox: two on each level, and a few more.
_POSTS_OF_ONE_OPERATION = 2 * DEPTH_MAX + 4


class PageMemory:
    """Arrays of one pool, and the context that tells kernels where they are.

    page_words: words of the block of the largest page of a tree.
    slab_bytes: a power of two, at least 16 such blocks.
    protected_ops: pages used within this many operations are not evicted as long as others can be.
    """

    def __init__(self, limit_bytes: int, page_words: int, slab_bytes: int, protected_ops: int) -> None:
        if slab_bytes & (slab_bytes - 1) or slab_bytes < 16 * 8 * page_words:
            raise ValueError(f"slab_bytes={slab_bytes} is no power of two of 16 pages or more")
        # The directory gets an eighth of the limit: so many entries of eight bytes, in lines of eight (64 bytes).
        entries = 8 * (limit_bytes // (8 * 64))
        largest_words = min(LARGEST_BLOCK_WORDS, slab_bytes // 8)
        post_bytes = RECORD_BODY + BODY_HEAD_BYTES
        reserve_bytes = max(
            _POSTS_OF_ONE_OPERATION * (8 * page_words + 2 * post_bytes), 8 * largest_words + 2 * post_bytes
        )
        outbox_bytes = reserve_bytes + min(OUTBOX_BATCH_BYTES, limit_bytes // 16)
        self.slabs_max = (limit_bytes - 8 * entries - outbox_bytes - 8 * largest_words) // slab_bytes
        if self.slabs_max < SLABS_MIN:
            raise PoolTooSmallError(limit_bytes, 2 * (outbox_bytes + SLABS_MIN * slab_bytes))
        self.slab_bytes = slab_bytes
        self.words = np.zeros(CONTEXT_WORDS, np.int64)
        self.outbox = np.zeros(outbox_bytes // 8, np.int64)
        self.inbox = np.zeros(largest_words, np.int64)
        self.pages_at_once = max(1, self.slabs_max * slab_bytes // (4 * 8 * page_words))
        self._directory = np.zeros(entries, np.int64)
        self._table = np.zeros(self.slabs_max * SLAB_ENTRY_WORDS, np.int64)
        self._slabs = np.empty(self.slabs_max * slab_bytes + 64, np.uint8)
        self._start = -address(self._slabs) % 64
        self.context = address(self.words)
        self._describe(page_words, protected_ops, outbox_bytes - reserve_bytes)

    def _describe(self, page_words: int, protected_ops: int, full_bytes: int) -> None:
        self.set(MEMORY, address(self._slabs) + self._start)
        self.set(SLAB_SHIFT, self.slab_bytes.bit_length() - 1)
        self.set(SLAB_TABLE, address(self._table))
        self.set(EMPTY_SLAB, -1)
        self.set(DIRECTORY, address(self._directory))
        self.set(DIRECTORY_LINES, len(self._directory) // 8)
        self.set(PAGES_LIMIT, 3 * len(self._directory) // 4)
        self.set(OUTBOX, address(self.outbox))
        self.set(OUTBOX_FULL, full_bytes)
        self.set(TREE_CLASS, int(class_for(page_words - HEAD_WORDS)))
        self.set(PROTECTED, protected_ops)
        self.set(RANDOM, 1)
        self.set(EPOCH, 1)
        self.set(NEXT_ID, 1)
        for size_class in range(CLASSES):
            self.set(PARTIAL_SLAB + 8 * size_class, -1)

    def get(self, word: int) -> int:
        """Return a word of the context, by its offset in bytes."""
        return int(self.words[word >> 3])

    def set(self, word: int, value: int) -> None:
        """Set a word of the context, by its offset in bytes."""
        self.words[word >> 3] = value

    def grow(self) -> bool:
        """Touch and add the next empty slabs, after a kernel found no free block. False at the limit."""
        slabs = self.get(SLABS)
        more = min(self.slabs_max - slabs, max(1, _STEP_BYTES // self.slab_bytes))
        if more == 0:
            return False
        begin = self._start + slabs * self.slab_bytes
        self._slabs[begin : begin + more * self.slab_bytes] = 0
        for slab in range(slabs + more - 1, slabs - 1, -1):
            add_empty_slab(self.context, slab)
        self.set(SLABS, slabs + more)
        return True

    @property
    def size_bytes(self) -> int:
        """Memory in use, the untouched part of the slabs left out."""
        fixed = (
            self.words.nbytes
            + self.inbox.nbytes
            + self.outbox.nbytes
            + self._directory.nbytes
            + self._table.nbytes
        )
        return fixed + self.get(SLABS) * self.slab_bytes
