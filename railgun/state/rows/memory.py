"""The memory of the entity table: one mapped region that is cut into segments, and the tables of the context.

`EntityTable` makes one `RowMemory`. Rows of equal width lie in slots of one segment.
"""

import mmap
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from railgun.state.errors import LayoutError
from railgun.state.rows.buffers import CopyQueue, ImageBuffer, Piece
from railgun.state.rows.context import (
    CLASS_BYTES,
    CLASS_OPEN,
    CLASS_RECORD_BYTES,
    CLASS_SLOTS,
    GROUP_BYTES,
    LENT,
    ROWS_BASE,
    ROWS_CLASSES,
    ROWS_CONTEXT_WORDS,
    ROWS_COPY,
    ROWS_GROUP_COUNT,
    ROWS_GROUPS,
    ROWS_MASK,
    ROWS_OUT,
    ROWS_SALT,
    ROWS_SEGMENT_COUNT,
    ROWS_SEGMENTS,
    ROWS_SHIFT,
    ROWS_TABLE,
    SEGMENT_CLASS,
    SEGMENT_RECORD_BYTES,
    UNOWNED,
    WITHHELD,
    slot_bytes_for,
)
from railgun.state.rows.slots import rehash
from reservoir.native.jit import address

Words = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_ENTRY_BYTES = 16
_SEGMENT_BYTES_MIN = 4 * 1024
_SEGMENT_BYTES_MAX = 1024 * 1024
# Writing this much stalls the task for a millisecond or two.
_BUFFER_BYTES = 128 * 1024
# Copied images are written a piece at a time, which takes half a millisecond. As long as there is room for more, none
# is written while an event waits. Beside their own room they are lent segments that nobody uses: this part of all
# segments at most, and only while this many times the lent memory stays free.
_PIECE_BYTES = 64 * 1024
_COPIES_BYTES_MAX, _COPIES_OF_LIMIT, _LENT_OF_LIMIT = 1024 * 1024, 64, 8
_LEFT = 4
# The first use of memory costs a millisecond or more per 256 KiB. So memory is touched ahead of its use.
_TOUCH_BYTES, _AHEAD_BYTES, _AHEAD_OF_LIMIT = 128 * 1024, 8 * 1024 * 1024, 16


class LentSegments:
    """Lends segments that nobody uses to `CopyQueue`.

    It has no reference to its `RowMemory`, because a cycle would keep the memory until the next garbage collection.
    limit_bytes: the most that is lent. A segment is lent only if four times as much stays free for rows. Otherwise rows
        might need it while it is lent, and would wait for it.
    """

    def __init__(self, segments: Words, content: Bytes, segment_bytes: int, limit_bytes: int) -> None:
        self._classes, self._content = segments[:, SEGMENT_CLASS // 8], content
        self._segment_bytes, self._limit_bytes = segment_bytes, limit_bytes

    def lend(self, least_bytes: int) -> Bytes | None:
        """Lend the memory of one segment, if it has `least_bytes` and may be lent; else return None."""
        size, lent = self._segment_bytes, int((self._classes == LENT).sum())
        unowned = np.flatnonzero(self._classes == UNOWNED)
        if size < least_bytes or (lent + 1) * size > self._limit_bytes or unowned.size <= _LEFT * (lent + 1):
            return None
        at = int(unowned[-1])
        self._classes[at] = LENT
        return self._content[at * size : (at + 1) * size]

    def take_back(self) -> None:
        """Take back all lent segments, which must not be in use any more."""
        self._classes[self._classes == LENT] = UNOWNED


class RowMemory:
    """Holds the arrays of an entity table, and puts their addresses into the context.

    Kernels decide which class owns which segment.
    limit_bytes: bounds segments and hash table together. When the table grows, segments are withheld for it.
    salt: int64, the salt of the hash table.
    The region is mapped at once and never moved or unmapped, so that an old address stays readable. Only used parts
    take memory.
    """

    def __init__(self, limit_bytes: int, segment_bytes: int | None, salt: int) -> None:
        self.limit_bytes = limit_bytes
        self.segment_bytes = segment_bytes or segment_bytes_for(limit_bytes)
        count = max(limit_bytes // self.segment_bytes, 2)
        self._region = mmap.mmap(-1, count * self.segment_bytes)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            # Rows are used in random order. With small pages nearly every access would walk the page table.
            with suppress(OSError):
                self._region.madvise(mmap.MADV_HUGEPAGE)
        self.context: Words = np.zeros(ROWS_CONTEXT_WORDS, np.int64)
        self.address = address(self.context)
        self.segments = np.zeros((count, SEGMENT_RECORD_BYTES // 8), np.int64)
        self.segments[:, SEGMENT_CLASS // 8] = UNOWNED
        self.classes = np.zeros((0, CLASS_RECORD_BYTES // 8), np.int64)
        self.groups = np.zeros((0, GROUP_BYTES // 8), np.int64)
        self._bytes = base = np.frombuffer(self._region, np.uint8)
        self._touched_bytes = 0
        self._watched: tuple[int, int] | None = None
        for word, value in (
            (ROWS_BASE, address(base)),
            (ROWS_SHIFT, self.segment_bytes.bit_length() - 1),
            (ROWS_SEGMENTS, address(self.segments)),
            (ROWS_SEGMENT_COUNT, count),
            (ROWS_SALT, salt),
        ):
            self.context[word // 8] = value
        copies_bytes = min(_COPIES_BYTES_MAX, limit_bytes // _COPIES_OF_LIMIT)
        lent = LentSegments(self.segments, base, self.segment_bytes, limit_bytes // _LENT_OF_LIMIT)
        self.copies = CopyQueue(self.context, ROWS_COPY, _PIECE_BYTES, copies_bytes, lent)
        self.outgoing = ImageBuffer(self.context, ROWS_OUT, Piece.of(np.zeros(_BUFFER_BYTES, np.uint8)))
        self.table: npt.NDArray[np.uint64] = np.zeros((64, 2), np.uint64)
        self.context[ROWS_TABLE // 8] = address(self.table)
        self.context[ROWS_MASK // 8] = len(self.table) - 1

    def class_of(self, cells: int) -> int:
        """Index of the class whose slots hold rows of so many cells. Raises LayoutError if too wide."""
        slot_bytes = slot_bytes_for(cells)
        same = np.flatnonzero(self.classes[:, CLASS_BYTES // 8] == slot_bytes)
        if same.size:
            return int(same[0])
        if slot_bytes > self.segment_bytes:
            raise LayoutError(
                f"a row of {slot_bytes} bytes is wider than a segment of {self.segment_bytes} bytes: "
                "raise the limit of the state's memory"
            )
        self.classes = self._grown(self.classes, len(self.classes) + 1, ROWS_CLASSES)
        record = self.classes[-1]
        record[CLASS_BYTES // 8] = slot_bytes
        record[CLASS_SLOTS // 8] = self.segment_bytes // slot_bytes
        record[CLASS_OPEN // 8] = -1
        return len(self.classes) - 1

    def group_record(self, group: int) -> Words:
        """The record of a group, int64 words. The table of groups grows if the number is new."""
        if group >= len(self.groups):
            self.groups = self._grown(self.groups, group + 1, ROWS_GROUPS)
            self.context[ROWS_GROUP_COUNT // 8] = group + 1
        record: Words = self.groups[group]
        return record

    def _grown(self, table: Words, count: int, word: int) -> Words:
        grown = np.zeros((count, table.shape[1]), np.int64)
        grown[: len(table)] = table
        self.context[word // 8] = address(grown)
        return grown

    # --- the hash table and its share --------------------------------------------------------------

    @property
    def table_bytes(self) -> int:
        """Bytes of the hash table."""
        return self.table.nbytes

    def grow_table(self) -> None:
        """Double the hash table."""
        larger = np.zeros((2 * len(self.table), 2), np.uint64)
        rehash(self.address, address(larger), len(larger))
        self.table = larger

    def segments_to_withhold(self) -> int:
        """How many more segments must be withheld before the hash table may double."""
        withheld = int((self.segments[:, SEGMENT_CLASS // 8] == WITHHELD).sum())
        needed = min(2 * self.table_bytes // self.segment_bytes, len(self.segments) - 1)
        return max(0, needed - withheld)

    def unowned_segments(self) -> npt.NDArray[np.intp]:
        """Indexes of the segments that belong to no class."""
        return np.flatnonzero(self.segments[:, SEGMENT_CLASS // 8] == UNOWNED)

    def withhold(self, at: int) -> None:
        """Take an unowned segment out of use, and return its memory to the system. It reads as zeros from now on."""
        self.segments[at, SEGMENT_CLASS // 8] = WITHHELD
        page = mmap.PAGESIZE
        start = -(-at * self.segment_bytes // page) * page
        end = (at + 1) * self.segment_bytes // page * page
        if end > start:
            self._region.madvise(mmap.MADV_DONTNEED, start, end - start)

    def touch_ahead(self) -> bool:
        """Touch a piece of the memory behind the used part, so that the system provides it. False: enough is there."""
        classes = self.segments[:, SEGMENT_CLASS // 8]
        # Called after each batch. Segments are taken from the front, so the first one behind those in use tells
        # whether any was taken.
        if self._watched is not None and classes.item(self._watched[0]) == self._watched[1]:
            return False
        self._watched = None
        owned, withheld = np.flatnonzero(classes >= 0), np.flatnonzero(classes < UNOWNED)
        used_bytes = (int(owned[-1]) + 1 if owned.size else 0) * self.segment_bytes
        end_bytes = (int(withheld[0]) if withheld.size else len(classes)) * self.segment_bytes
        end_bytes = min(end_bytes, used_bytes + min(_AHEAD_BYTES, self.limit_bytes // _AHEAD_OF_LIMIT))
        start = self._touched_bytes = max(self._touched_bytes, used_bytes)
        if start >= end_bytes:
            behind = min(used_bytes // self.segment_bytes, len(classes) - 1)
            self._watched = behind, classes.item(behind)
            return False
        self._touched_bytes = min(start + _TOUCH_BYTES, end_bytes)
        # No row is there, so this memory may hold anything.
        self._bytes[start : self._touched_bytes : mmap.PAGESIZE] = 0
        return True

    def used_bytes(self) -> int:
        """Bytes of the segments that are in use or lent, and of the hash table."""
        classes = self.segments[:, SEGMENT_CLASS // 8]
        used = int((classes >= 0).sum()) + int((classes == LENT).sum())
        return used * self.segment_bytes + self.table_bytes


def segment_bytes_for(limit_bytes: int) -> int:
    """The bytes of a segment, a power of two: about a 64th of the limit, but 4 KiB to 1 MiB."""
    share = max(limit_bytes // 64, 1)
    return min(max(1 << (share.bit_length() - 1), _SEGMENT_BYTES_MIN), _SEGMENT_BYTES_MAX)
