"""The arrays of the open region: slots for rows, an arena for their bytes, and the order of the rows by time.

Slots and arena are rings: space is reused in the order of arrival. A batch moves only 4-byte entries of the order.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir.columns import ColumnKind
from reservoir.frames import (
    COLUMN_COUNT,
    COLUMN_HEAP,
    COLUMN_KIND,
    COLUMN_NULLS,
    COLUMN_PAIRS,
    COLUMN_ROW_CACHE,
    COLUMN_WORDS,
    COLUMN_WORDS_AT,
)
from reservoir.layout import SLOT_FREE, SLOT_OPEN
from reservoir.native.jit import address, copy_bytes, jit, ld32, ld64, ldi64, move_bytes, st32, st64


@jit
def upper_bound(times: int, order: int, start: int, end: int, time: int) -> Any:
    """First place in order[start:end] whose row is later than `time`; `end` if there is none."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if ldi64(times + ld32(order + middle * 4) * 8) <= time:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _merge_runs(times: int, source: int, target: int, low: int, middle: int, high: int) -> None:
    """Merge source[low:middle] and source[middle:high] into target. Rows of equal time keep their order."""
    left, right = low, middle
    for k in range(low, high):
        if left < middle and (
            right >= high
            or ldi64(times + ld32(source + left * 4) * 8) <= ldi64(times + ld32(source + right * 4) * 8)
        ):
            st32(target + k * 4, ld32(source + left * 4))
            left += 1
        else:
            st32(target + k * 4, ld32(source + right * 4))
            right += 1


@jit
def sort_slots(times: int, slots: int, scratch: int, n: int) -> Any:
    """Sort uint32 slots by time, with a stable merge sort. Returns the address of the result: slots or scratch."""
    source, target = slots, scratch
    width = 1
    while width < n:
        low = 0
        while low < n:
            middle, high = min(low + width, n), min(low + 2 * width, n)
            _merge_runs(times, source, target, low, middle, high)
            low = high
        source, target = target, source
        width *= 2
    return source


@jit
def merge_slots(times: int, order: int, start: int, end: int, slots: int, n: int) -> None:
    """Merge n sorted slots into order[start:end], behind rows of equal time. The order must have room for n more.

    It begins with the latest slot. Each slot takes one binary search and one block move, so entries before the earliest
    new row are not touched.
    """
    tail = end
    for k in range(n - 1, -1, -1):
        slot = ld32(slots + k * 4)
        place = upper_bound(times, order, start, tail, ldi64(times + slot * 8))
        count = (tail - place) * 4
        if count <= (k + 1) * 4:
            copy_bytes(order + (place + k + 1) * 4, order + place * 4, count)
        else:
            move_bytes(order + (place + k + 1) * 4, order + place * 4, count)
        st32(order + (place + k) * 4, slot)
        tail = place


_u = np.uint64
_LENGTH = np.uint64(0xFFFFFF)


@dataclass(frozen=True, slots=True)
class OpenColumn:
    """One hot column by slot. ENTITY uses pairs and cache, WORD and STRING use words and nulls; the rest is empty."""

    kind: ColumnKind
    words: NDArray[np.uint64]
    nulls: NDArray[np.uint8]
    pairs: NDArray[np.uint64]
    cache: NDArray[np.int64]

    @classmethod
    def empty(cls, kind: ColumnKind, capacity: int) -> "OpenColumn":
        plain, hashed = (0, capacity) if kind is ColumnKind.ENTITY else (capacity, 0)
        return cls(
            kind,
            np.zeros(plain, np.uint64),
            np.zeros(plain, np.uint8),
            np.zeros((hashed, 2), np.uint64),
            np.zeros((hashed, 2), np.int64),
        )

    def descriptor(self, arena: int) -> list[int]:
        """The COLUMN_ words of frame 0."""
        words = [0] * COLUMN_WORDS
        words[COLUMN_KIND] = int(self.kind)
        if self.kind is ColumnKind.ENTITY:
            words[COLUMN_PAIRS], words[COLUMN_ROW_CACHE] = address(self.pairs), address(self.cache)
            words[COLUMN_COUNT] = len(self.cache)
        else:
            words[COLUMN_WORDS_AT], words[COLUMN_NULLS] = address(self.words), address(self.nulls)
            words[COLUMN_HEAP] = arena
        return words


@dataclass(frozen=True, slots=True)
class Ring:
    """Arrays of `capacity` slots (a power of two), and the arena. See the OPEN_ words in reservoir.layout."""

    capacity: int
    time: NDArray[np.int64]
    seq: NDArray[np.int64]
    ids: NDArray[np.uint64]
    bytes_at: NDArray[np.int64]
    bytes_length: NDArray[np.int64]
    bytes_start: NDArray[np.int64]
    batch_index: NDArray[np.int32]
    state: NDArray[np.uint8]
    arena: NDArray[np.uint8]
    columns: tuple[OpenColumn, ...]

    @classmethod
    def empty(cls, capacity: int, arena_bytes: int, kinds: tuple[ColumnKind, ...]) -> "Ring":
        return cls(
            capacity,
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros((capacity, 2), np.uint64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int64),
            np.zeros(capacity, np.int32),
            np.full(capacity, SLOT_FREE, np.uint8),
            np.zeros(arena_bytes, np.uint8),
            tuple(OpenColumn.empty(kind, capacity) for kind in kinds),
        )

    def with_columns(self, columns: tuple[OpenColumn, ...]) -> "Ring":
        """Return a ring with the same rows and other hot columns."""
        return replace(self, columns=columns)


@jit
def _move_refs(
    refs: int, slots: int, n: int, target: int, targets: int, head: int, mask: int, new_mask: int
) -> None:
    """Rewrite references for an arena of another size: positions stay, but their offsets change."""
    for k in range(n):
        ref = ld64(refs + np.int64(ld32(slots + k * 4)) * 8)
        if ref & _LENGTH:
            place = head + ((np.int64(ref >> _u(24)) - head) & mask)
            ref = (_u(place & new_mask) << _u(24)) | (ref & _LENGTH)
        st64(target + np.int64(ld32(targets + k * 4)) * 8, ref)


@jit
def _move_arena(source: int, mask: int, target: int, new_mask: int, head: int, behind: int) -> None:
    """Copy positions [head, behind) of the arena. No run crosses a multiple of the old size, so none of the new."""
    place = head
    while place < behind:
        size = min(behind, (place | mask) + 1) - place
        copy_bytes(target + (place & new_mask), source + (place & mask), size)
        place += size


def move_ring(
    ring: Ring,
    live: NDArray[np.uint32],
    arrivals: tuple[int, int],
    arena: tuple[int, int],
    rows: int,
    size_bytes: int,
) -> tuple[Ring, int, int]:
    """Make a new ring with the live slots of the old one and room for more. Returns it, its head and its arena's head.

    live: the live slots; they are replaced in place by the new slots.
    arrivals, arena: (head, next) of the rings. rows, size_bytes: for how much more there must be room.
    The new ring is at least half empty, so that the cost for each appended row is constant. It also has room for all
    that the old one held, including sealed rows that wait for the background writer. So a slow writer does not make it
    move again and again.
    """
    head, behind = arrivals
    numbers = head + ((live.astype(np.int64) - head) & (ring.capacity - 1))
    new_head = int(numbers.min()) if len(live) else behind
    starts = ring.bytes_start[live]
    arena_head = int(starts.min()) if len(live) else arena[1]
    capacity = max(
        _power_above(behind - head + rows), _power_above(2 * (behind - new_head + rows)), ring.capacity
    )
    arena_bytes = max(
        _power_above(arena[1] - arena[0] + size_bytes),
        _power_above(2 * (arena[1] - arena_head + size_bytes)),
        len(ring.arena),
    )
    new = Ring.empty(capacity, arena_bytes, tuple(column.kind for column in ring.columns))
    slots = (numbers & (capacity - 1)).astype(np.uint32)
    for name in ("time", "seq", "ids", "bytes_at", "bytes_length", "bytes_start", "batch_index"):
        getattr(new, name)[slots] = getattr(ring, name)[live]
    new.state[slots] = SLOT_OPEN
    _move_arena(
        address(ring.arena), len(ring.arena) - 1, address(new.arena), arena_bytes - 1, arena_head, arena[1]
    )
    for column, fresh in zip(ring.columns, new.columns):
        _move_column(column, fresh, live, slots, arena_head, (len(ring.arena) - 1, arena_bytes - 1))
    live[:] = slots
    return new, new_head, arena_head


def _move_column(
    column: OpenColumn,
    fresh: OpenColumn,
    live: NDArray[np.uint32],
    slots: NDArray[np.uint32],
    head: int,
    masks: tuple[int, int],
) -> None:
    if column.kind is ColumnKind.ENTITY:
        fresh.pairs[slots] = column.pairs[live]
        fresh.cache[slots] = column.cache[live]
        return
    fresh.nulls[slots] = column.nulls[live]
    if column.kind is ColumnKind.WORD:
        fresh.words[slots] = column.words[live]
        return
    _move_refs(
        address(column.words), address(live), len(live), address(fresh.words), address(slots), head, *masks
    )


def _power_above(n: int) -> int:
    return 1 << max(4, int(n - 1).bit_length())
