"""How values are distributed: quantiles, and the counts of a histogram whose edges are round numbers. Pure."""

import math
import operator

import numpy as np
from numpy.typing import NDArray

from reservoir.distinct import distinct

DISTINCT_MAX, BINS_MAX = 16, 24
_PER_MILLE = {"min": 0, "p10": 100, "p50": 500, "p90": 900, "p99": 990, "max": 1_000}
# The greatest value is so many times the median, where bins of one width would put nearly all into the first one.
_SKEWED = 50.0
# Below it powers of ten are not exact any more.
_WIDTH_MIN = 1e-300

Bin = tuple[float, float, int]
"""(from, to, count): values of at least `from` and below `to`; of the last bin, up to `to`."""


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Return quantiles of finite numbers, each of which is one of them. There is at least one."""
    ordered = np.sort(values)
    places = {name: max(0, math.ceil(len(ordered) * each / 1_000) - 1) for name, each in _PER_MILLE.items()}
    return {name: float(ordered[place]) for name, place in places.items()}


def histogram(values: NDArray[np.float64]) -> list[Bin]:
    """Return the bins of finite numbers. There is at least one number. Few distinct ones have a bin each."""
    ordered = np.sort(values)
    present = distinct(ordered)
    if len(present) <= DISTINCT_MAX:
        counts = np.diff(np.searchsorted(ordered, present), append=len(ordered))
        return [(each, each, count) for each, count in zip(present.tolist(), counts.tolist())]
    least, greatest = float(ordered[0]), float(ordered[-1])
    is_skewed = least >= 0 and greatest > _SKEWED * float(ordered[len(ordered) // 2])
    edges = _growing(float(present[present > 0][0]), greatest) if is_skewed else _even(least, greatest)
    counts = np.diff(np.searchsorted(ordered, edges[:-1]), append=len(ordered))
    return list(zip(edges[:-1], edges[1:], counts.tolist()))


def _even(least: float, greatest: float) -> list[float]:
    """Return edges around all values with one width, which is 1, 2 or 5 times a power of ten."""
    wanted = greatest / (BINS_MAX - 2) - least / (BINS_MAX - 2)
    if wanted < _WIDTH_MIN:
        return [least, greatest]
    power = 10.0 ** math.floor(math.log10(wanted))
    width = next(step * power for step in (1, 2, 5, 10, 20) if step * power >= wanted)
    first = math.floor(least / width)
    edges = [each * width for each in range(first, first + BINS_MAX + 1)]
    edges = edges[: sum(each < greatest for each in edges) + 1]
    # Numbers that lie next to each other, far from 0, leave no room for round ones.
    has_all = edges[0] <= least and edges[-1] >= greatest
    return edges if has_all and all(map(operator.lt, edges, edges[1:])) else [least, greatest]


def _growing(least: float, greatest: float) -> list[float]:
    """Return edges from 0 on, whose steps grow: 1, 2, 5, 10, 20; or powers of ten, where these would be too many."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(greatest))
    if 3 * (high - low) < BINS_MAX:
        grown = [step * 10.0**power for power in range(low, high) for step in (1, 2, 5)]
    else:
        every = math.ceil((high - low) / (BINS_MAX - 1))
        grown = [10.0**power for power in range(low, high, every)]
    return [0.0, *(each for each in grown if 0 < each < greatest), greatest]
