"""Backfill: a stream that begins with history answers as one whose log the history came through."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bench.payments import Payments, blocks
from railgun.catalog.definitions import parse_definitions
from railgun.cli.main import main
from railgun.demo.flights import read_flights
from railgun.engine.engine import Engine
from railgun.registry.errors import EngineError
from railgun.spark.backfill.build import Backfill, check_source
from railgun.spark.backfill.engine import BackfillOfEngine
from railgun.spark.backfill.rows import ROWS_SQL, Counts, RowRules, routing
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest
from railgun.spark.errors import BackfillFailedError, ColumnError, HistoryError
from railgun.task.settings import TaskSettings
from tests.spark.folders import DEFINITIONS, SMALL, START_MS, STEP_MS, payments, small_engine

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

METRICS = (
    DEFINITIONS
    + """
[[metrics]]
sql = '''SELECT max(amount) AS most, last(amount) AS latest, sum(amount) AS total, count_distinct(shop) AS shops
         FROM payments GROUP BY card OVER SLIDING 100 SECONDS'''
[[metrics]]
sql = '''SELECT first(price) AS first_price, min(amount) AS least FROM payments GROUP BY shop
         OVER SLIDING 50 SECONDS DELAYED BY 10 SECONDS'''
[[metrics]]
sql = '''SELECT avg(amount) AS usual, last(ts) AS last_ts FROM payments GROUP BY card
         OVER SLIDING 100 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = '''SELECT count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 4 = 0) AS fourths,
           first(MINUTE(ts IN 'Asia/Kolkata')) AS first_minute FROM payments GROUP BY shop OVER SLIDING 50 SECONDS'''
[[metrics]]
sql = "DERIVE amount / usual AS times_usual, ts - last_ts AS gap_ms, n + fourths AS both FROM payments"
"""
)
EVENTS = 400
CUT_MS = START_MS + EVENTS * STEP_MS
NOW_MS = CUT_MS + 10**9


def shuffled(table: pa.Table) -> pa.Table:
    """Rows in no order, each tenth twice."""
    n = len(table)
    return table.take(sorted(range(n), key=lambda row: row * 7919 % n) + list(range(0, n, 10)))


def backfill(
    data: Path,
    place: Path,
    *,
    columns: Mapping[str, str] | None = None,
    cut_ms: int = CUT_MS,
    definitions: str = METRICS,
    settings: TaskSettings | None = SMALL,
    format_: str | None = None,
) -> BackfillOfEngine:
    source = HistorySource.of([str(place)], format_)
    request = BackfillRequest(
        data, parse_definitions(definitions), source, columns or {}, cut_ms, settings=settings
    )
    return BackfillOfEngine(request)


def parquet(folder: Path, table: pa.Table) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "history.parquet", row_group_size=100)
    return folder / "history.parquet"


def test_it_answers_as_if_it_had_come_through_the_log(spark: SparkSession, tmp_path: Path) -> None:
    with small_engine(tmp_path / "log") as engine:
        engine.apply(METRICS)
        engine.score_table("payments", payments(0, EVENTS))
        wanted = engine.score_table("payments", payments(EVENTS - 30, 200))
    made = backfill(tmp_path / "data", parquet(tmp_path, shuffled(payments(0, EVENTS + 40))))
    told: list[tuple[str, int, int]] = []
    report = made.build(lambda: spark, lambda *said: told.append(said), NOW_MS)
    assert (report.counts.read, report.counts.after_cut, report.counts.refused_rows) == (484, 44, 0)
    assert [
        sum(task.events for task in report.tasks if task.partitioner == by) for by in ("card", "shop")
    ] == [
        440,
        sum(1 for i in [*range(EVENTS), *range(0, EVENTS, 10)] if i % 7),
    ]
    assert sum(task.duplicates for task in report.tasks if task.partitioner == "card") == 40
    made.install()
    with small_engine(tmp_path / "data") as engine:
        assert engine.score_table("payments", payments(EVENTS - 30, 200)).equals(wanted)
    assert all(0 <= done <= total and what for what, done, total in told)


def test_work_that_was_cut_off_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = parquet(tmp_path, payments(0, EVENTS))
    made = backfill(tmp_path / "data", place)
    made.plan()
    # Workers are processes of their own: what makes one fail there is on the disk.
    work = tmp_path / "data" / "backfill" / "payments" / "tasks"
    blocker = work / "shop" / "1"
    blocker.mkdir(parents=True)
    (blocker / "in_the_way").touch()
    with pytest.raises(Exception, match=r"not empty|in_the_way|ENOTEMPTY|exist"):
        made.build(lambda: spark, now_ms=NOW_MS)
    with pytest.raises(Exception, match=r"there|missing|No such file"):
        made.install()
    shutil.rmtree(blocker)
    finished = {each: each.stat().st_mtime_ns for each in work.glob("*/[0-9]/history/manifest.json")}
    assert finished
    leftover = work / "card" / "0.building-1234"
    leftover.mkdir()
    report = made.build(lambda: spark, now_ms=NOW_MS + 5)
    assert report.built == 4 - len(finished)
    assert {each: each.stat().st_mtime_ns for each in finished} == finished
    assert not leftover.exists()
    assert report.counts.read == EVENTS
    again = made.build(lambda: spark, now_ms=NOW_MS)
    assert (again.built, again.history) == (0, report.history)
    other = backfill(tmp_path / "data", place, cut_ms=CUT_MS - 1)
    with pytest.raises(HistoryError, match="the work of another backfill"):
        other.build(lambda: spark, now_ms=NOW_MS)
    was = place.stat()
    parquet(tmp_path, payments(0, EVENTS - 1))
    with pytest.raises(
        HistoryError, match=r"its files have changed since; put them back .*, or remove the folder"
    ):
        made.build(lambda: spark, now_ms=NOW_MS)
    parquet(tmp_path, payments(0, EVENTS))
    os.utime(place, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert made.build(lambda: spark, now_ms=NOW_MS).built == 0
    made.install()
    with small_engine(tmp_path / "data") as engine:
        reply = engine.score_table("payments", payments(EVENTS - 1, 1))
    assert reply.column("n").to_pylist() == [EVENTS // 5]
    assert reply.column("duplicate_card").to_pylist() == [True]


@pytest.mark.parametrize("n", [12_000, pytest.param(60_000, marks=pytest.mark.torture)])
def test_a_killed_job_is_run_again(spark: SparkSession, tmp_path: Path, n: int) -> None:
    place, data = parquet(tmp_path, payments(0, n)), tmp_path / "data"
    (tmp_path / "d.toml").write_text(METRICS)
    words = ["backfill", str(tmp_path / "d.toml"), str(place), "--data", str(data)]
    words += ["--until", str(START_MS + n * STEP_MS), "--cores", "1"]
    command = [sys.executable, "-m", "railgun", *words]
    job = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    work = data / "backfill" / "payments" / "tasks"
    try:
        deadline = time.monotonic() + 600
        while not any(work.glob("*/*/history/manifest.json")):
            assert job.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    with Engine(data) as engine:
        assert engine.metrics("payments")
        with pytest.raises(EngineError):
            engine.add_history("payments")
    finished = [each.parent.parent for each in work.glob("*/[0-9]/history/manifest.json")]
    assert 0 < len(finished) < 4
    before = {each: (each / "history" / "manifest.json").stat().st_mtime_ns for each in finished}
    made = backfill(data, place, cut_ms=START_MS + n * STEP_MS, settings=None)
    report = made.build(lambda: spark)
    assert report.built == 4 - len(finished)
    assert before == {each: (each / "history" / "manifest.json").stat().st_mtime_ns for each in finished}
    made.install()
    with Engine(data) as engine, Engine(tmp_path / "log") as reference:
        reference.apply(METRICS)
        reference.score_table("payments", payments(0, n))
        later = payments(n - 10, 100)
        assert engine.score_table("payments", later).equals(reference.score_table("payments", later))


def zoneless(table: pa.Table) -> pa.Table:
    """With times that have no zone."""
    times = pc.cast(table.column("ts"), pa.timestamp("ms")).cast(pa.timestamp("us"))
    return table.set_column(table.schema.get_field_index("ts"), "ts", times)


def test_rows_are_refused_by_reason_and_times_without_a_zone_are_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = payments(0, 60).to_pylist()
    for row in rows:
        row["amount"] = None if row["amount"] is None else float(row["amount"])
    rows[3]["amount"] = rows[9]["amount"] = float("nan")
    rows[5]["id"] = None
    rows[7]["ts"] = None
    rows[11]["ts"] = NOW_MS * 3
    rows[13]["price"] = "1.234"
    rows[14]["price"], rows[14]["amount"] = "x", float("inf")
    rows[15]["card"] = rows[15]["shop"] = None
    place = parquet(tmp_path, zoneless(pa.Table.from_pylist(rows, payments(0, 60).schema)))
    (tmp_path / "d.toml").write_text(METRICS)
    words = ["backfill", str(tmp_path / "d.toml"), str(place), "--data", str(tmp_path / "data")]
    words += ["--until", "2023-11-14T22:14:00Z"]
    assert main([*words, "--json"]) == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert {reason: each["rows"] for reason, each in report["refused"].items()} == {
        "amount: no double": 3,
        "id: null": 1,
        "price: no decimal(9,2)": 1,
        "ts: null": 1,
        "ts: out of range": 1,
    }
    assert report["refused"]["amount: no double"]["examples"] == [
        ["p3", "NaN is no double"],
        ["p9", "NaN is no double"],
        ["p14", "inf is beyond the doubles"],
    ]
    assert (report["nowhere"], report["after_cut"], report["installed"]) == (1, 20, False)
    assert "--skip-bad" in said.err
    with Engine(tmp_path / "data") as engine:
        assert engine.score("payments", {"id": "x", "ts": START_MS, "card": "c1"})["metrics"]["n"] == 1
    assert main([*words, "--skip-bad"]) == 0
    text = capsys.readouterr().out
    assert "refused, id: null: 1 rows" in text
    assert "0 of 4 tasks built now" in text
    assert text.count("times without a zone were taken as UTC: ts") == 1
    with Engine(tmp_path / "data") as engine:
        # The one event of the log came before the cut too.
        reply = engine.score("payments", {"id": "y", "ts": START_MS + 59_000, "card": "c1"})
    assert reply["metrics"]["n"] == 8 + 1


def test_an_empty_history_is_refused(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.toml").write_text(METRICS)
    place, data = parquet(tmp_path / "none", payments(0, 1).slice(1)), tmp_path / "data"
    words = ["backfill", str(tmp_path / "d.toml"), str(place), "--data", str(data)]
    assert main([*words, "--until", str(START_MS + 40 * STEP_MS)]) == 1
    assert "the history has no event before the cut: nothing was installed" in capsys.readouterr().err
    # The folder is free for a backfill of something else.
    left = sorted(each.name for each in (data / "backfill" / "payments").rglob("*"))
    assert not {"backfill.json", "tasks"} & set(left), left
    with Engine(data) as engine:
        assert engine.history("payments") is None


def as_csv(folder: Path, table: pa.Table) -> tuple[Path, dict[str, str]]:
    pacsv.write_csv(table, folder / "h.csv")
    return folder / "h.csv", {}


def as_json(folder: Path, table: pa.Table) -> tuple[Path, dict[str, str]]:
    text = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
    (folder / "h.ndjson").write_text(text)
    return folder / "h.ndjson", {}


def as_avro(folder: Path, table: pa.Table) -> tuple[Path, dict[str, str]]:
    schema = {
        "type": "record",
        "name": "event",
        "fields": [
            {"name": "id", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "card", "type": "string"},
            {"name": "shop", "type": ["null", "long"]},
            {"name": "amount", "type": ["null", "double"]},
            {"name": "price", "type": "string"},
            {"name": "online", "type": "boolean"},
        ],
    }
    (folder / "avro").mkdir()
    for part in range(2):
        rows = (
            table.slice(part * 80, 80).rename_columns([each["name"] for each in schema["fields"]]).to_pylist()
        )
        for row in rows:
            row["at"] = datetime.fromtimestamp(row["at"] / 1000, UTC)
        with (folder / "avro" / f"{part}.avro").open("wb") as file:
            fastavro.writer(file, schema, rows)
    return folder / "avro" / "*.avro", {"ts": "at"}


def as_other_columns(folder: Path, table: pa.Table) -> tuple[Path, dict[str, str]]:
    times = pc.cast(table.column("ts"), pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
    shaped = table.drop(["ts", "amount"]).append_column("when", times)
    cents = pc.multiply(table.column("amount"), 100).cast(pa.int64())
    return parquet(folder, shaped.append_column("cents", cents)), {"ts": "`when`", "amount": "cents / 100D"}


def as_parquet(folder: Path, table: pa.Table) -> tuple[Path, dict[str, str]]:
    return parquet(folder / "plain", table), {}


def event_of(record: bytes) -> list[object]:
    """All that a record holds, but for its place in the batch that it was read in."""
    held = msgspec.msgpack.decode(record[1:])
    return [*held[:5], *held[6:]]


def test_whatever_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """The records that tasks are built of hold the same."""
    stream = parse_definitions(METRICS).streams["payments"]
    tasks = {task: number for number, task in enumerate(stream.tasks)}
    found = []
    for form in (as_parquet, as_csv, as_json, as_avro, as_other_columns):
        place, columns = form(tmp_path, payments(0, 160))
        job = Backfill(HistorySource.of([str(place)]), columns, tmp_path / "work")
        rules = RowRules(stream, stream.schema(1), NOW_MS, CUT_MS, job.source.is_text, tasks, len(tasks))
        rows = check_source(spark, job, stream).mapInArrow(routing(rules), ROWS_SQL).collect()
        counts = [Counts.from_json(json.loads(row["record"])) for row in rows if row["task"] == len(tasks)]
        assert (sum(each.read for each in counts), sum(each.refused_rows for each in counts)) == (160, 0)
        rows = [row for row in rows if row["task"] < len(tasks)]
        found.append(sorted((row["task"], row["id"], event_of(row["record"])) for row in rows))
    assert len(found[0]) == 160 + sum(1 for row in range(160) if row % 7)
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("change", "columns", "said"),
    [
        (lambda t: t.drop(["card"]).append_column("crad", t.column("card")), {}, "--column card=crad"),
        (
            lambda t: t.set_column(4, "amount", [["x"] * len(t)]),
            {},
            "amount has string; double takes numbers",
        ),
        (lambda t: t.set_column(0, "id", t.column("ts")), {}, "id has bigint; string takes strings"),
        (lambda t: t, {"amuont": "amount"}, "has no field 'amuont'; did you mean amount"),
        (lambda t: t, {"amount": "nonsense(1)"}, "the mapping of columns"),
    ],
)
def test_wrong_columns_are_told_before_work_starts(
    spark: SparkSession, tmp_path: Path, change: object, columns: dict[str, str], said: str
) -> None:
    assert callable(change)
    made = backfill(tmp_path / "data", parquet(tmp_path, change(payments(0, 10))), columns=columns)
    with pytest.raises(ColumnError, match=said.replace("(", "\\(")):
        made.build(lambda: spark, now_ms=NOW_MS)
    assert not (tmp_path / "data").exists(), "with other definitions it can begin anew"


def test_history_that_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"nowhere.parquet: there is no such file or folder"):
        backfill(tmp_path / "data", tmp_path / "nowhere.parquet").build(lambda: spark)
    assert not (tmp_path / "data").exists()
    with pytest.raises(HistoryError, match="--format"):
        HistorySource.of(["events", "more.csv"])


def cut_short(folder: Path) -> Path:
    place = parquet(folder, payments(0, 100))
    place.write_bytes(place.read_bytes()[:-100])
    return place


def no_gzip(folder: Path) -> Path:
    """By its name it is."""
    folder.mkdir(exist_ok=True)
    pacsv.write_csv(payments(0, 10), folder / "history.csv")
    return (folder / "history.csv").rename(folder / "history.csv.gz")


@pytest.mark.parametrize(("damaged", "format_"), [(cut_short, None), (no_gzip, "csv")])
def test_history_that_is_damaged_is_told_before_work_starts(
    spark: SparkSession, tmp_path: Path, damaged: Callable[[Path], Path], format_: str | None
) -> None:
    place = damaged(tmp_path / "lake")
    with pytest.raises(HistoryError, match=f"^{place}: Spark cannot read it .*; is it whole") as refused:
        backfill(tmp_path / "data", place, format_=format_).build(lambda: spark, now_ms=NOW_MS)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "data").exists()


def test_damage_within_the_history_is_told_by_its_file(spark: SparkSession, tmp_path: Path) -> None:
    """Where it is met, what was begun is kept; with the file put right the job goes on."""
    place = parquet(tmp_path / "lake", payments(0, 1_000))
    whole = place.read_bytes()
    place.write_bytes(whole[:4] + b"\0" * 2_000 + whole[2_004:])
    made = backfill(tmp_path / "data", place)
    with pytest.raises(
        BackfillFailedError, match=f"^{place}: Spark cannot read it .*; is it whole"
    ) as failed:
        made.build(lambda: spark, now_ms=NOW_MS)
    assert "\n" not in str(failed.value)
    place.write_bytes(whole)
    assert backfill(tmp_path / "data", place).build(lambda: spark, now_ms=NOW_MS).counts.read == 1_000


def test_what_is_refused_before_work_starts_registers_nothing(spark: SparkSession, tmp_path: Path) -> None:
    data, history = tmp_path / "data", parquet(tmp_path, payments(0, 10))
    with small_engine(data) as engine:
        engine.apply(DEFINITIONS.replace("payments", "others"))
    wrong = {"amount": "nonsense(1)"}
    with pytest.raises(ColumnError):
        backfill(data, history, columns=wrong).build(lambda: spark, now_ms=NOW_MS)
    with small_engine(data) as engine:
        assert [stream.name for stream in engine.streams()] == ["others"]
        engine.apply(DEFINITIONS)
    with pytest.raises(ColumnError):
        backfill(data, history, columns=wrong).build(lambda: spark, now_ms=NOW_MS)
    with small_engine(data) as engine:
        assert [metric.name for metric in engine.metrics("payments")] == ["n"]
    made = backfill(data, history)
    assert made.build(lambda: spark, now_ms=NOW_MS).events == 10
    made.install()
    with small_engine(data) as engine:
        (reply,) = engine.score_table("payments", payments(10, 1)).to_pylist()
        assert (reply["n"], reply["shops"], reply["warming"]) == (3, 2, [])


def compare(
    spark: SparkSession,
    folder: Path,
    definitions: str,
    stream: str,
    table: pa.Table,
    order: tuple[str, str],
    cut_ms: int,
) -> None:
    """All events before the cut as history, shuffled; the rest in the log: alike a log that had all."""
    time, name = order
    is_before = pc.less(table.column(time), cut_ms)
    before, after = table.filter(is_before), table.filter(pc.invert(is_before))
    assert len(before) > 8 * len(after) > 0
    with Engine(folder / "log", durability="os") as engine:
        engine.apply(definitions)
        engine.score_table(stream, before.sort_by([(time, "ascending"), (name, "ascending")]))
        wanted = engine.score_table(stream, after)
    made = backfill(
        folder / "data",
        parquet(folder, shuffled(before)),
        cut_ms=cut_ms,
        definitions=definitions,
        settings=None,
    )
    report = made.build(lambda: spark, now_ms=NOW_MS * 2)
    assert report.counts.refused == {}
    made.install()
    with Engine(folder / "data", durability="os") as engine:
        got = engine.score_table(stream, after)
    for column in wanted.column_names:
        assert got.column(column).equals(wanted.column(column)), column


@pytest.mark.parametrize("n", [10_000, pytest.param(None, marks=pytest.mark.torture)])
def test_flights(spark: SparkSession, tmp_path: Path, n: int | None) -> None:
    """Those of some days, and of a year."""
    table = pa.Table.from_pylist([asdict(flight) for flight in read_flights()[:n]])
    cut_ms = table.column("scheduled")[-min(3_000, len(table) // 10)].as_py()
    text = resources.files("railgun.demo").joinpath("flights.toml").read_text("utf-8")
    compare(spark, tmp_path, text, "flights", table, ("scheduled", "departure"), cut_ms)


PAYMENTS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card", "merchant"]
partitions = 2
lateness = "5s"
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
merchant = "string"
amount = "double"
[[metrics]]
sql = '''SELECT count(*) AS n, sum(amount) AS total, max(amount) AS most FROM payments WHERE amount > 1
         GROUP BY card OVER SLIDING 5 MINUTES'''
[[metrics]]
sql = '''SELECT stddev(amount) AS spread, count_distinct(card) AS cards FROM payments
         GROUP BY merchant OVER SLIDING 1 HOUR'''
[[metrics]]
sql = "SELECT avg(amount) AS usual FROM payments WHERE amount > 1 GROUP BY card OVER SLIDING 5 MINUTES EXCLUDE CURRENT"
[[metrics]]
sql = '''SELECT count(*) FILTER (WHERE MINUTE(ts IN 'Asia/Kolkata') % 4 < 2) AS halves FROM payments
         GROUP BY merchant OVER SLIDING 1 HOUR'''
[[metrics]]
sql = "DERIVE amount / usual AS times_usual, n + halves AS both FROM payments"
"""


@pytest.mark.parametrize("n", [4_000, pytest.param(40_000, marks=pytest.mark.torture)])
def test_payments(spark: SparkSession, tmp_path: Path, n: int) -> None:
    made = Payments(events=n, cards=500, merchants=50)
    table = pa.Table.from_batches(list(blocks(made)))
    table = table.set_column(1, "ts", pc.cast(table.column("ts"), pa.int64()))
    cut_ms = table.column("ts")[n * 9 // 10].as_py()
    compare(spark, tmp_path, PAYMENTS, "payments", table, ("ts", "tx_id"), cut_ms)
