"""The distributions of made-up events: Zipf ranks, a clock with the rhythm of a week, and numbered names."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

WEEK_MS = 7 * 24 * 3600 * 1000
A_MONDAY_MS = 4 * 24 * 3600 * 1000  # 1970-01-05 00:00 UTC
_MINUTES_IN_DAY = 24 * 60

# Greater than any number of names, and a prime: multiplying by it permutes the numbers below any n.
_SCATTER = 2_654_435_761
NAMES_MAX = 1_000_000_000

# Expected events by hour of the day (quiet at four, busy at noon and in the evening) and by day from Monday;
# only their proportions matter.
_BY_HOUR = (4, 3, 2, 2, 2, 3, 6, 10, 14, 16, 18, 21, 24, 22, 19, 18, 19, 22, 25, 24, 19, 14, 10, 6)
_BY_DAY = (19, 19, 20, 21, 25, 27, 17)


@lru_cache(maxsize=8)
def _zipf_cumulative(n: int, exponent: float) -> Float64Array:
    cumulative = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    cumulative /= cumulative[-1]
    return cumulative


def zipf(rng: np.random.Generator, n: int, exponent: float, size: int) -> Int64Array:
    """Return `size` numbers in [0, n), int64. The share of the k-th most frequent is proportional to k^-exponent.

    An exponent of 0 makes all equally frequent. Which number is frequent is scattered over the range.
    """
    if not 0 < n <= NAMES_MAX:
        raise ValueError(f"{n} names: between 1 and {NAMES_MAX} can be drawn from")
    if exponent == 0:
        return rng.integers(n, size=size, dtype=np.int64)
    ranks = np.searchsorted(_zipf_cumulative(n, exponent), rng.random(size), side="right")
    scattered: Int64Array = ranks.astype(np.int64) * _SCATTER % n
    return scattered


class WeeklyClock:
    """Event times whose density follows the hours of the day and the days of the week (UTC).

    Times are reached through *operational time*, in which one event is expected per unit.
    """

    def __init__(self, start_ms: int, rate_per_s: float, rhythm: bool) -> None:
        """Begin at `start_ms` with `rate_per_s` events per second of event time, on average over a week."""
        hours = np.interp(np.arange(_MINUTES_IN_DAY) / 60, np.arange(24) + 0.5, _BY_HOUR, period=24)
        density = np.outer(_BY_DAY, hours).ravel() if rhythm else np.ones(7 * _MINUTES_IN_DAY)
        events_in_week = rate_per_s * WEEK_MS / 1000
        self._cumulative = np.concatenate(([0.0], np.cumsum(density / density.sum()))) * events_in_week
        self._cumulative[-1] = events_in_week
        self._minute_ms = np.arange(len(self._cumulative)) * 60_000.0
        into_week_ms = (start_ms - A_MONDAY_MS) % WEEK_MS
        self._monday_ms = start_ms - into_week_ms
        self._origin = float(np.interp(into_week_ms, self._minute_ms, self._cumulative))

    def times_ms(self, operational: Float64Array) -> Int64Array:
        """Return event times (int64 ms) at operational times counted from the start, in the same order."""
        weeks, rest = np.divmod(operational + self._origin, self._cumulative[-1])
        within_ms = np.interp(rest, self._cumulative, self._minute_ms)
        times: Int64Array = self._monday_ms + weeks.astype(np.int64) * WEEK_MS + within_ms.astype(np.int64)
        return times


def numbered(prefix: str, numbers: Int64Array, digits: int) -> Any:
    """Return Arrow strings: the prefix (ASCII) and each number in [0, 10^digits) with leading zeros."""
    if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < 10**digits:
        raise ValueError(f"{numbers.min()} to {numbers.max()} do not fit {digits} digits")
    width = len(prefix) + digits
    text = np.empty((len(numbers), width), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix.encode("ascii"), dtype=np.uint8)
    rest = numbers
    for place in range(width - 1, len(prefix) - 1, -1):
        rest, digit = np.divmod(rest, 10)
        text[:, place] = digit + ord("0")
    offsets = np.arange(0, text.size + 1, width, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text))
