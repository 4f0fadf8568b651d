"""Makes room for rows: evicts rows of the same width, or a whole segment of another width that was used long ago.

`EntityTable` has one `RowEviction`. It also writes the images that must reach the store before rows leave.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from railgun.state.errors import BatchTooLargeError
from railgun.state.resident import Image
from railgun.state.rows.access import row_group
from railgun.state.rows.buffers import IMAGE_BYTES_LIKELY
from railgun.state.rows.context import (
    CLASS_BYTES,
    CLASS_HAND_SEGMENT,
    CLASS_HELD,
    CLASS_LOADED,
    CLASS_SLOTS,
    GROUP_FREE,
    LOW32,
    ROW_TAGS,
    ROWS_EPOCH,
    ROWS_SEGMENT_COUNT,
    ROWS_STAMP,
    SEGMENT_CARVED,
    SEGMENT_CLASS,
    SEGMENT_LIVE,
)
from railgun.state.rows.evict import OUT_FULL, RELEASED, evict_rows, evict_segment
from railgun.state.rows.memory import RowMemory
from railgun.state.rows.slots import class_record, segment_base, segment_record
from railgun.state.store import Store
from reservoir.native.jit import jit, ld64, ldi64, stack_words, sti64

_SAMPLED_SEGMENTS = 8
_SAMPLED_SLOTS = 8
_SAMPLES = _SAMPLED_SEGMENTS * _SAMPLED_SLOTS

# A segment goes to another class if its rows were last used more than this many times longer ago than that class's.
_COLDER = 2


@jit
def typical_age(ctx: int, index: int) -> Any:
    """The median age, in stamps, of a sample of rows from all segments of a class; 0 if it has no rows."""
    record = class_record(ctx, index)
    segments = ldi64(ctx + ROWS_SEGMENT_COUNT)
    ages = stack_words(_SAMPLES)
    count = 0
    stride = max(ldi64(record + CLASS_HELD) // _SAMPLED_SEGMENTS, 1)
    met = 0
    for i in range(segments):
        at = (ldi64(record + CLASS_HAND_SEGMENT) + i) % segments
        segment = segment_record(ctx, at)
        if ldi64(segment + SEGMENT_CLASS) != index:
            continue
        met += 1
        if met % stride != 0 or count + _SAMPLED_SLOTS > _SAMPLES:
            continue
        carved = ldi64(segment + SEGMENT_CARVED)
        for j in range(min(_SAMPLED_SLOTS, carved)):
            slot = j * carved // _SAMPLED_SLOTS if carved > _SAMPLED_SLOTS else j
            row = segment_base(ctx, at) + slot * ldi64(record + CLASS_BYTES)
            if row_group(row) != GROUP_FREE:
                stamp = ld64(row + ROW_TAGS) >> np.uint64(32)
                age = np.int64((ld64(ctx + ROWS_STAMP) - stamp) & LOW32)
                place = count
                while place > 0 and ldi64(ages + 8 * (place - 1)) > age:
                    sti64(ages + 8 * place, ldi64(ages + 8 * (place - 1)))
                    place -= 1
                sti64(ages + 8 * place, age)
                count += 1
    return ldi64(ages + 8 * (count // 2)) if count else np.int64(0)


@jit
def colder_class(ctx: int, index: int, classes: int) -> Any:
    """The class whose rows were unused for longest, if that is much longer than for this class; or -1."""
    own = typical_age(ctx, index)
    found, oldest = np.int64(-1), _COLDER * own
    for other in range(classes):
        if other != index and ldi64(class_record(ctx, other) + CLASS_HELD) > 0:
            age = typical_age(ctx, other)
            if age > oldest:
                found, oldest = np.int64(other), age
    return found


@jit
def is_turn(ctx: int, index: int) -> Any:
    """Whether a class has loaded a segment's worth of rows since a segment of another class was last considered."""
    record = class_record(ctx, index)
    return ldi64(record + CLASS_LOADED) >= ldi64(record + CLASS_SLOTS)


@dataclass(slots=True)
class EvictionStats:
    """Counters since the table was made."""

    evicted: int = 0
    written: int = 0  # images of rows that were evicted
    copied: int = 0  # images copied on write
    pending: int = 0  # images that a checkpoint found
    segments_moved: int = 0


class RowEviction:
    """Makes room in the table's memory, and writes to the store what has to go there first."""

    def __init__(self, memory: RowMemory, store: Store) -> None:
        self.memory = memory
        self._store = store
        self.stats = EvictionStats()

    def fit(self, cells: int) -> None:
        """Make sure that the buffers can hold images of rows of so many cells."""
        if not self.memory.copies.fits(cells):
            self.memory.copies.fit(cells)
        if not self.memory.outgoing.fits(cells):
            self.flush()
            self.memory.outgoing.fit(cells)

    def drain(self, limit_bytes: int | None = None) -> None:
        """Write the images that were copied on write, or about `limit_bytes` of them, of one piece."""
        copies = self.memory.copies
        while not copies.is_empty:
            images = copies.take(limit_bytes)
            self.stats.copied += len(images)
            self._write_old(images)
            if limit_bytes is not None:
                return

    def drain_some(self, limit_bytes: int) -> None:
        """Write about `limit_bytes` of the copied images, of several pieces if needed."""
        copies, left_bytes = self.memory.copies, limit_bytes
        while left_bytes > 0 and not copies.is_empty:
            before_bytes, before = copies.used_bytes, self.stats.copied
            self.drain(left_bytes)
            written = self.stats.copied - before
            left_bytes -= max(before_bytes - copies.used_bytes, written * IMAGE_BYTES_LIKELY)

    def write_pending(self) -> None:
        """Write the images of the old epoch that `gather_pending` found."""
        if self.memory.outgoing.count:
            images = self.memory.outgoing.take()
            self.stats.pending += len(images)
            self._write_old(images)

    def _write_old(self, images: list[Image]) -> None:
        """Write images of rows that stay in memory, and keep them as undo entries of the current epoch, because most
        of these rows will change again.
        """
        self._store.write(images, next_epoch=int(self.memory.context[ROWS_EPOCH // 8]))

    def flush(self) -> None:
        """Write the images that kernels gathered.

        If one of them is of a row that changed in the current epoch, the copied images are written first: one of these
        may be an older image of the same row.
        """
        if self.memory.outgoing.count:
            images, current = self.memory.outgoing.take(), int(self.memory.context[ROWS_EPOCH // 8])
            if any(epoch == current for _, _, epoch, _ in images):
                self.drain()
            self.stats.written += len(images)
            self._store.write(images)

    def make_room(self, index: int, requested: int, group: int) -> None:
        """Free at least one slot for the class `index`, or `requested` slots if that is easy.

        Raises BatchTooLargeError; `group` is named in it.
        """
        context, classes = self.memory.address, len(self.memory.classes)
        if is_turn(context, index):
            self.memory.classes[index, CLASS_LOADED // 8] = 0
            colder = int(colder_class(context, index, classes))
            if colder >= 0 and self._take_segment(colder):
                return
        if not self._evict(index, requested) and not self._take_coldest(index) and not self._take_back():
            raise BatchTooLargeError(group, requested, self.memory.limit_bytes)

    def grow_table(self, group: int) -> None:
        """Double the hash table, taking its memory from the segments. Raises BatchTooLargeError."""
        for _ in range(self.memory.segments_to_withhold()):
            is_free = self.memory.unowned_segments().size or self._take_coldest(-1) or self._take_back()
            if not is_free:
                raise BatchTooLargeError(group, 1, self.memory.limit_bytes)
            self.memory.withhold(int(self.memory.unowned_segments()[-1]))
        self.memory.grow_table()

    def _take_back(self) -> bool:
        """Write the copied images, to get back the segments that were lent for them."""
        self.drain()
        self.memory.copies.shrink()
        return self.memory.unowned_segments().size > 0

    def _evict(self, index: int, requested: int) -> bool:
        total, goes_on = 0, True
        while goes_on and total < requested:
            evicted, goes_on = evict_rows(self.memory.address, index, requested - total)
            total += evicted
            self.flush()
        self.stats.evicted += total
        return total > 0

    def _take_coldest(self, index: int) -> bool:
        """Take a segment from another class: from the one unused for longest that can give one."""
        context = self.memory.address
        others = [other for other in range(len(self.memory.classes)) if other != index]
        others.sort(key=lambda other: -int(typical_age(context, other)))
        return any(self._take_segment(other) for other in others)

    def _take_segment(self, index: int) -> bool:
        """Evict all rows of one segment of a class. The segment then belongs to no class."""
        context, segments = self.memory.address, self.memory.segments
        own = np.flatnonzero(segments[:, SEGMENT_CLASS // 8] == index)
        hand = int(self.memory.classes[index, CLASS_HAND_SEGMENT // 8])
        for at in np.roll(own, -int(np.searchsorted(own, hand))).tolist():
            live = int(segments[at, SEGMENT_LIVE // 8])
            status = OUT_FULL
            while status == OUT_FULL:
                status = evict_segment(context, at)
                self.flush()
            if status == RELEASED:
                self.stats.evicted += live
                self.stats.segments_moved += 1
                return True
        return False
