"""The HTTP bench: a real server is loaded, killed and started again; a search for a rate ends where it should."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from bench import http
from bench.children import ChildFailedError
from bench.http import CASES, Scaled, singles
from bench.http_run import Target, check
from bench.load.latencies import Latencies
from bench.load.outcome import Outcome
from bench.load.search import highest_rate, holds_below
from bench.service import Service
from bench.unit_cases import THROUGHPUT


def test_the_command_ends_with_one_line_of_json() -> None:
    command = [
        sys.executable,
        "-m",
        "bench.http",
        "--only",
        "killed",
        "metrics_added",
        "--runs",
        "1",
        "--scale",
        "0.002",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["bench"] == "http"
    assert said["figures"]["ready_after_kill_s"] > 0
    assert said["figures"]["metrics_added_p999_ratio"] > 0


def test_what_single_events_use_and_a_rate_that_is_too_high(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_STEADY_RATE_PER_S", 100)
    monkeypatch.setattr(http, "_FAST_RATE_PER_S", 150)
    reached_per_s = iter([140.0, 160.0])
    monkeypatch.setattr(Target, "max_rate", lambda target, seconds: next(reached_per_s))
    found: defaultdict[str, list[float]] = defaultdict(list)
    workload = THROUGHPUT["payments_1x3"]
    with Service(tmp_path, workload.definitions, "os") as service:
        service.start()
        target = Target(service, workload.payments)
        assert target.steady(200, 0.5).used["waits"] > 1
        assert singles(target, Scaled(0.005), found) == "max_rate is 140"
        assert "p999_ms_at_150" not in found
        assert singles(target, Scaled(0.005), found) is None
        service.stop()
    assert found["p999_ms_at_150"][0] >= found["p50_ms_at_150"][0] > 0
    for how in ("at_100", "one_by_one"):
        used = {part: found[f"{part}_{how}"][0] for part in ("cpu_us", "loop_us", "scoring_us", "rest_us")}
        assert min(used["loop_us"], used["scoring_us"]) > 5
        assert used["loop_us"] + used["scoring_us"] < used["cpu_us"]


def test_figures_have_floors_from_the_quick_benchs_scale_up() -> None:
    assert [Scaled(scale).seconds(30.0, 20.0) for scale in (1.0, 0.02, 0.002)] == [30.0, 20.0, 2.0]
    assert [Scaled(scale).events(1_000_000) for scale in (1.0, 0.02, 0.002)] == [1_000_000, 20_000, 2_000]


@pytest.mark.parametrize("limit_per_s", [1_000, 1_499, 1_501, 6_000, 99_999])
def test_the_highest_rate_is_closed_in_on(limit_per_s: float) -> None:
    tried: list[float] = []

    def holds(rate_per_s: float) -> bool:
        tried.append(rate_per_s)
        return rate_per_s <= limit_per_s

    found = highest_rate(holds, 100_000)
    assert limit_per_s / 1.5 < found <= limit_per_s
    if found * 1.5 <= 100_000:
        assert found >= limit_per_s / 1.05
    assert len(tried) < 30


def test_one_pause_does_not_end_the_search() -> None:
    paused = iter([True, False])
    assert highest_rate(lambda rate_per_s: next(paused, rate_per_s < 3_000), 100_000) > 2_500


def test_nothing_holds() -> None:
    assert highest_rate(lambda rate_per_s: False, 100_000) == 0


@pytest.mark.parametrize(
    ("good", "limit_ms", "holds"), [(1000, 40.0, True), (1000, 20.0, False), (999, 40.0, False)]
)
def test_a_rate_holds_where_all_is_answered_well_and_soon(good: int, limit_ms: float, holds: bool) -> None:
    latencies = Latencies()
    latencies.record(np.full(1000, 30_000_000))
    assert holds_below(Outcome([latencies], events=1000, good=good), limit_ms, 0.0) == holds


def test_an_event_that_was_refused_is_no_figure() -> None:
    check(Outcome([], events=3, good=3))
    with pytest.raises(ChildFailedError, match="1 of 3 events"):
        check(Outcome([], events=3, good=2))


def test_every_durability_and_width_has_its_case() -> None:
    assert {
        "os",
        "fsync",
        "wide",
        "fsync_wide",
        "computed",
        "metrics_added",
        "metrics_shared",
        "metrics_in_turn",
        "killed",
        "fsync_killed",
    } == set(CASES)
