"""Quantiles and histograms: each value is counted once, in the bin that is around it."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontend.live.distribution import BINS_MAX, DISTINCT_MAX, histogram, quantiles
from tests.counts import examples

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
LONGS = st.integers(-(2**127), 2**127 - 1).map(float)


def check(values: Sequence[float]) -> None:
    numbers = np.array(values)
    bins = histogram(numbers)
    assert sum(count for _, _, count in bins) == len(values)
    assert all(low <= high for low, high, _ in bins)
    assert len(bins) <= BINS_MAX + 1
    for (low, high, count), is_last in zip(bins, [False] * (len(bins) - 1) + [True]):
        within = (
            (numbers >= low) & (numbers <= high)
            if is_last or low == high
            else ((numbers >= low) & (numbers < high))
        )
        assert count == within.sum()
    found = quantiles(numbers)
    ordered = sorted(values)
    assert list(found) == ["min", "p10", "p50", "p90", "p99", "max"]
    assert (found["min"], found["max"]) == (ordered[0], ordered[-1])
    assert list(found.values()) == sorted(found.values())
    assert set(found.values()) <= set(values)
    assert sum(each <= found["p50"] for each in values) * 2 >= len(values)


@settings(max_examples=examples(200, 2_000), deadline=None)
@given(
    st.one_of(
        st.lists(NUMBERS, min_size=1), st.lists(LONGS, min_size=1), st.lists(st.floats(0, 1e3), min_size=30)
    )
)
def test_each_value_is_in_one_bin(values: list[float]) -> None:
    check(values)


@pytest.mark.parametrize(
    "values",
    [
        [5e-324 * each for each in range(1, 100)],
        [1.7e308, -1.7e308, *range(100)],
        [1e-300, *(10.0**each for each in range(-200, 200))],
        [1.0 + 2.0**-52 * each for each in range(100)],
        [0.0] * 1_000 + [1e9, *range(20)],
    ],
)
def test_values_at_the_ends_of_what_there_is(values: list[float]) -> None:
    check(values)


def test_few_distinct_values_have_a_bin_each() -> None:
    values = np.array([3.0] * 5 + [7.0] * 2)
    assert histogram(values) == [(3.0, 3.0, 5), (7.0, 7.0, 2)]
    assert len(histogram(np.arange(float(DISTINCT_MAX)))) == DISTINCT_MAX


def test_edges_are_round() -> None:
    assert [low for low, _, _ in histogram(np.arange(100.0))] == [float(each) for each in range(0, 100, 5)]
    skewed = [low for low, _, _ in histogram(np.array([*range(1, 60), 1e4], np.float64))]
    assert skewed == [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3]
