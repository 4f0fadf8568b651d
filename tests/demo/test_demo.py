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

from railgun.client.client import Client
from railgun.demo import __main__ as demo
from railgun.demo import flights as data
from railgun.demo.board import Board
from railgun.demo.brute_force import BruteForce, spread
from railgun.demo.flights import LATER_METRIC, Flight, read_flights
from railgun.demo.nodes import NAMES, PARTITIONS, Failover, Nodes
from railgun.demo.payments import CARDS_MIN, DAYS_MIN, Payments, payments
from railgun.demo.payments_brute_force import PaymentsBruteForce
from railgun.demo.payments_run import SHOWN, SLOW_EVENTS, STARTS, check_payments, sent_slowly, separations
from railgun.demo.payments_table import payments_table
from railgun.demo.processes import Server, ServerError
from railgun.demo.run import Later, Progress, check

ROOT = Path(__file__).parents[2]
EVENTS, BATCH_EVENTS, SINGLE_EVENTS = 1_100, 250, 100
"""How many there are, how many come at once, and how many one by one in the end: four batches before these."""


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return read_flights()


def test_the_data_is_whole_and_in_order(flights: list[Flight]) -> None:
    assert len(flights) == 336_776
    assert len({flight.departure for flight in flights}) == len(flights)
    assert all(a.scheduled <= b.scheduled for a, b in pairwise(flights))
    assert (flights[0].departure, flights[-1].departure) == ("2013-01-01 EWR UA1545", "2013-12-31 JFK B6745")


def few_payments(seed: int) -> Payments:
    return payments(seed, CARDS_MIN, DAYS_MIN)


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
        for module in ("run", "nodes"):
            monkeypatch.setattr(f"railgun.demo.{module}.BATCH_EVENTS", BATCH_EVENTS)
        monkeypatch.setattr("railgun.demo.run.SINGLE_EVENTS", SINGLE_EVENTS)
        monkeypatch.setattr("railgun.demo.payments.payments", few_payments)
        assert demo.main(["--events", str(EVENTS), "--sample", "300", "--seed", "7", *words]) == 0
        said = capsys.readouterr().out
        verdicts = re.findall(r"([\d,]+) of ([\d,]+) equal", said)
        assert all(equal == compared for equal, compared in verdicts)
        assert int(verdicts[0][0].replace(",", "")) > 300 * len(data.definitions().metrics)
        assert len(verdicts) == (1 if words else 2), "the payments are scored over HTTP alone"
        assert list(tmp_path.iterdir()) == []
        assert processes_of(tmp_path) == []
        return said

    return play


def test_it_says_that_all_are_equal(played: Callable[..., str]) -> None:
    said = played()
    assert "one by one" in said
    assert f"{LATER_METRIC}, added while events came in, is warm after" in said
    made = few_payments(seed=7)
    compared = f"{len(SHOWN) * len(made.events):,}"
    assert f"all {len(made.events):,} payments: {compared} of {compared} equal" in said
    for shown in SHOWN:
        assert re.search(rf"{shown.pattern} +{shown.metric} >= {shown.start} +\d+\.\d% +\d\.\d\d%", said)


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


SEED = 7
SHOWN_IN_SMALL = f"""
import signal, sys
from railgun.demo import __main__ as demo, payments
from railgun.demo.payments import CARDS_MIN, DAYS_MIN
payments.payments = lambda seed, made=payments.payments: made(seed, CARDS_MIN, DAYS_MIN)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler)
sys.exit(demo.main(["--show", "--plain", "--events", "500", "--sample", "10", "--seed", "{SEED}"]))
"""


def test_its_server_stays_until_it_is_asked_to_end(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-u", "-c", SHOWN_IN_SMALL]
    said, url = "", "?"
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            found = re.search(r"The payments are at (http://[\d.:]+)/#/(\S+) until Ctrl-C", line)
            if found is not None:
                url = found[1]
                try:
                    with Client(url) as client:
                        names = [each["name"] for each in client.streams()]
                        registered = {each["name"] for each in client.metrics("payments")}
                        kept = str(client.samples("payments", limit=1_000))
                finally:
                    process.send_signal(signal.SIGINT)
    assert names == ["flights", "payments"]
    [fraud] = re.findall("The last planted fraud, each with a metric that finds it: (.*)", said)
    shown = re.findall(r"(\w+) \((\w+)\)", fraud)
    assert shown
    assert all(f"'{payment}'" in kept and f"start_{metric}" in registered for payment, metric in shown)
    made = payments(SEED, CARDS_MIN, DAYS_MIN)
    slow = made.events[slice(*sent_slowly(made))]
    assert len(slow) == SLOW_EVENTS
    assert [payment["tx_id"] for payment in slow if f"'{payment['tx_id']}'" not in kept] == []
    assert "and look for merchant_bin_tests_10m from 5 on (start_merchant_bin_tests_10m)" in said
    assert registered >= {f"start_{name}" for name in STARTS}
    assert process.returncode == 0, said
    assert f"Look while it runs: {url}/\n" in said
    assert "Stopping the server" in said
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


def test_payments_by_hand() -> None:
    day = 86_400_000
    first = {
        "ts": 100 * day, "card": "c1", "device": "d1", "merchant": "m1", "bin": "4", "amount": "1.00",
        "declined": False,
    }  # fmt: skip
    truth = PaymentsBruteForce(
        [
            first,
            {**first, "card": "c2", "declined": True},
            {**first, "card": "c2", "amount": "3.00", "device": None},
            {**first, "ts": 100 * day + 599_999, "amount": "0.50"},
            {**first, "ts": 100 * day + 600_000, "amount": "2.00", "device": None},
            {**first, "ts": 107 * day, "amount": "2.01"},
        ]
    )
    names = ("merchant_bin_tests_10m", "card_times_usual", "device_cards_7d")
    assert [tuple(truth.results(row)[name] for name in names) for row in range(6)] == [
        (1, None, 1),
        (2, None, 2),
        (2, None, None),
        (3, 0.5, 2),
        (2, 2 / 0.75, None),
        (0, 2.01 / 1.166667, 1),
    ]


@pytest.fixture(scope="module")
def made() -> Payments:
    return payments(1, 100, 35)


def test_a_wrong_result_of_a_payment_is_told(made: Payments) -> None:
    truth = PaymentsBruteForce(made.events)
    right = [truth.results(row) for row in range(len(made.events))]
    assert check_payments(made, right).equal == len(SHOWN) * len(made.events)
    for shown in SHOWN:
        value = right[-1][shown.metric]
        wrong = [*right[:-1], {**right[-1], shown.metric: 0 if value is None else None}]
        verdict = check_payments(made, wrong)
        assert verdict.compared - verdict.equal == 1
        assert f"{made.events[-1]['tx_id']}: {shown.metric} is" in verdict.differences[0]


def test_a_separation_is_of_the_pattern_and_of_ordinary_payments() -> None:
    values = {"merchant_bin_tests_10m": (7, 5, 4, 9, 0), "card_times_usual": (1.0,) * 5}
    values["device_cards_7d"] = (None, 1, 1, 4, 1)
    patterns = [shown.pattern for shown in SHOWN]
    labels = dict(zip("abc", (patterns[0], patterns[1], patterns[0]))) | {"d": patterns[2]}
    some = Payments([{"tx_id": each} for each in "abcdefg"], labels, "m")
    found = [{name: each[row % 5] for name, each in values.items()} for row in range(7)]
    tests, times, cards = separations(some, found)
    assert (tests.fraud_median, tests.ordinary_median, tests.caught, tests.flagged) == (5.5, 5, 0.5, 2 / 3)
    assert (times.caught, times.flagged) == (0, 0)
    assert (cards.fraud_median, cards.ordinary_median, cards.caught, cards.flagged) == (4, 1, 1, 0)


def test_the_table_has_80_columns(made: Payments) -> None:
    truth = PaymentsBruteForce(made.events)
    right = [truth.results(row) for row in range(len(made.events))]
    console = demo.Console(width=80, record=True)
    console.print(payments_table(separations(made, right)))
    shown = console.export_text()
    assert "…" not in shown
    assert all(f"{each.metric} >= {each.start}" in shown for each in SHOWN)


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
        r"(node-\d) killed after \d+ departures: its (\d+) tasks were answered elsewhere", said
    )
    assert killed is not None
    assert int(killed[2]) >= 2 * PARTITIONS // len(NAMES)
    assert f"{killed[1]} is started again" in said
    assert f"3 nodes, 3 units, {2 * PARTITIONS} tasks × 2 copies" in said
