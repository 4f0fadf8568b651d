"""Histograms as Prometheus counts them."""

import numpy as np

from railgun.telemetry.recording import (
    BATCH_BOUNDS,
    LATENCY_BOUNDS,
    SECONDS_BOUNDS,
    TOTAL,
    Buckets,
    StreamRecord,
)


def test_counts_grow_with_the_bounds() -> None:
    buckets = Buckets((1.0, 2.0, 4.0))
    for value in (0.5, 1.0, 1.5, 4.0, 4.1, 1e9):
        buckets.add(value)
    assert buckets.cumulative() == [("1.0", 2.0), ("2.0", 3.0), ("4.0", 4.0), ("+Inf", 6.0)]
    assert buckets.total == 0.5 + 1.0 + 1.5 + 4.0 + 4.1 + 1e9


def test_bounds_grow() -> None:
    for bounds in (SECONDS_BOUNDS, BATCH_BOUNDS, LATENCY_BOUNDS):
        assert sorted(set(bounds)) == list(bounds)


def test_a_value_may_count_several_times() -> None:
    buckets = Buckets((1.0, 2.0))
    buckets.add(1.5, 3)
    buckets.add(9.0)
    assert (buckets.cumulative(), buckets.total) == ([("1.0", 0.0), ("2.0", 3.0), ("+Inf", 4.0)], 13.5)
    assert np.frombuffer(buckets.counts(), np.uint64).tolist() == [0, 3, 1]


def test_bounds_of_latencies_are_a_tenth_apart() -> None:
    lower, upper = np.array(LATENCY_BOUNDS[:-1]), np.array(LATENCY_BOUNDS[1:])
    assert (upper / lower).max() <= 1.1 * (1 + 1e-12)
    assert (LATENCY_BOUNDS[0], LATENCY_BOUNDS[-1]) == (0.000_01, 1_000.0)
    assert set(SECONDS_BOUNDS) <= set(LATENCY_BOUNDS)


def test_fine_bounds_are_shown_as_coarse_ones() -> None:
    """What Prometheus is told of a request's time is what the coarse bounds alone would have counted."""
    fine, coarse = StreamRecord().stages[TOTAL], Buckets(SECONDS_BOUNDS)
    assert fine.bounds == LATENCY_BOUNDS
    for value in np.random.default_rng(3).lognormal(-5, 3, 2_000).tolist() + list(SECONDS_BOUNDS):
        fine.add(value)
        coarse.add(value)
    assert fine.cumulative() == coarse.cumulative()
