"""The page pool: pages of trees, strings and wide accumulators, in bounded memory, all of them stored.

Kernels reach it through one address, `PagePool.context`.  Where a kernel answers with a status, `handle`
does what is asked for; then the kernel is called again.  Bytes of a stored page: FORMAT.md.
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
    """What the pool has done and holds. faults: pages loaded; evictions: times that room was made."""

    pages: int
    size_bytes: int
    operations: int
    faults: int
    evictions: int
    images_written: int
    graves: int


class PagePool:
    """Pages in memory and their traffic with the store; implements `Resident`. One thread uses it.

    limit_bytes bounds all its memory. Raises PoolTooSmallError when one operation does not fit into it,
    PageMissingError and BrokenPageError when the state contradicts itself, StoreError when the store fails.
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
        """Do what a kernel has asked for; then it is called again."""
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
        """Load the pages of these (hi, lo), uint64[n, 2], that are not resident; returns how many it was.

        One look-up for all of them, but never more than a quarter of the pool takes.
        """
        rows = np.ascontiguousarray(ids, np.uint64)
        missing = np.empty(len(rows), np.int64)
        n = int(absent_pages(self.context, address(rows), len(rows), address(missing)))
        requested = list(dict.fromkeys(map(tuple, rows[missing[:n]].view(np.int64).tolist())))
        if requested:
            self._load(requested[: self._memory.pages_at_once])
        return min(len(requested), self._memory.pages_at_once)

    def _load(self, ids: list[tuple[int, int]]) -> None:
        """Load pages that are not resident, by their ids as signed words."""
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
        """Until what `NEEDED` asks for is there: new slabs, then eviction, harder each time."""
        while not blocks_there(self.context):
            if not self._memory.grow():
                break
        else:
            return
        self._evictions += 1
        protected = self._memory.get(PROTECTED)
        # Twice round each time: a slab can be emptied when the hand has been at all of its pages.
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
        """Nothing waits for it."""

    def meta(self) -> bytes:
        """What belongs into the commit record of a checkpoint, taken when its epoch closes."""
        words = (NEXT_ID, GRAVES, GRAVES_COUNT)
        return _META.pack(*(self._memory.get(word) for word in words))

    def restore(self, meta: bytes) -> None:
        """Go on from the `meta` of the last committed checkpoint: on an empty pool, before anything else."""
        for word, value in zip((NEXT_ID, GRAVES, GRAVES_COUNT), _META.unpack(meta)):
            self._memory.set(word, value)

    @property
    def has_made_pages(self) -> bool:
        """Has there ever been a page that is no string? Where there was none, no cell refers to one."""
        return self._memory.get(NEXT_ID) > _FIRST_ID

    # --- the map of deferred pages, reading, numbers -----------------------------------------------------------

    def free_deferred(self, limit: int) -> int:
        """Free at most `limit` pages of dropped maps; returns how many roots are still waiting."""
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
        """All entries of the map with this root cell (its address), in order: uint64[n, 2 + value_words]."""
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
        """Counts since the start, and what is held now."""
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
