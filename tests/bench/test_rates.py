"""Latency against rate: one rate on a real broker, what falls behind, and what is shown of it."""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from bench.keeping import Keeping, StoppedError
from bench.kept_results import Results, known
from bench.load.outcome import Outcome, Trace
from bench.paper.budget import Budget
from bench.paper.claims import CLAIMS
from bench.paper.drawing import svg_of
from bench.paper.pace import QUANTILES
from bench.paper.rates import RATES_PER_S, figures_at, measured, rates
from bench.paper.table import text_of
from bench.report import Report

FIGURES = {"p50_ms": 1.0, "p99_ms": 2.0, "p999_ms": 3.0, "p999_ms_least": 2.5, "p999_ms_greatest": 3.5}
_S = 1_000_000_000


def outcome(rate_per_s: int, answered_per_s: int, slow_s: float = 0.0) -> Outcome:
    """Two seconds of events that are left out, and ten in slices of one, answered at a rate, in order.

    slow_s: what an event of the last slice waits besides.
    """
    places = np.arange(12 * rate_per_s)
    trace = Trace(places * _S // rate_per_s, np.maximum(0, places // rate_per_s - 1))
    trace.sent_ns[:] = trace.due_ns
    trace.done_ns[:] = np.maximum(places * _S // answered_per_s, trace.due_ns) + 5_000_000
    trace.done_ns[-rate_per_s:] += int(slow_s * _S)
    trace.good[:] = 1
    return trace.outcome(11, 100 * _S)


@pytest.mark.timeout(300)
def test_a_rate_has_latencies() -> None:
    try:
        figures = measured(200, 0.005, 1, Budget(600.0))
    except StoppedError as stopped:
        # A busy machine may not keep up.
        figures = stopped.figures
    assert figures["measured_events"] == 400
    assert 0 < figures["p50_ms"] <= figures["p999_ms"] <= figures["greatest_ms"]
    assert set(QUANTILES) <= set(figures)


def test_a_rate_that_is_too_high_has_the_slope_of_its_backlog() -> None:
    with pytest.raises(StoppedError, match="with 1,000 events/s: its backlog grows by 200 events") as stopped:
        figures_at(1_000, 1.0, [outcome(1_000, 800)] * 2 + [outcome(1_000, 1_000)])
    assert stopped.value.figures["backlog_events_per_s"] == pytest.approx(200, rel=0.01)
    assert stopped.value.figures["p999_ms_least"] == pytest.approx(5, rel=0.01)
    assert stopped.value.figures["measured_events"] == 30_000


def test_a_pause_at_the_end_is_not_a_backlog_that_grows() -> None:
    figures = figures_at(1_000, 1.0, [outcome(1_000, 1_000, slow_s=0.1)])
    assert figures["backlog_events_per_s"] < 10
    assert figures["p999_ms"] == pytest.approx(105, rel=0.01)
    assert figures["rate_per_s"] == 1_000


def test_no_rate_is_measured_beyond_the_first_that_is_too_high(tmp_path: Path) -> None:
    results = known("paper-rates", {"runs": 1, "scale": 1.0}, tmp_path)
    for rate_per_s in RATES_PER_S:
        results.note(f"rate_{rate_per_s}", "", FIGURES, "it falls behind" if rate_per_s == 2_000 else None)
    assert rates(Report(1, 1.0), Keeping(results, tmp_path, False), Budget())
    assert list(results.runs) == ["rate_500", "rate_1000", "rate_2000"]
    assert results.not_run["rate_2000"] == "it falls behind"
    assert results.not_run["rate_100000"] == "2,000 events/s are too many already"


def test_the_curve_ends_before_the_rate_that_is_too_high() -> None:
    machine = {"processor": "A", "cores": 2, "memory_gib": 16, "system": "L", "python": "3", "java": ""}
    found = Results("paper-rates", {"runs": 3, "scale": 1.0}, machine)
    steady = FIGURES | {"backlog_events_per_s": 0.0, "measured_events": 45_000.0}
    found.note("rate_500", "", steady | {"rate_per_s": 500.0})
    found.note("rate_1000", "", steady | {"rate_per_s": 1_000.0})
    behind = steady | {"rate_per_s": 2_000.0, "backlog_events_per_s": 300.0}
    found.note("rate_2000", "", behind, "it does not keep up")
    text = svg_of(found)
    assert len(list(ET.fromstring(text).iter("{http://www.w3.org/2000/svg}circle"))) == 3 * 2
    assert "falls behind at 2,000 events/s" in text
    written = text_of(found)
    assert "| `rate_1000` | 1,000 | 1 | 2 | 3 | 2.5 | 3.5 | 0 | 45,000 |" in written
    assert "| `rate_2000` | 2,000 | 1 | 2 | 3 | 2.5 | 3.5 | 300 | 45,000 |" in written
    assert "- `rate_2000`: it does not keep up" in written
    assert CLAIMS["rates"][1].says in written
