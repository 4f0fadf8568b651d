"""The page pool keeps pages of trees, strings and wide accumulators in bounded memory, and the rest in the store.

A task has one. Its kernels reach the pool through one address, `PagePool.context`. A kernel that cannot continue
returns a status (`railgun/state/status.py`). `handle` then does what the status asks for, and the caller calls the
kernel again. The bytes of a stored page are described in FORMAT.md.

The words GRAVES and GRAVES_COUNT of the context are the root of the map of deferred pages. These are pages of
dropped maps that are still to be freed.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from railgun.state.errors import EpochOrderError
from railgun.state.keys import page_key, string_key
from railgun.state.paged.access import absent_pages, load_page
from railgun.state.paged.blocks import blocks_there
from railgun.state.paged.errors import BrokenPageError, PageMissingError, PoolTooSmallError
from railgun.state.paged.eviction import age_to_evict, make_room, scan_old
from railgun.state.paged.images import ItemStore, Outbox
from railgun.state.paged.layout import (
    CLOCK,
    DIRTY_NOW,
    DIRTY_OLD,
    EPOCH,
    FAULT_HI,
    FAULT_LO,
    GRAVES,
    GRAVES_COUNT,
    NEXT_ID,
    OUTBOX_USED,
    PAGES,
    PROTECTED,
    SCAN_BLOCK,
    SCAN_SLAB,
)
from railgun.state.paged.memory import PageMemory
from railgun.state.paged.ordered_map import free_deferred_page, om_scan
from railgun.state.paged.outbox import BODY_HEAD_BYTES
from railgun.state.paged.strings import load_absent_string
from railgun.state.resident import Image
from railgun.state.status import DONE, DRAIN, FAULT, ROOM
from reservoir.native.jit import address

_META = struct.Struct("<QQQ")
_FIRST_ID = 1
_WORD = 0xFFFF_FFFF_FFFF_FFFF
_EVICT_BYTES = 96 * 1024
_SCAN_BLOCKS = 65_536
_WALK_ENTRIES = 256


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Counters of a pool since its start, and what it holds now.

    pages: how many are in memory. size_bytes: all memory in use.
    operations: ticks of the pool's clock. faults: pages loaded. evictions: how often pages were evicted to make room.
    images_written: pages and deletions written to the store. graves: entries of the map of deferred pages.
    """

    pages: int
    size_bytes: int
    operations: int
    faults: int
    evictions: int
    images_written: int
    graves: int


class PagePool:
    """Keeps pages in memory, and exchanges them with the store. Implements `Resident`. One thread uses it.

    limit_bytes: bounds all its memory. The other parameters are explained at `PageMemory`.
    Raises PoolTooSmallError if one operation does not fit into the memory, PageMissingError and BrokenPageError if
    the state contradicts itself, and StoreError if the store fails.
    """

    def __init__(
        self,
        limit_bytes: int,
        store: ItemStore,
        *,
        page_words: int = 256,
        slab_bytes: int = 128 * 1024,
        protected_ops: int = 32,
    ) -> None:
        self._memory = PageMemory(limit_bytes, page_words, slab_bytes, protected_ops)
        self._limit_bytes = limit_bytes
        self._store = store
        self.context = self._memory.context
        self._outbox = Outbox(self._memory, store)
        self._inbox = address(self._memory.inbox)
        self._inbox_bytes = self._memory.inbox.data.cast("B")
        self._faults = self._evictions = 0

    # --- serving kernels ---------------------------------------------------------------------------

    def handle(self, status: int) -> None:
        """Do what a kernel's status asks for. The caller then calls the kernel again."""
        if status == FAULT:
            hi, lo = self._memory.get(FAULT_HI), self._memory.get(FAULT_LO)
            self._load([(hi, lo)])
        elif status == ROOM:
            self._make_room()
        elif status == DRAIN:
            self.drain()
        else:
            raise BrokenPageError(status)

    def prefetch(self, ids: np.ndarray[Any, np.dtype[np.uint64]]) -> int:
        """Load those pages that are not resident, in one look-up. Returns how many were loaded.

        ids: uint64[n, 2], the ids of the pages as (hi, lo). At most a quarter of the pool is loaded.
        """
        rows = np.ascontiguousarray(ids, np.uint64)
        missing = np.empty(len(rows), np.int64)
        n = int(absent_pages(self.context, address(rows), len(rows), address(missing)))
        requested = list(dict.fromkeys(map(tuple, rows[missing[:n]].view(np.int64).tolist())))
        if requested:
            self._load(requested[: self._memory.pages_at_once])
        return min(len(requested), self._memory.pages_at_once)

    def _load(self, ids: list[tuple[int, int]]) -> None:
        """Load pages that are not resident. ids: (hi, lo) as signed words."""
        names = [string_key(hi & _WORD, lo & _WORD) if hi < 0 else page_key(hi, lo & _WORD) for hi, lo in ids]
        for (hi, lo), key, (epoch, body) in zip(ids, names, self._store.get(names)):
            while (status := self._admit(hi, lo, key, epoch, body)) == ROOM:
                self._make_room()
            if status < 0:
                raise PageMissingError(key, "what is stored does not describe itself")
            self._faults += 1

    def _admit(self, hi: int, lo: int, key: bytes, epoch: int, body: bytes | None) -> int:
        if body is None:
            if hi >= 0:
                raise PageMissingError(key, "it is not stored")
            return int(load_absent_string(self.context, hi, lo, epoch))
        size_bytes = len(body)
        if not BODY_HEAD_BYTES <= size_bytes <= len(self._inbox_bytes):
            raise PageMissingError(key, f"a body of {size_bytes} bytes")
        self._inbox_bytes[:size_bytes] = body
        return int(load_page(self.context, hi, lo, epoch, self._inbox, size_bytes))

    def _make_room(self) -> None:
        """Make the blocks free that the context's `NEEDED` asks for: add slabs, else evict, harder each time."""
        while not blocks_there(self.context):
            if not self._memory.grow():
                break
        else:
            return
        self._evictions += 1
        protected = self._memory.get(PROTECTED)
        # Each age is tried twice, because a slab can be emptied only after the hand has passed all of its pages.
        last_resort = 1 + protected // 8
        for age in (int(age_to_evict(self.context)), protected, protected, last_resort, last_resort):
            work_bytes = min(_EVICT_BYTES, self._memory.size_bytes // 16)
            status = DRAIN
            while status == DRAIN:
                status = make_room(self.context, age, work_bytes)
                self.drain()
            if status == DONE:
                return
        raise PoolTooSmallError(self._limit_bytes, 2 * self._limit_bytes)

    # --- checkpoints (`Resident`) ------------------------------------------------------------------

    def set_epoch(self, epoch: int) -> None:
        if self._memory.get(DIRTY_OLD) or epoch < self._memory.get(EPOCH):
            raise EpochOrderError(f"epoch {epoch} begins, {self._memory.get(DIRTY_OLD)} old pages unwritten")
        if epoch != self._memory.get(EPOCH):
            self._memory.set(DIRTY_OLD, self._memory.get(DIRTY_NOW))
            self._memory.set(DIRTY_NOW, 0)
        self._memory.set(EPOCH, epoch)
        self._memory.set(SCAN_SLAB, 0)
        self._memory.set(SCAN_BLOCK, 0)

    def pending(self, old_epoch: int, limit_bytes: int) -> list[Image]:
        if old_epoch != self._memory.get(EPOCH) - 1:
            raise EpochOrderError(f"images of epoch {old_epoch} in epoch {self._memory.get(EPOCH)}")
        self.drain()
        scan_old(self.context, limit_bytes, _SCAN_BLOCKS)
        return self._outbox.take()

    def drain(self, limit_bytes: int | None = None) -> None:
        self._outbox.drain()

    def exhausted(self) -> bool:
        return self._memory.get(DIRTY_OLD) == 0 and self._memory.get(OUTBOX_USED) == 0

    def committed(self, epoch: int) -> None:
        """Do nothing: no work of the pool waits for a checkpoint."""

    def meta(self) -> bytes:
        """Return the pool's part of a checkpoint's commit record. Called when the epoch closes."""
        words = (NEXT_ID, GRAVES, GRAVES_COUNT)
        return _META.pack(*(self._memory.get(word) for word in words))

    def restore(self, meta: bytes) -> None:
        """Continue from the `meta` of the last committed checkpoint. Must be the first call on an empty pool."""
        for word, value in zip((NEXT_ID, GRAVES, GRAVES_COUNT), _META.unpack(meta)):
            self._memory.set(word, value)

    @property
    def has_made_pages(self) -> bool:
        """Whether the pool has ever made a page that is not a string. If not, no cell refers to such a page."""
        return self._memory.get(NEXT_ID) > _FIRST_ID

    # --- the map of deferred pages, reading, numbers -----------------------------------------------------------

    def free_deferred(self, limit: int) -> int:
        """Free at most `limit` pages of dropped maps. Returns how many entries the map of deferred pages still has."""
        if self._memory.get(GRAVES_COUNT) == 0:
            return 0
        # The keys of the map of deferred pages are (id, 0); ids of pages are (0, id).
        self.prefetch(next(self.walk(self.context + GRAVES, 1))[:limit, 1::-1])
        freed = 0
        while freed < limit:
            status = int(free_deferred_page(self.context))
            if status < 0:
                self.handle(status)
            elif status == 0:
                break
            else:
                freed += 1
        return self._memory.get(GRAVES_COUNT)

    def walk(self, root: int, value_words: int) -> Iterator[np.ndarray[Any, np.dtype[np.uint64]]]:
        """Iterate over all entries of a map in order, in arrays uint64[n, 2 + value_words].

        root: the address of the map's root cell.
        """
        buffer = np.empty((_WALK_ENTRIES, 2 + value_words), np.uint64)
        k0 = k1 = 0
        while True:
            n = int(om_scan(self.context, root, np.uint64(k0), np.uint64(k1), address(buffer), _WALK_ENTRIES))
            if n < 0:
                self.handle(n)
                continue
            if n == 0:
                return
            yield buffer[:n].copy()
            following = (int(buffer[n - 1, 0]) << 64 | int(buffer[n - 1, 1])) + 1
            if following >> 128:
                return
            k0, k1 = following >> 64, following & _WORD

    def stats(self) -> PoolStats:
        """Return the counters since the start, and what the pool holds now."""
        memory = self._memory
        return PoolStats(
            pages=memory.get(PAGES),
            size_bytes=memory.size_bytes,
            operations=memory.get(CLOCK),
            faults=self._faults,
            evictions=self._evictions,
            images_written=self._outbox.written,
            graves=memory.get(GRAVES_COUNT),
        )
