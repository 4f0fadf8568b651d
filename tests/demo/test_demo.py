"""The demo in small: it agrees with brute force, says so, leaves nothing behind, and can fail."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from railgun.demo import __main__ as demo
from railgun.demo import flights as data
from railgun.demo import run
from railgun.demo.board import Board
from railgun.demo.brute_force import BruteForce, spread
from railgun.demo.flights import Flight, read_flights
from railgun.demo.run import Progress, check

ROOT = Path(__file__).parents[2]
EVENTS = 4_500
"""More than come one by one, so that there are batches too."""


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return read_flights()


def test_the_data_is_whole_and_in_order(flights: list[Flight]) -> None:
    assert len(flights) == 336_776
    assert len({flight.departure for flight in flights}) == len(flights)
    assert all(a.scheduled <= b.scheduled for a, b in pairwise(flights))
    assert (flights[0].departure, flights[-1].departure) == ("2013-01-01 EWR UA1545", "2013-12-31 JFK B6745")


def test_it_says_that_all_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(run, "_WARM_UP_EVENTS", 10)
    assert demo.main(["--events", str(EVENTS), "--sample", "300", "--seed", "7"]) == 0
    said = capsys.readouterr().out
    assert "3300 of 3300 equal" in said
    assert "one by one" in said
    assert list(tmp_path.iterdir()) == []


def test_asked_to_end_it_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "railgun.demo", "--plain"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "events/s" in line:
                process.send_signal(signal.SIGTERM)
                break
        rest = process.stdout.read()
    assert "interrupted" in rest
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_result_is_told(flights: list[Flight]) -> None:
    truth = BruteForce(flights[:500]).results(400)
    assert check(flights[:500], {400: dict(truth)}, Board(demo.Console())).equal == len(truth)
    for name, value in truth.items():
        wrong = {**truth, name: value + 1 if isinstance(value, int | float) else "x"}
        verdict = check(flights[:500], {400: wrong}, Board(demo.Console()))
        assert (verdict.compared - verdict.equal, len(verdict.differences)) == (1, 1)
        assert name in verdict.differences[0]


def test_brute_force_by_hand(flights: list[Flight]) -> None:
    hour = 3_600_000
    first = replace(
        flights[0], scheduled=100 * hour, plane="N1", delay=4, distance=10, origin="EWR", dest="A"
    )
    rows = [
        first,
        replace(first, scheduled=102 * hour, delay=None, dest="B"),
        replace(first, scheduled=102 * hour, delay=7, plane=None, dest="A"),
        replace(first, scheduled=126 * hour, delay=1, dest="C", distance=5),
    ]
    truth = BruteForce(rows)
    assert truth.results(1) == {
        "departures_1h": 1, "delay_2h": None, "worst_2h": None, "delay_day_before": None, "cancelled_today": 1,
        "destinations_30d": 2, "route_spread_30d": None, "flights_7d": 2, "worst_7d": 4, "miles": 20,
        "flew_before": "A",
    }  # fmt: skip
    assert truth.results(2)["delay_2h"] == 7.0
    assert truth.results(2)["route_spread_30d"] == spread([4, 7])
    assert truth.results(2)["miles"] is None
    assert truth.results(3)["delay_day_before"] == 7.0
    assert (
        truth.results(3)["cancelled_today"],
        truth.results(3)["miles"],
        truth.results(3)["flew_before"],
    ) == (0, 25, "B")


def test_missing_data_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(data.importlib.util, "find_spec", lambda _: None)
    assert demo.main(["--plain"]) == 2
    assert "make setup" in capsys.readouterr().out


def test_the_board_shows_the_newest(flights: list[Flight]) -> None:
    console = demo.Console(width=120, record=True, force_terminal=True)
    truth = BruteForce(flights[:2000])
    with Board(console) as board:
        for row in range(0, 2000, 100):
            progress = Progress(
                2000, row, latest=[(flights[row], truth.results(row))], newest_events_per_s=row + 1.0
            )
            board.scored(progress)
    shown = console.export_text()
    assert f"{flights[1900].carrier}{flights[1900].flight}" in shown
    assert "1,900 of 2,000 events" in shown
