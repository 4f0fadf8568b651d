"""Histograms as Prometheus counts them."""

from railgun.telemetry.recording import BATCH_BOUNDS, SECONDS_BOUNDS, Buckets


def test_counts_grow_with_the_bounds() -> None:
    buckets = Buckets((1.0, 2.0, 4.0))
    for value in (0.5, 1.0, 1.5, 4.0, 4.1, 1e9):
        buckets.add(value)
    assert buckets.cumulative() == [("1.0", 2.0), ("2.0", 3.0), ("4.0", 4.0), ("+Inf", 6.0)]
    assert buckets.total == 0.5 + 1.0 + 1.5 + 4.0 + 4.1 + 1e9


def test_bounds_grow() -> None:
    for bounds in (SECONDS_BOUNDS, BATCH_BOUNDS):
        assert sorted(set(bounds)) == list(bounds)
