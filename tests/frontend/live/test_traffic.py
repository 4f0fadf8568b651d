"""Windows of counts: what the last seconds were, exactly, and latencies within a tenth."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from frontend.live.traffic import Traffic, Window, quantiles
from railgun.telemetry.recording import LATENCY_BOUNDS, TOTAL, Buckets, StreamRecord

STREAM, WAY = "payments", "http"
_RANDOM = np.random.default_rng(7)


class Ticking:
    """Traffic of one stream, on a clock of the test's own."""

    def __init__(self) -> None:
        self.traffic, self.record, self.now_s = Traffic(), StreamRecord(), 100.0
        self.traffic.tick([(STREAM, WAY, self.record)], self.now_s)

    def pass_s(self, seconds: int, *, each_s: float = 1.0, latency_s: float | None = None) -> None:
        """Tick each second; with a latency, ten events of it come before each tick."""
        for _ in range(seconds):
            if latency_s is not None:
                self.record.events += 10
                self.record.stages[TOTAL].add(latency_s, 10)
            self.now_s += each_s
            self.traffic.tick([(STREAM, WAY, self.record)], self.now_s)

    def windows(self) -> tuple[Window, Window]:
        found = self.traffic.windows(STREAM, WAY)
        assert list(found) == ["last_10_s", "last_60_s"]
        return found["last_10_s"], found["last_60_s"]


def _exactly(values: NDArray[np.float64], per_mille: int) -> float:
    """The least value that so many are at or below."""
    ordered = np.sort(values)
    return float(ordered[math.ceil(len(values) * per_mille / 1_000) - 1])


@pytest.mark.parametrize(
    "values",
    [
        _RANDOM.lognormal(math.log(0.002), 1.0, 20_000),
        _RANDOM.lognormal(math.log(0.3), 2.0, 5_000).clip(0, 999),
        _RANDOM.uniform(0.000_01, 0.000_3, 1_003),
        np.concatenate([np.full(9_990, 0.001), np.full(10, 5.0)]),
        np.concatenate([np.full(9_989, 0.001), np.full(11, 5.0)]),
        np.array([0.012_345]),
        np.array(LATENCY_BOUNDS),
    ],
)
def test_quantiles_are_within_a_tenth_of_sorted_values(values: NDArray[np.float64]) -> None:
    buckets = Buckets(LATENCY_BOUNDS)
    for value in values.tolist():
        buckets.add(value)
    found = quantiles(np.frombuffer(buckets.counts(), np.int64))
    for said, per_mille in zip(found, (500, 990, 999), strict=True):
        exact = _exactly(values, per_mille)
        assert exact <= said <= exact * 1.1 * (1 + 1e-12)


def test_what_lies_beyond_the_bounds() -> None:
    buckets = Buckets(LATENCY_BOUNDS)
    buckets.add(1e-9)
    assert quantiles(np.frombuffer(buckets.counts(), np.int64)) == [0.000_01] * 3
    buckets.add(5_000.0, 10_000)
    assert quantiles(np.frombuffer(buckets.counts(), np.int64)) == [1_000.0] * 3


def test_rates_and_quantiles_of_the_last_seconds() -> None:
    ticking = Ticking()
    ticking.pass_s(60, latency_s=0.001)
    ticking.pass_s(10, latency_s=0.2)
    ten, sixty = ticking.windows()
    assert (ten.seconds, ten.events, ten.events_per_s) == (10.0, 100, 10.0)
    assert (ten.latency.count, ten.latency.p50_ms, ten.latency.p999_ms) == (100, 200.0, 200.0)
    assert (sixty.seconds, sixty.events, sixty.events_per_s) == (60.0, 600, 10.0)
    assert (sixty.latency.count, sixty.latency.p50_ms, sixty.latency.p99_ms) == (600, 1.0, 200.0)


def test_after_a_quiet_minute_rates_are_0() -> None:
    ticking = Ticking()
    ticking.pass_s(60, latency_s=0.001)
    ticking.pass_s(10)
    ten, sixty = ticking.windows()
    assert (ten.events, ten.latency.count, sixty.events) == (0, 0, 500)
    ticking.pass_s(50)
    for window in ticking.windows():
        assert (window.events, window.events_per_s) == (0, 0.0)
        assert (window.late, window.duplicate, window.refused) == ({}, {}, {})
        latency = window.latency
        assert (latency.count, latency.p50_ms, latency.p99_ms, latency.p999_ms) == (0, None, None, None)


def test_a_window_is_as_long_as_the_process_is_old() -> None:
    ticking = Ticking()
    ticking.pass_s(4, latency_s=0.001)
    for window in ticking.windows():
        assert (window.seconds, window.events, window.events_per_s) == (4.0, 40, 10.0)
    assert [each.seconds for each in Traffic().windows(STREAM, WAY).values()] == [0.0, 0.0]


def test_ticks_that_come_late_bend_no_rate() -> None:
    ticking = Ticking()
    ticking.pass_s(40, each_s=3.0, latency_s=0.001)
    ten, sixty = ticking.windows()
    assert (ten.seconds, ten.events, ten.events_per_s) == (12.0, 40, 3.333)
    assert (sixty.seconds, sixty.events_per_s) == (60.0, 3.333)


def test_what_was_not_answered_in_the_ordinary_way() -> None:
    ticking = Ticking()
    record = ticking.record
    record.late["card", "rewritten"] += 5
    record.duplicates["card"] += 5
    record.refused["invalid"] += 5
    ticking.pass_s(30)
    record.late["card", "rewritten"] += 2
    record.late["card", "discarded"] += 1
    record.late["merchant", "rewritten"] += 4
    record.duplicates["merchant"] += 6
    record.refused["full"] += 7
    ticking.pass_s(1)
    ten, sixty = ticking.windows()
    assert (ten.late, ten.duplicate, ten.refused) == (
        {"card": 3, "merchant": 4},
        {"merchant": 6},
        {"full": 7},
    )
    assert sixty.late == {"card": 8, "merchant": 4}
    assert (sixty.duplicate, sixty.refused) == ({"card": 5, "merchant": 6}, {"invalid": 5, "full": 7})


def test_a_stream_that_comes_later_counts_from_its_beginning() -> None:
    ticking = Ticking()
    ticking.pass_s(30)
    later = StreamRecord(events=8)
    ticking.traffic.tick([(STREAM, WAY, ticking.record), ("later", WAY, later)], ticking.now_s + 1.0)
    found = ticking.traffic.windows("later", WAY)["last_10_s"]
    assert (found.seconds, found.events) == (10.0, 8)


def test_counts_that_begin_anew_are_not_negative() -> None:
    """A stream was dropped and made again, or an input has begun again."""
    ticking = Ticking()
    ticking.pass_s(30, latency_s=0.001)
    ticking.record = StreamRecord()
    ticking.pass_s(1, latency_s=0.001)
    for window in ticking.windows():
        assert (window.events, window.latency.count) == (10, 10)
    ticking.traffic.tick([], ticking.now_s + 1.0)
    assert [each.events for each in ticking.windows()] == [0, 0]


def test_an_idle_stream_keeps_one_copy_of_its_counts() -> None:
    ticking = Ticking()
    ticking.pass_s(200, latency_s=0.001)
    (source,) = ticking.traffic._sources.values()
    assert 61 <= len(source._kept) <= 64
    ticking.pass_s(200)
    assert len(source._kept) == 1
    assert 61 <= len(ticking.traffic._ticks) <= 64
