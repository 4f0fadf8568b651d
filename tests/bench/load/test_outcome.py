"""Outcomes: every request counts, from when it was due, and parts merge into what the whole would have said."""

import numpy as np
import pytest

from bench.load.latencies import Latencies
from bench.load.outcome import FAILED, Outcome, Trace, merge

MS = 1_000_000


def traced(due_ms: list[int], sent_ms: list[int], done_ms: list[int], phase_of: list[int]) -> Trace:
    trace = Trace(np.array(due_ms, np.int64) * MS, np.array(phase_of, np.int64))
    trace.sent_ns[:], trace.done_ns[:] = np.array(sent_ms) * MS, np.array(done_ms) * MS
    trace.status[:], trace.good[:] = np.where(trace.done_ns > 0, 200, 0), trace.done_ns > 0
    return trace


def test_latency_counts_from_when_a_request_was_due() -> None:
    found = traced([10, 20, 30], [10, 60, 61], [50, 61, 62], [0, 0, 0]).outcome(1, 1_000 * MS)
    assert sorted([found.latencies.above(limit) for limit in (39.9, 40.1, 41.1, 32.1, 31.9)]) == [
        0,
        1,
        2,
        2,
        3,
    ]
    assert found.from_send.above(2) == 1
    assert (found.good, found.bad, found.status) == (3, 0, {200: 3})


def test_what_is_never_answered_has_waited_to_the_end() -> None:
    trace = traced([10, 20], [10, 0], [11, 0], [0, 0])
    trace.status[1] = FAILED
    found = trace.outcome(1, 520 * MS)
    assert found.latencies.greatest_ms == pytest.approx(500, rel=0.001)
    assert (len(found.latencies), found.good, found.bad, found.status[FAILED]) == (2, 1, 1, 1)


def test_phases_have_latencies_of_their_own() -> None:
    found = traced([10, 20, 30], [10, 20, 30], [11, 25, 39], [0, 1, 1]).outcome(2, 50 * MS)
    assert [len(each) for each in found.by_phase] == [1, 2]
    assert found.by_phase[1].quantile_ms(0.5) == pytest.approx(5, rel=0.001)


def test_parts_merge_into_the_whole() -> None:
    rng = np.random.default_rng(1)
    due = np.sort(rng.integers(1, 10_000, 2_000))
    done = due + rng.integers(1, 5_000, 2_000)
    phases = np.repeat([0, 1], 1_000)
    parts = []
    for own in (slice(0, None, 2), slice(1, None, 2), slice(0, 0)):
        part = traced(due[own].tolist(), due[own].tolist(), done[own].tolist(), phases[own].tolist())
        parts.append(Outcome.from_json(part.outcome(2, 1).to_json()))
    whole = traced(due.tolist(), due.tolist(), done.tolist(), phases.tolist()).outcome(2, 1)
    assert merge(parts).to_json() == whole.to_json()


def test_quantiles_are_those_of_the_values() -> None:
    values_ns = np.random.default_rng(2).lognormal(15, 2, 50_000).astype(np.int64)
    latencies = Latencies()
    latencies.record(values_ns)
    for quantile in (0.5, 0.99, 0.999, 1.0):
        expected_ms = float(np.quantile(values_ns, quantile, method="inverted_cdf")) / MS
        assert latencies.quantile_ms(quantile) == pytest.approx(expected_ms, rel=0.002)


def test_the_ends_of_the_range() -> None:
    latencies = Latencies()
    assert np.isnan(latencies.quantile_ms(0.5))
    latencies.record(np.array([0, 10**18], np.int64))
    assert latencies.quantile_ms(0.5) == 0.001
    assert latencies.greatest_ms == pytest.approx(3_600_000, rel=0.001)
