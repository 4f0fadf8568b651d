"""Keeps the open region's slots sorted: an insert moves 4-byte entries only, once per batch."""

from typing import Any

from reservoir.native.jit import copy_bytes, jit, ld32, ldi64, move_bytes, st32


@jit
def upper_bound(times: int, order: int, start: int, end: int, time: int) -> Any:
    """First place in order[start:end] whose row is later than `time`; `end` where none is."""
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
    """Merge source[low:middle] and source[middle:high] into target, equal times in their order."""
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
    """Stable merge sort of uint32 slots by time; returns the address that holds the result."""
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
    """Merge n sorted slots into order[start:end], behind rows of equal time; order has room for n more.

    From the latest down: one binary search and one block move each, so that what lies before the earliest
    new row is not touched.
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
