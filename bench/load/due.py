"""Waits until what is to be sent is due."""

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# A sender wakes so often at most: at thousands of events a second it would take a core from what it measures. What that
# adds to a latency counts.
_TICK_NS = 1_000_000


def due_together(due_ns: NDArray[np.int64], most: int, end_ns: int) -> Iterator[tuple[int, int, int]]:
    """Yield the places from and before which requests are due by now, and that time, until all were.

    What becomes due while the caller sends is yielded after that.

    due_ns: int64[n], in order, by time.monotonic_ns().  most: how many at a time.  end_ns: nothing is yielded from
    then on.
    """
    place, wake_ns = 0, 0
    while place < len(due_ns):
        now_ns = time.monotonic_ns()
        if now_ns >= end_ns:
            return
        early_ns = max(int(due_ns[place]), wake_ns) - now_ns
        if early_ns > 0:
            time.sleep(early_ns / 1e9)
            continue
        wake_ns = now_ns + _TICK_NS
        after = min(int(np.searchsorted(due_ns, now_ns, "right")), place + most)
        yield place, after, now_ns
        place = after
