"""A histogram that costs next to nothing to add to: one thread writes it, another may read it at any time."""

from bisect import bisect_left


class Buckets:
    """Counts of values by upper bounds, which grow; beyond the last of them lies infinity.

    Adding takes no lock: who reads meanwhile may miss the value that is being added.
    """

    __slots__ = ("_counts", "bounds", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """(upper bound as Prometheus writes it, how many lie at or below it), the last one "+Inf"."""
        found: list[tuple[str, float]] = []
        sum_ = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), list(self._counts)):
            sum_ += count
            found.append((bound, float(sum_)))
        return found
