"""The bench of others' work: events are seeded and in order, values are compared, and a wrong one leaves no figures."""

import json
from argparse import Namespace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.kept_results import known
from bench.report import Report
from bench.workloads import __main__ as command
from bench.workloads.catalog import WORKLOADS
from bench.workloads.exact import WrongValuesError, answered, compare, expected, reach_ms
from bench.workloads.generated import GeneratedEvents
from bench.workloads.measuring import measured
from bench.workloads.write import main as write
from railgun.catalog.definitions import load_definitions
from railgun.cli.main import main
from railgun.measuring.measured import MeasuredTasks

SCALE, SEED = 0.005, 1
NAMES = list(WORKLOADS)


def first_events(name: str, seed: int, events: int = 150_000) -> pa.Table:
    taken, rows = [], 0
    for block in WORKLOADS[name].blocks(SCALE, seed):
        taken.append(block)
        rows += block.num_rows
        if rows >= events:
            return pa.Table.from_batches(taken)
    raise AssertionError("a generator ended")


@pytest.mark.parametrize("name", NAMES)
def test_events_are_seeded_and_in_order_without_ties(name: str) -> None:
    made = first_events(name, SEED)
    assert made.equals(first_events(name, SEED))
    assert not made.equals(first_events(name, SEED + 1))
    assert all(earlier < later for earlier, later in pairwise(made.column("ts").to_pylist()))
    assert made.column(0).to_pylist() == list(range(len(made)))
    assert not any(column.null_count for column in made.columns)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_compared_and_a_wrong_one_is_found(name: str) -> None:
    workload = WORKLOADS[name]
    definitions = load_definitions(str(workload.definitions))
    text = workload.definitions.read_text()
    (stream,) = definitions.streams.values()
    events = GeneratedEvents(stream, workload.blocks(SCALE, SEED), reach_ms(text))
    tasks = MeasuredTasks(stream, definitions.metrics_of(stream.name))
    try:
        tasks.feed(events.take(20_000))
        got = answered(tasks, definitions, events, 500, [0, 250, 499])
    finally:
        tasks.close()
    places = [20_000, 20_250, 20_499]
    left = events.position - len(events.taken)
    exact = expected(text, events.taken, [place - left for place in places])
    assert set(exact[0]) == {metric.name for metric in definitions.metrics}
    compare(places, exact, got)
    for metric, value in got[1].items():
        wrong = 7 if value is None else value + 1
        with pytest.raises(
            WrongValuesError, match=rf"^1 values differ, of 3 events: event 20250: {metric}: "
        ):
            compare(places, exact, [got[0], got[1] | {metric: wrong}, got[2]])


def test_events_that_no_window_holds_are_let_go() -> None:
    workload = WORKLOADS["tiktok"]
    (stream,) = load_definitions(str(workload.definitions)).streams.values()
    events = GeneratedEvents(stream, workload.blocks(SCALE, SEED), 0)
    for _ in range(10):
        events.take(1_000)
    assert (events.position, len(events.taken)) == (10_000, 1_000)
    assert events.taken.column(0)[-1].as_py() == 9_999


def test_a_workload_has_its_figures() -> None:
    figures = measured(WORKLOADS["tiktok"], SCALE, 2)
    assert 0 < figures["events_per_s_least"] <= figures["events_per_s"] <= figures["events_per_s_greatest"]
    assert figures["cpu_us_per_event"] > 0
    assert figures["record_bytes_per_event"] > 30
    assert 10 < figures["stored_bytes_per_event"] < 200
    assert figures["expiries_per_arrival"] == pytest.approx(1, abs=0.1)
    assert figures["compared_events"] == 200


def test_what_is_kept_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "_measured", lambda name, report: {"events_per_s": 2.0})
    kept = known("workloads", {"runs": 1, "scale": SCALE}, tmp_path)
    kept.note("tiktok", "", {"events_per_s": 1.0})
    kept.write(tmp_path)
    for again, events_per_s in ((False, 1.0), (True, 2.0)):
        report = Report(1, SCALE, options=Namespace(again=again))
        command.case("tiktok")(report)
        assert report.figures == {"tiktok.events_per_s": events_per_s}


@pytest.mark.parametrize("name", NAMES)
def test_definitions_and_events_are_for_anyone(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events, out = tmp_path / "events.parquet", tmp_path / "out.ndjson"
    assert write([name, "--events", "3000", "--scale", str(SCALE), "--out", str(events)]) == 0
    assert pq.read_metadata(events).num_rows == 3_000
    assert main(["run", str(WORKLOADS[name].definitions), str(events), "--out", str(out), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["events"], summary["refused"], summary["ignored"]) == (3_000, 0, {})
    replies = [json.loads(line) for line in out.read_text().splitlines()]
    if name == "fraud":
        assert {reply["terminal_risk_7d"] for reply in replies[:50]} == {0.0}
