"""`railgun bench`: its figures are there and agree with one another, what it refuses, and that it leaves nothing."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from railgun.cli.main import main

ROOT = Path(__file__).parents[2]
START_MS = 1_700_000_000_000
EVENTS, APART_MS = 1_000, 50
DAY_MS = 86_400_000

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card", "shop"]
lateness = "1s"
partitions = 4

[streams.payments.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "string"

[[metrics]]
sql = "SELECT count(*) AS n FROM payments GROUP BY card OVER SLIDING 10 SECONDS"
[[metrics]]
sql = "SELECT count(*) AS m FROM payments GROUP BY shop OVER SLIDING 10 SECONDS"
"""
CLICKS = '[streams.clicks.fields]\npage = "string"\n'
QUICK = ["--seconds", "0.4", "--rate", "200"]
# A busy machine may not keep up with single events.
_TIMES = 5


def line(number: int, **changed: Any) -> str:
    event = {
        "id": f"t{number}",
        "ts": START_MS + number * APART_MS,
        "card": f"c{number % 17}",
        "shop": None if number % 4 == 0 else "s",
    }
    return json.dumps(event | changed) + "\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which a bench works; nothing is left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with definitions and a file of events."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.toml").write_text(DEFINITIONS)
    (tmp_path / "e.ndjson").write_text("".join(map(line, range(EVENTS))))
    return tmp_path


def bench(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["bench", "d.toml", "e.ndjson", *QUICK, "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_figures_agree_with_one_another(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(_TIMES):
        found = bench(capsys, "--peak", "20000")
        if found["single_events"]["not_single"] is None:
            break
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["memory_bytes"] > 0
    assert found["machine"]["processor"]
    assert set(found["machine"]["versions"]) >= {"railgun", "python", "numba", "numpy"}
    assert (found["stream"], found["files"]) == ("payments", ["e.ndjson"])

    events = found["events"]
    assert (events["read"], events["used"], events["refused"], events["is_whole"]) == (
        EVENTS,
        EVENTS,
        0,
        True,
    )
    assert (events["round_ms"], events["per_s"]) == (EVENTS * APART_MS, 20)

    filling, full = found["filling"], found["full_speed"]
    assert filling["is_full"]
    assert filling["stopped_by"] is None
    assert filling["reached_ms"] > filling["reach_ms"] == 10_000
    assert full["events"] > 0
    assert full["events_per_s"] == pytest.approx(full["events"] / full["seconds"], rel=0.02)
    # As many leave a window as come in, each to the window of its own task.
    assert full["expiries_per_arrival"] == pytest.approx(1, abs=0.05)
    by_card, by_shop = full["tasks"]
    assert (by_card["partitioner"], by_card["events"]) == ("card", full["events"])
    assert by_shop["events"] == pytest.approx(full["events"] * 3 / 4, rel=0.01)
    assert [each["behind_ms"] for each in by_card["edges"]] == [10_000]
    assert by_card["late"] == by_card["duplicates"] == 0
    assert full["cpu_us"] > full["background_cpu_us"] >= 0
    assert full["record_bytes"] > 30
    assert full["reply_bytes"] > 0

    single = found["single_events"]
    assert (single["rate"], single["events"]) == (200, 80)
    assert 0 < single["p50_ms"] <= single["p99_ms"] <= single["p999_ms"] <= single["greatest_ms"]
    assert single["cpu_us"] > 0
    assert (single["kept_up"], single["not_single"]) == (True, None)
    assert found["memory"]["process_bytes"] > found["memory"]["tasks_bytes"] >= 0

    disk = found["disk"]
    assert disk["year_events"] == 20 * 365 * 86_400
    stored = by_card["stored_bytes"] + by_shop["stored_bytes"] * 3 / 4
    assert disk["event_bytes"] == pytest.approx(stored, rel=0.02)
    assert disk["retention_ms"] == by_card["kept_ms"] == by_shop["kept_ms"] == 30 * DAY_MS
    kept_events = disk["year_events"] * 30 / 365
    assert disk["year_bytes"] == pytest.approx(disk["event_bytes"] * kept_events, rel=0.02)
    assert disk["state_bytes"] > 0

    peak = found["peak"]
    assert peak["events_per_s"] == 20_000
    assert peak["cores"] == pytest.approx(20_000 * full["cpu_us"] / 1e6, rel=0.02, abs=0.002)
    assert peak["cores_if_single"] == pytest.approx(20_000 * single["cpu_us"] / 1e6, rel=0.02, abs=0.002)
    assert peak["partitions"] >= 1


def test_windows_that_time_does_not_fill_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.toml").write_text(DEFINITIONS.replace("10 SECONDS", "3650 DAYS"))
    found = bench(capsys)
    assert (found["filling"]["is_full"], found["filling"]["stopped_by"]) == (False, "time")
    assert found["full_speed"]["expiries_per_arrival"] == 0
    assert found["peak"] is None
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"windows: NOT full: they reach back 3650 d, and \d s filled \d+ \w+ .*\(.* events\)\n", shown
    )
    assert "0.00 expiries for each arrival" in shown


def test_windows_that_lose_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.toml").write_text(DEFINITIONS.replace("SLIDING 10 SECONDS", "INFINITE"))
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 0
    assert "windows: none of them ever loses an event" in capsys.readouterr().out


def test_the_figures_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(_TIMES):
        assert main(["bench", "d.toml", "e.ndjson", *QUICK, "--peak", "5_000"]) == 0
        shown = capsys.readouterr()
        if "latency, p50" in shown.out:
            break
    assert shown.out.startswith("payments: 1,000 events over 50 s, 20 a second, again and again\nmachine: ")
    for pattern in (
        r"\n  throughput +[\d,]+ events/s +one thread",
        r"\n  processor time +[\d.]+ µs an event +[\d.]+ in background threads; by task card [\d.]+, shop [\d.]+\n",
        r"\n  latency, p50 +[\d.,]+ ms +single events, 200 due each second\n",
        r"\n  latency, p99\.9 +[\d.,]+ ms +of 80 events; the longest [\d.,]+ ms\n",
        r"\n  on disk +[\d.]+ bytes an event +in all tasks; ",
        r"\n  a year on disk +[\d.]+ GB +630,720,000 events in all tasks, of which the last 30 d are kept \(ret",
        r"\n  5,000 events/s +[\d.]+ cores +the tasks alone, in batches;.*; \d+ partitions? at least\n",
        r"\nwindows: full; (0\.9|1\.0)\d expiries for each arrival, ",
        r"\nAll this is of 2 tasks \(card, shop; one partition each\), fed by one thread in turn:\n",
        "Kafka, and copies in a cluster come on top",
    ):
        assert re.search(pattern, shown.out), pattern
    phases = [each.partition(",")[0] for each in shown.err.splitlines()]
    assert phases == [
        "reading events",
        "filling the windows",
        "events as fast as they can be",
        "single events",
    ]


def test_what_is_late_refused_or_sent_twice_is_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line(number) for number in range(EVENTS)]
    rows[500] = line(500, ts="soon")
    rows[600] = "{broken\n"
    rows[601] = line(601, id=None)
    rows[602] = line(602, ts="later", id=None)
    rows[700] = rows[699]
    for number in range(200, 300):
        rows[number] = line(number, ts=START_MS)
    (folder / "e.ndjson").write_text("".join(rows))
    found = bench(capsys)
    events = found["events"]
    assert (events["read"], events["refused"], events["used"]) == (EVENTS, 4, EVENTS - 4)
    assert events["refused_by_reason"] == {"ts: no timestamp": 2, "row: unreadable": 1, "id: null": 1}
    for row, refusal in zip((501, 601, 602), events["refusals"], strict=True):
        assert refusal.startswith(f"e.ndjson, row {row}: ")
    assert events["refusals"][0].startswith("e.ndjson, row 501: ts: 'soon' is no")
    task = found["full_speed"]["tasks"][0]
    # In each round of those used 100 are late and one is a duplicate. Pieces need not be whole rounds.
    rounds = task["events"] / (EVENTS - 4)
    assert task["late"] == pytest.approx(100 * rounds, abs=110)
    assert task["duplicates"] == pytest.approx(rounds, abs=1.5)
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 0
    shown = capsys.readouterr().out
    assert "\nrefused: 4 rows of 1,000; by reason, each with its first:\n" in shown
    assert "\n  ts: no timestamp, 2 rows; e.ndjson, row 501: ts: 'soon' is no" in shown
    assert "\n  row: unreadable, 1 row; e.ndjson, row 601: " in shown
    assert re.search(
        r"\nlate: (9|10|11)% of the events. Are the files in the order in which events come\?\n", shown
    )


def test_columns_that_are_no_fields_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "e.ndjson").write_text("".join(line(number, more=1) for number in range(EVENTS)))
    assert bench(capsys)["events"]["ignored"] == {"e.ndjson": ["more"]}


def test_a_partitioner_that_no_event_has_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "e.ndjson").write_text("".join(line(number, shop=None) for number in range(EVENTS)))
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 0
    assert "\nno event has a value of shop, so nothing was done for it\n" in capsys.readouterr().out


def test_a_rate_that_is_too_high_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "d.toml", "e.ndjson", "--seconds", "0.4", "--rate", "1e9", "--peak", "1e7"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert re.search(
        r"\nsingle events: 1,000,000,000 single events a second are too many for this machine: [\d,]+ were answered; "
        r"try a smaller --rate\n",
        shown.out,
    )
    assert "\nsingle events, 1,000,000,000/s, for at most " in shown.err
    assert re.search(
        r"\n  10,000,000 events/s +[\d.,]+ cores +the tasks alone, in batches; .* [\d,]+ part", shown.out
    )
    assert "latency, " not in shown.out
    assert "a single event" not in shown.out
    assert "if each came alone" not in shown.out

    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    single = found["single_events"]
    assert not single["kept_up"]
    assert "are too many for this machine" in single["not_single"]
    assert single["kept_rate"] == pytest.approx(single["events"] / single["seconds"], rel=0.02)
    assert {single[key] for key in ("p50_ms", "p99_ms", "p999_ms", "greatest_ms", "cpu_us")} == {None}
    assert found["peak"]["cores_if_single"] is None


def test_a_window_outranks_retention_on_disk(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = DEFINITIONS.replace('lateness = "1s"', 'lateness = "1s"\nretention = "5s"\ndedup_events = 1000')
    (folder / "d.toml").write_text(text.replace("card OVER SLIDING 10", "card OVER SLIDING 500"))
    by_card, by_shop = bench(capsys)["full_speed"]["tasks"]
    # 1,000 ids of each of four partitions last for 200 s of 20 events/s, and for 267 s of three quarters of them.
    assert by_card["kept_ms"] == 500_000
    assert by_shop["kept_ms"] == pytest.approx(266_667, rel=0.01)
    (folder / "d.toml").write_text(text.replace('"5s"', '"forever"'))
    found = bench(capsys)
    assert found["disk"]["retention_ms"] is None
    assert found["full_speed"]["tasks"][0]["kept_ms"] == 365 * DAY_MS


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ("", "e.ndjson: there is no event in it; name a file with events"),
        (line(1, ts="no") * 3, "e.ndjson: none of 3 rows can be an event of the stream; the first: e.ndjson, row"),
        (line(1), "e.ndjson: with 1 event nothing says how often they come; name a file with more"),
        (line(1) + line(2, ts=START_MS + APART_MS), "e.ndjson: all 2 events are of 2023-11-14T22:13:20.050Z, so"),
    ],
)  # fmt: skip
def test_events_that_cannot_be_repeated(
    events: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "e.ndjson").write_text(events)
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1].startswith(f"railgun bench: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.toml", "e.ndjson"], "gone.toml: No such file or directory; is the path right?"),
        (["d.toml", "gone.csv"], "gone.csv: No such file or directory; is the path right?"),
        (["d.toml", "e.ndjson", "--stream", "payment"], "d.toml: unknown stream 'payment'; did you mean payments?"),
        (["d.toml", "e.ndjson", "--rate", "0"], "argument --rate: 0 is no number above 0; see railgun bench --help"),
        (["d.toml", "e.ndjson", "--peak", "many"], "argument --peak: many is no number above 0; see railgun bench"),
    ],
)  # fmt: skip
def test_wrong_use(words: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"railgun bench: {message}")


def test_several_streams_need_a_choice(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.toml").write_text(DEFINITIONS + CLICKS)
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 2
    assert "it defines payments, clicks; say which one with --stream" in capsys.readouterr().err
    assert bench(capsys, "--stream", "payments")["stream"] == "payments"


def test_a_disk_without_room(
    folder: Path, temporary: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil._ntuple_diskusage(10**12, 10**12, 5 * 10**8)  # type: ignore[attr-defined]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    assert main(["bench", "d.toml", "e.ndjson", *QUICK]) == 2
    message = (
        f"railgun bench: {temporary}: 0.5 GB are free, and a bench needs 1.0 GB; free some, or name another"
    )
    assert capsys.readouterr().err.splitlines()[-1].startswith(message)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_bench_leaves_nothing(number: int, code: int, folder: Path, temporary: Path) -> None:
    command = [sys.executable, "-m", "railgun", "bench", "d.toml", "e.ndjson", "--seconds", "100"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while not list(temporary.glob("railgun-bench-*/*/0/reservoir/*.seg")):
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(number)
            shown, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, shown) == (code, "")
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert error.splitlines()[-1] == f"railgun bench: {word}"


def test_an_event_that_is_sent_twice_is_on_disk_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = bench(capsys)["disk"]
    (folder / "e.ndjson").write_text("".join(2 * line(number) for number in range(EVENTS)))
    twice = bench(capsys)["disk"]
    assert twice["event_bytes"] == pytest.approx(once["event_bytes"] / 2, rel=0.1)
    assert twice["year_bytes"] == pytest.approx(once["year_bytes"], rel=0.1)
