"""Decides which records of a batch are accepted, and at which time they count: duplicates, lateness and the task's
clock.

One compiled pass over a batch, in log order (docs/semantics.md: Lateness, Identity). The duplicate memory is a ring
of the last `dedup_events` accepted ids (128-bit hashes), with an open-addressing index over it. So the horizon is
exact: the id that is forgotten is always the oldest one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reservoir.cursors.edges import bound_of
from reservoir.native.jit import address, jit, ld8, ld32, ld64, ldi64, prefetch, st8, st32, st64, sti64

TIME_MAX = 2**63 - 1
TIME_MIN = -(2**63)
"""The clock before the first accepted event. docs/semantics.md calls it minus infinity."""

REPEAT_WITH_REPLY, REPEAT_WITHOUT_REPLY = 1, 2
"""The two cases of a record of an input topic that comes again: its reply is kept and repeated; or its reply is gone,
because it was answered for good, and is not repeated.
"""

LATE_REWRITTEN, LATE_DISCARDED = 1, 2

# Context words of `admit`, in this order.
(
    _N,
    _STATUS,
    _TIME,
    _ID_HI,
    _ID_LO,
    _ACCEPTED,
    _LATE,
    _DUPLICATE,
    _AT,
    _CLOCK_AFTER,
    _CLOCK,
    _FLOOR,
    _LATENESS,
) = range(13)
(_DISCARD, _RING_HI, _RING_LO, _RING_NEXT, _RING_COUNT, _RING_SIZE, _INDEX, _INDEX_MASK, _LEAST) = range(
    13, 22
)
_MET = 22  # uint8[n] (MET_...), or 0: every record is met for the first time
# While the index grows: the previous index, from which entries _MOVED to _OLD_COUNT are still to be moved.
(_OLD_INDEX, _OLD_MASK, _MOVED, _OLD_COUNT) = range(23, 27)
_WORDS = 27

_u = np.uint64
_FIRST_SLOTS = 2048
_MOVED_PER_ID = 4  # so that a doubled index is complete long before it is full
_AHEAD = 12  # records ahead that the index is asked for


@jit
def _find(ctx: Any, hi: Any, lo: Any) -> Any:
    """Return 1 if an id is among the remembered ones."""
    if _is_in(ctx, ldi64(ctx + _INDEX * 8), ldi64(ctx + _INDEX_MASK * 8), hi, lo):
        return 1
    old = ldi64(ctx + _OLD_INDEX * 8)
    if old != 0 and _is_in(ctx, old, ldi64(ctx + _OLD_MASK * 8), hi, lo):
        return 1
    return 0


@jit
def _is_in(ctx: Any, index: Any, mask: Any, hi: Any, lo: Any) -> Any:
    ring_hi, ring_lo = ldi64(ctx + _RING_HI * 8), ldi64(ctx + _RING_LO * 8)
    at = np.int64(lo & _u(mask))
    while True:
        entry = np.int64(ld32(index + at * 4))
        if entry == 0:
            return False
        if ld64(ring_lo + (entry - 1) * 8) == lo and ld64(ring_hi + (entry - 1) * 8) == hi:
            return True
        at = (at + 1) & mask


@jit
def _enter(ctx: Any, entry: Any, lo: Any) -> Any:
    """Put a ring entry (counted from 1), whose id ends in lo, into the index."""
    index, mask = ldi64(ctx + _INDEX * 8), ldi64(ctx + _INDEX_MASK * 8)
    at = np.int64(lo & _u(mask))
    while ld32(index + at * 4) != np.uint32(0):
        at = (at + 1) & mask
    st32(index + at * 4, np.uint32(entry))


@jit
def take_over(ctx: Any, n: Any) -> Any:
    """Move up to n more entries of the old index into the new one. No id is forgotten as long as some are left."""
    ring_lo = ldi64(ctx + _RING_LO * 8)
    moved, count = ldi64(ctx + _MOVED * 8), ldi64(ctx + _OLD_COUNT * 8)
    end = min(count, moved + n)
    for entry in range(moved, end):
        _enter(ctx, entry + 1, ld64(ring_lo + entry * 8))
    sti64(ctx + _MOVED * 8, end)
    if end == count:
        sti64(ctx + _OLD_INDEX * 8, np.int64(0))


@jit
def _forget(ctx: Any, entry: Any) -> Any:
    """Remove a ring entry (counted from 1) from the index, and close the gap that it leaves in its probe run."""
    ring_lo = ldi64(ctx + _RING_LO * 8)
    index, mask = ldi64(ctx + _INDEX * 8), ldi64(ctx + _INDEX_MASK * 8)
    at = np.int64(ld64(ring_lo + (entry - 1) * 8) & _u(mask))
    while np.int64(ld32(index + at * 4)) != entry:
        at = (at + 1) & mask
    hole = at
    while True:
        at = (at + 1) & mask
        follower = np.int64(ld32(index + at * 4))
        if follower == 0:
            break
        home = np.int64(ld64(ring_lo + (follower - 1) * 8) & _u(mask))
        # The follower may move into the hole unless its home lies cyclically in (hole, at].
        if ((at - home) & mask) >= ((at - hole) & mask):
            st32(index + hole * 4, np.uint32(follower))
            hole = at
    st32(index + hole * 4, np.uint32(0))


@jit
def remember(ctx: Any, hi: Any, lo: Any) -> Any:
    """Append an accepted id. Forgets the oldest id if the ring is full."""
    ring_hi, ring_lo = ldi64(ctx + _RING_HI * 8), ldi64(ctx + _RING_LO * 8)
    size, count, position = (
        ldi64(ctx + _RING_SIZE * 8),
        ldi64(ctx + _RING_COUNT * 8),
        ldi64(ctx + _RING_NEXT * 8),
    )
    if size == 0:
        return
    if ldi64(ctx + _OLD_INDEX * 8) != 0:
        take_over(ctx, np.int64(_MOVED_PER_ID) if count < size else size)
    if count == size:
        _forget(ctx, position + 1)
    else:
        sti64(ctx + _RING_COUNT * 8, count + 1)
    st64(ring_hi + position * 8, hi)
    st64(ring_lo + position * 8, lo)
    _enter(ctx, position + 1, lo)
    sti64(ctx + _RING_NEXT * 8, (position + 1) % size)


@jit
def admit(ctx: Any) -> Any:
    """Decide every record of the batch, in log order. Returns the number of accepted records."""
    n = ldi64(ctx + _N * 8)
    status, time_in = ldi64(ctx + _STATUS * 8), ldi64(ctx + _TIME * 8)
    id_hi, id_lo = ldi64(ctx + _ID_HI * 8), ldi64(ctx + _ID_LO * 8)
    accepted, late, duplicate = (
        ldi64(ctx + _ACCEPTED * 8),
        ldi64(ctx + _LATE * 8),
        ldi64(ctx + _DUPLICATE * 8),
    )
    at, clock_after = ldi64(ctx + _AT * 8), ldi64(ctx + _CLOCK_AFTER * 8)
    clock, floor = ldi64(ctx + _CLOCK * 8), ldi64(ctx + _FLOOR * 8)
    lateness, discard = ldi64(ctx + _LATENESS * 8), ldi64(ctx + _DISCARD * 8)
    horizon = ldi64(ctx + _RING_SIZE * 8)
    index, mask = ldi64(ctx + _INDEX * 8), ldi64(ctx + _INDEX_MASK * 8)
    admitted, least, met = 0, ldi64(ctx + _LEAST * 8), ldi64(ctx + _MET * 8)
    for i in range(n):
        st8(accepted + i, np.uint8(0))
        st8(late + i, np.uint8(0))
        st8(duplicate + i, np.uint8(0))
        sti64(clock_after + i * 8, clock)
        if i + _AHEAD < n:
            prefetch(index + np.int64(ld64(id_lo + (i + _AHEAD) * 8) & _u(mask)) * 4)
        if ld8(status + i) != 0:
            continue
        if met != 0 and ld8(met + i) != 0:
            st8(duplicate + i, np.uint8(ld8(met + i) == REPEAT_WITHOUT_REPLY))
            continue
        hi, lo = ld64(id_hi + i * 8), ld64(id_lo + i * 8)
        if horizon > 0 and _find(ctx, hi, lo) == 1:
            st8(duplicate + i, np.uint8(1))
            continue
        time = ldi64(time_in + i * 8)
        if time < floor:
            if discard != 0:
                st8(late + i, np.uint8(LATE_DISCARDED))
                continue
            st8(late + i, np.uint8(LATE_REWRITTEN))
            time = floor
        remember(ctx, hi, lo)
        st8(accepted + i, np.uint8(1))
        sti64(at + i * 8, time)
        least = min(least, time)
        admitted += 1
        if time > clock:
            clock = time
            floor = max(floor, bound_of(clock, lateness))
            sti64(clock_after + i * 8, clock)
    sti64(ctx + _CLOCK * 8, clock)
    sti64(ctx + _FLOOR * 8, floor)
    sti64(ctx + _LEAST * 8, least)
    return admitted


@jit
def remember_many(ctx: Any, hi_address: Any, lo_address: Any, n: Any) -> Any:
    """Append n accepted ids in order (recovery)."""
    for i in range(n):
        remember(ctx, ld64(hi_address + i * 8), ld64(lo_address + i * 8))


@dataclass(slots=True)
class Admitted:
    """The decisions of `Admission.admit`, one for each record of the batch. The next call reuses the arrays.

    accepted, duplicate: uint8[n].
    late: uint8[n] (LATE_…).
    time_ms: int64[n]; the time at which an accepted event counts.
    clock_ms: int64[n]; T(i) after each record.
    count: how many records were accepted.
    """

    accepted: npt.NDArray[np.uint8]
    late: npt.NDArray[np.uint8]
    duplicate: npt.NDArray[np.uint8]
    time_ms: npt.NDArray[np.int64]
    clock_ms: npt.NDArray[np.int64]
    count: int


class Admission:
    """The clock, the floor and the duplicate memory of one task.

    It takes about 24 bytes of memory for each remembered id. The ring takes memory as it is filled. The index
    doubles, and takes over its entries in small steps.
    """

    def __init__(self, lateness_ms: int, discard: bool, dedup_events: int) -> None:
        self._context: npt.NDArray[np.int64] = np.zeros(_WORDS, np.int64)
        self._words: Any = memoryview(self._context)  # type: ignore[arg-type]
        self.context_address = address(self._context)
        self._context[[_CLOCK, _FLOOR]] = TIME_MIN
        self._context[_LEAST] = TIME_MAX
        self._context[_LATENESS] = lateness_ms
        self._context[_DISCARD] = int(discard)
        self._horizon = dedup_events
        self._bound: tuple[Any, Any, Any] = (None, None, None)
        self._old_index: npt.NDArray[np.uint32] | None = None
        # The rings are allocated at once. The system gives memory only for the parts that are written to.
        self._ring_hi, self._ring_lo = np.zeros(dedup_events, np.uint64), np.zeros(dedup_events, np.uint64)
        self._context[_RING_HI], self._context[_RING_LO] = address(self._ring_hi), address(self._ring_lo)
        self._context[_RING_SIZE] = dedup_events
        self._index: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._allocate_index(_FIRST_SLOTS)
        self._allocate_outputs(256)

    @property
    def clock_ms(self) -> int:
        """T: the greatest accepted time; TIME_MIN before the first event."""
        return int(self._context[_CLOCK])

    @property
    def floor_ms(self) -> int:
        """F: events before it are late."""
        return int(self._context[_FLOOR])

    @property
    def addresses(self) -> tuple[int, int, int, int]:
        """The addresses of the last batch's arrays: status, accepted, time_ms and clock_ms."""
        words = self._words
        return words[_STATUS], words[_ACCEPTED], words[_AT], words[_CLOCK_AFTER]

    @property
    def least_ms(self) -> int:
        """The least time ever accepted; TIME_MAX before the first event."""
        return int(self._words[_LEAST])

    @least_ms.setter
    def least_ms(self, least_ms: int) -> None:
        self._words[_LEAST] = least_ms

    @property
    def has_accepted(self) -> bool:
        """Whether any event has been accepted."""
        return bool(self._words[_CLOCK] > TIME_MIN or self._words[_LEAST] == TIME_MIN)

    def restore(self, clock_ms: int, floor_ms: int) -> None:
        """Set the clock and the floor to those of a checkpoint."""
        self._context[_CLOCK], self._context[_FLOOR] = clock_ms, floor_ms

    @property
    def settings_in_force(self) -> tuple[int, int, int, bool]:
        """The clock, the floor, the lateness and `discard` before the next record, as the journal notes them."""
        words = self._words
        return words[_CLOCK], words[_FLOOR], words[_LATENESS], bool(words[_DISCARD])

    def set_lateness(self, lateness_ms: int, *, discard: bool) -> None:
        """Set the lateness and the late policy. This changes the floor at once, but never lowers it."""
        self._context[_LATENESS], self._context[_DISCARD] = lateness_ms, int(discard)
        if self.clock_ms > TIME_MIN:
            self._context[_FLOOR] = max(self.floor_ms, self.clock_ms - lateness_ms)

    def admit(
        self,
        status: npt.NDArray[np.uint8],
        time_ms: npt.NDArray[np.int64],
        id_hi: Any,
        id_lo: Any,
        n: int,
        met: npt.NDArray[np.uint8] | None = None,
    ) -> Admitted:
        """Decide n records in log order. A record whose status is not 0 could not be read, and is never accepted.

        met: 0 or MET_... for each record; None if none was read again from an input topic.
        """
        self._bind(n, status, time_ms, id_hi, id_lo)
        self._words[_MET] = 0 if met is None else address(met)
        return self._admitted(n, int(admit(self.context_address)))

    def readmit(
        self, accepted: npt.NDArray[np.uint8], time_ms: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return again at which times the records count that a checkpoint marks as accepted, under the clock, floor and
        lateness that are set; advance the clock and the floor. The memory of duplicates does not change.

        accepted: uint8[n]. time_ms: int64[n]; those of other records are not looked at.
        """
        words, lateness_ms = self._words, int(self._words[_LATENESS])
        times = np.where(accepted != 0, time_ms, TIME_MIN)
        # A floor is at or before its clock, so the clock is the greatest time so far.
        clocks = np.maximum.accumulate(np.concatenate(([self.clock_ms], times)))
        floors = np.maximum(np.maximum(clocks, TIME_MIN + lateness_ms) - lateness_ms, self.floor_ms)
        words[_CLOCK], words[_FLOOR] = int(clocks[-1]), int(floors[-1])
        counted: npt.NDArray[np.int64] = np.maximum(times, floors[:-1])
        return counted

    def _bind(self, n: int, status: Any, time_ms: Any, id_hi: Any, id_lo: Any) -> None:
        """Set where a batch is. The addresses of an array are looked up again only if it is not that of the last
        batch.
        """
        if n > self._capacity:
            self._allocate_outputs(max(n, 2 * self._capacity))
        self._make_room(n)
        words = self._words
        words[_N] = n
        if status is not self._bound[0] or time_ms is not self._bound[1] or id_lo is not self._bound[2]:
            self._bound = status, time_ms, id_lo
            words[_STATUS], words[_TIME] = address(status), address(time_ms)
            words[_ID_HI], words[_ID_LO] = address(id_hi), address(id_lo)

    def _admitted(self, n: int, count: int) -> Admitted:
        return Admitted(
            self._accepted[:n],
            self._late[:n],
            self._duplicate[:n],
            self._at[:n],
            self._clock_after[:n],
            count,
        )

    def expect(self, n: int) -> None:
        """Make room in the index for the ids that will be recalled, in one step instead of many doublings."""
        self._make_room(n)

    def recall(self, ids: npt.NDArray[np.uint64]) -> None:
        """Append accepted ids to the duplicate memory, oldest first, after those that were recalled before.

        ids: uint64[n][2], hi and lo.
        """
        id_hi, id_lo = np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1])
        self._make_room(len(ids))
        remember_many(self.context_address, address(id_hi), address(id_lo), len(ids))

    def _make_room(self, n: int) -> None:
        """Double the index, if needed, so that it is still half empty with n more ids. It never holds more ids than
        `dedup_events`.
        """
        words = self._words
        if self._old_index is not None and not words[_OLD_INDEX]:
            self._old_index = None
        entries = min(self._horizon, words[_RING_COUNT] + n)
        slots = words[_INDEX_MASK] + 1
        if 2 * entries > slots:
            while slots < 2 * entries:
                slots *= 2
            self._allocate_index(slots)

    def _allocate_index(self, slots: int) -> None:
        """Allocate an index of this many slots. It will take over the entries of the present one."""
        words, count = self._words, self._words[_RING_COUNT]
        if words[_OLD_INDEX]:
            take_over(self.context_address, count)
        if count:
            self._old_index = self._index
            words[_OLD_INDEX], words[_OLD_MASK] = words[_INDEX], words[_INDEX_MASK]
            words[_MOVED], words[_OLD_COUNT] = 0, count
        self._index = np.zeros(slots, np.uint32)
        words[_INDEX], words[_INDEX_MASK] = address(self._index), slots - 1

    def _allocate_outputs(self, n: int) -> None:
        self._capacity = n
        self._accepted, self._late, self._duplicate = (np.zeros(n, np.uint8) for _ in range(3))
        self._at, self._clock_after = (np.zeros(n, np.int64) for _ in range(2))
        context = self._context
        context[_ACCEPTED], context[_LATE] = address(self._accepted), address(self._late)
        context[_DUPLICATE], context[_AT] = address(self._duplicate), address(self._at)
        context[_CLOCK_AFTER] = address(self._clock_after)
