"""The demo in small: it agrees with brute force, says so, leaves nothing behind, and can fail."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from railgun.demo import __main__ as demo
from railgun.demo import flights as data
from railgun.demo.board import Board
from railgun.demo.brute_force import BruteForce, spread
from railgun.demo.flights import LATER_METRIC, Flight, read_flights
from railgun.demo.nodes import NAMES, PARTITIONS, Failover, Nodes
from railgun.demo.processes import Server, ServerError
from railgun.demo.run import Later, Progress, check

ROOT = Path(__file__).parents[2]
EVENTS, SINGLE_EVENTS = 4_500, 500
"""How many there are, and how many of them come one by one."""


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return read_flights()


def test_the_data_is_whole_and_in_order(flights: list[Flight]) -> None:
    assert len(flights) == 336_776
    assert len({flight.departure for flight in flights}) == len(flights)
    assert all(a.scheduled <= b.scheduled for a, b in pairwise(flights))
    assert (flights[0].departure, flights[-1].departure) == ("2013-01-01 EWR UA1545", "2013-12-31 JFK B6745")


@pytest.fixture
def played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs the demo in small, with words of its command line; it agrees with brute force, and nothing is left behind.
    Returns what it says.
    """

    def play(*words: str) -> str:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        monkeypatch.setattr("railgun.demo.run.SINGLE_EVENTS", SINGLE_EVENTS)
        assert demo.main(["--events", str(EVENTS), "--sample", "300", "--seed", "7", *words]) == 0
        said = capsys.readouterr().out
        verdict = re.search(r"(\d+) of (\d+) equal", said)
        assert verdict is not None
        assert int(verdict[1]) == int(verdict[2]) > 300 * len(data.definitions().metrics)
        assert list(tmp_path.iterdir()) == []
        assert processes_of(tmp_path) == []
        return said

    return play


def test_it_says_that_all_are_equal(played: Callable[..., str]) -> None:
    said = played()
    assert "one by one" in said
    assert f"{LATER_METRIC}, added while events came in, is warm after" in said


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_asked_to_end_it_leaves_nothing(tmp_path: Path, asked: signal.Signals) -> None:
    command = [sys.executable, "-m", "railgun.demo", "--plain"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "events/s" in line:
                assert len(processes_of(tmp_path)) == 1
                process.send_signal(asked)
                break
        rest = process.stdout.read()
    assert "interrupted" in rest
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
    assert processes_of(tmp_path) == []


def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with (
        pytest.raises(ServerError, match=r"exit code 2: .*no data of Railgun"),
        Server("serve", "--data", str(tmp_path)),
    ):
        pytest.fail("it started")
    assert processes_of(tmp_path) == []


def processes_of(folder: Path) -> list[str]:
    """The command lines of processes, but for this one, that name a folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(folder) in line and place.parent.name != str(os.getpid()):
            found.append(line)
    return found


def test_a_wrong_result_is_told(flights: list[Flight]) -> None:
    truth = BruteForce(flights[:500]).results(400)
    assert check(flights[:500], {400: dict(truth)}, Board(demo.Console(), "http://h")).equal == len(truth)
    for name, value in truth.items():
        wrong = {**truth, name: value + 1 if isinstance(value, int | float) else "x"}
        verdict = check(flights[:500], {400: wrong}, Board(demo.Console(), "http://h"))
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
        "destinations_30d": 2, "route_spread_30d": None, "usual_delay": None, "flights_7d": 2, "worst_7d": 4,
        "miles": 20, "flew_before": "A",
    }  # fmt: skip
    assert truth.results(2)["delay_2h"] == 7.0
    assert truth.results(2)["route_spread_30d"] == spread([4, 7])
    assert truth.results(2)["miles"] is None
    assert truth.results(2)["usual_delay"] == 5.5
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
    truth = BruteForce(flights[:2000])
    half = Progress(2000, 1000, latest=[(flights[1000], truth.results(1000))], later=Later(share=0.5))
    shown = board_of([half])
    assert f"{flights[1000].carrier}{flights[1000].flight}" in shown
    assert "reading 180 days back: 50%" in shown
    most = [
        Progress(2000, row, latest=[(flights[row], truth.results(row))], newest_events_per_s=row + 1.0)
        for row in range(0, 2000, 100)
    ]
    most[-1].later = Later(share=1.0, seconds=0.25, batches=3, warm=True)
    shown = board_of(most)
    assert f"{flights[1900].carrier}{flights[1900].flight}" in shown
    assert "1,900 of 2,000 events" in shown
    assert "warm after 0.25 s, 3,000 events later" in shown
    assert "http://h:1" in shown


def test_the_board_shows_the_nodes(flights: list[Flight], tmp_path: Path) -> None:
    truth = BruteForce(flights[:1000])
    nodes = Nodes(tmp_path, "127.0.0.1:9", "http://h:1")
    nodes.seen = {
        "leader": "node-3",
        "tasks": [
            {"copies": [{"node": "node-1", "state": "answering"}, {"node": "node-2", "state": "silent"}]},
            {"copies": [{"node": "node-2", "state": "answering"}, {"node": "node-3", "state": "behind"}]},
        ],
    }
    nodes.failover = Failover("node-1", 1, 500)
    step = Progress(1000, 600, latest=[(flights[600], truth.results(600))])
    shown = board_of([step], nodes)
    assert "3 nodes, 2 tasks × 2 copies, led by node-3" in shown
    assert re.search(r"node-1 +● · +killed", shown)
    assert re.search(r"node-2 +○ ● +answers 1, stands by for 1", shown)
    assert re.search(r"node-3 +· ◌ +answers 0, stands by for 1", shown)
    assert "node-1 killed after 500 departures: it answered 1 tasks" in shown
    nodes.failover.elsewhere_s, nodes.failover.is_back = 0.875, True
    shown = board_of([step], nodes)
    assert "its 1 tasks were answered elsewhere after 0.88 s" in shown
    assert re.search(r"node-1 +● · +answers 1, stands by for 0", shown)


def board_of(steps: list[Progress], nodes: Nodes | None = None) -> str:
    console = demo.Console(width=120, record=True, force_terminal=True)
    with Board(console, "http://h:1", nodes) as board:
        for step in steps:
            board.scored(step)
    return console.export_text()


@pytest.mark.timeout(400)
def test_it_says_the_same_through_topics(played: Callable[..., str]) -> None:
    said = played("--kafka")
    assert "through topics of the broker at 127.0.0.1:" in said


@pytest.mark.timeout(400)
def test_it_says_the_same_while_a_node_is_killed(played: Callable[..., str]) -> None:
    said = played("--cluster")
    killed = re.search(
        r"(node-\d) killed after \d,\d+ departures: its (\d+) tasks were answered elsewhere", said
    )
    assert killed is not None
    assert int(killed[2]) >= 2 * PARTITIONS // len(NAMES)
    assert f"{killed[1]} is started again" in said
    assert f"3 nodes, 3 units, {2 * PARTITIONS} tasks × 2 copies" in said
