"""Latencies in a histogram of three digits, from a microsecond to an hour, that merges over processes."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

_LEAST_US, _GREATEST_US, _DIGITS = 1, 3_600_000_000, 3


class Latencies:
    """A histogram of latencies. A latency above an hour counts as an hour."""

    def __init__(self) -> None:
        self._histogram: Any = HdrHistogram(_LEAST_US, _GREATEST_US, _DIGITS)

    def record(self, latencies_ns: NDArray[np.int64]) -> None:
        """Add latencies (int64[n], ns); rounded up to whole microseconds, so that none is 0."""
        micros = np.clip(-(-latencies_ns // 1000), _LEAST_US, _GREATEST_US)
        for value, count in zip(*(each.tolist() for each in np.unique(micros, return_counts=True))):
            self._histogram.record_value(value, count)

    def add(self, other: Self) -> None:
        """Add all latencies of another histogram."""
        self._histogram.add(other._histogram)

    def __len__(self) -> int:
        return int(self._histogram.get_total_count())

    def quantile_ms(self, quantile: float) -> float:
        """Return the least latency in ms that this share (in [0, 1]) does not exceed; NaN if there are none."""
        if not len(self):
            return float("nan")
        return float(self._histogram.get_value_at_percentile(quantile * 100)) / 1000

    @property
    def greatest_ms(self) -> float:
        """Return the greatest latency, in ms."""
        return self.quantile_ms(1.0)

    def above(self, limit_ms: float) -> int:
        """Return how many latencies are above a limit."""
        return sum(
            int(item.count_at_value_iterated_to)
            for item in self._histogram.get_recorded_iterator()
            if item.value_iterated_to > limit_ms * 1000
        )

    def to_text(self) -> str:
        """Return the whole histogram as a line of text."""
        return str(self._histogram.encode().decode("ascii"))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Make the histogram of a text that `to_text` returned."""
        made = cls()
        made._histogram.decode_and_add(text.encode("ascii"))
        return made


def merged(each: Iterable[Latencies]) -> Latencies:
    """Return the sum of several histograms."""
    whole = Latencies()
    for one in each:
        whole.add(one)
    return whole
