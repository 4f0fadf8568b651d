"""Figure 8's side of hopping windows, with a system in Python in Flink's place and a real broker."""

from pathlib import Path

import numpy as np
import pytest

from bench.keeping import Keeping, StoppedError
from bench.kept_results import known
from bench.load.outcome import Outcome, Trace
from bench.paper.budget import Budget, BudgetError
from bench.paper.flink_hops import (
    BACKENDS,
    FLINK_HOPS_S,
    NOT_MEASURED,
    Hopping,
    flink_hops,
    measured,
    paced_figures,
)
from bench.paper.pace import QUANTILES, RATE_PER_S
from bench.peers import packages
from bench.peers.measuring import WrongValuesError

MODULE = "tests.bench.planted_hops"
# Five seconds are left out, and five measured.
SCALE = 0.01


def test_a_system_has_latencies_and_the_errors_of_its_hops() -> None:
    try:
        figures = measured(Hopping(MODULE, ("300000",), 300), SCALE, Budget())
        assert figures["unanswered_share"] == 0
    except StoppedError as stopped:
        # A busy machine may not keep up.
        figures = stopped.figures
    assert figures["measured_events"] == 5 * RATE_PER_S
    assert 0 < figures["p50_ms"] <= figures["p9999_ms"] <= figures["greatest_ms"]
    assert set(QUANTILES) <= set(figures)
    assert 400 < figures["compared_events"] < 600
    assert 0 < figures["mean_error"] < 300 / 3_600 < figures["greatest_error"] < 1
    assert figures["wrong_share"] > 0.5


def test_a_system_that_hops_otherwise_is_refused() -> None:
    with pytest.raises(WrongValuesError, match="sums are not those of windows that hop by 60 s"):
        measured(Hopping(MODULE, ("300000",), 60), SCALE, Budget())


def test_a_system_is_not_begun_without_time_for_the_comparison() -> None:
    with pytest.raises(BudgetError, match="630 s are needed"):
        measured(Hopping(MODULE, ("300000",), 300), SCALE, Budget(600.0))


def outcome(seconds: float, answered: int, answered_per_s: float = 100.0) -> Outcome:
    """Events at the figure's rate, of which the first ones were answered, at a rate of their own."""
    events = int(seconds * RATE_PER_S)
    due_ns = np.arange(1, events + 1) * int(1e9 / RATE_PER_S)
    trace = Trace(due_ns, np.zeros(events, np.int32))
    trace.sent_ns[:] = due_ns
    trace.done_ns[:answered] = due_ns[0] + np.arange(1, answered + 1) * int(1e9 / answered_per_s)
    trace.good[:answered] = 1
    return trace.outcome(1, int(seconds * 1e9))


def test_a_system_that_falls_behind_has_the_slope_of_its_backlog() -> None:
    hopping = Hopping(MODULE, (), 1)
    with pytest.raises(StoppedError, match="grows by 400 events each second") as stopped:
        paced_figures(hopping, outcome(10.0, 1_000), {"mean_error": 0.5})
    figures = stopped.value.figures
    assert figures["backlog_events_per_s"] == pytest.approx(400.0)
    assert (figures["unanswered_share"], figures["hop_s"], figures["mean_error"]) == (0.8, 1.0, 0.5)


@pytest.mark.parametrize(("answered_per_s", "falls_behind"), [(496.0, False), (490.0, True)])
def test_a_backlog_that_hardly_grows_is_no_falling_behind(answered_per_s: float, falls_behind: bool) -> None:
    hopping, seconds = Hopping(MODULE, (), 1), 480.0
    found = outcome(seconds, int(seconds * answered_per_s), answered_per_s)
    assert found.bad, "some events are not answered"
    if falls_behind:
        with pytest.raises(StoppedError, match="grows by 10 events each second"):
            paced_figures(hopping, found, {})
    else:
        assert paced_figures(hopping, found, {})["backlog_events_per_s"] == pytest.approx(4.0, abs=0.1)


def test_without_flink_its_parts_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "FOLDER", tmp_path)
    results = known("paper-fig8", {"runs": 1, "scale": 1.0}, tmp_path)
    assert flink_hops(1.0, Keeping(results, tmp_path, False), Budget()), "nothing failed"
    parts = {f"flink_hop_{hop_s}s_{backend}" for hop_s in FLINK_HOPS_S for backend in BACKENDS}
    assert set(results.not_run) == parts | set(NOT_MEASURED)
    assert not results.figures
