"""Deepening with Spark: a live stream's own events and older history, sorted as if both had come through its log."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.definitions import parse_definitions
from railgun.cli.main import main
from railgun.engine.engine import Engine
from railgun.history.build import HistoryPlan
from railgun.spark.backfill.engine import DeepeningOfEngine
from railgun.spark.backfill.service import DeepeningOfService
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest
from railgun.spark.errors import ColumnError, HistoryError
from railgun.state.lock import FolderLock
from tests.frontend.serving import server
from tests.spark.folders import DEFINITIONS, SMALL, START_MS, STEP_MS, payments, small_engine
from tests.spark.test_backfill import METRICS, NOW_MS, parquet, shuffled

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

BEGIN, CUT, NOW = 300, 340, 3_000
CUT_MS = START_MS + CUT * STEP_MS
LONG_IDS = METRICS.replace('id = "string"', 'id = "long"')


def request(data: Path, place: Path, definitions: str, cut_ms: int | None = CUT_MS) -> BackfillRequest:
    source = HistorySource.of([str(place)])
    return BackfillRequest(data, parse_definitions(definitions), source, {}, cut_ms, settings=SMALL)


def with_ids(table: pa.Table, definitions: str) -> pa.Table:
    if definitions is not LONG_IDS:
        return table
    # Negative and positive numbers: as text they would sort otherwise.
    numbers = [int(text[1:]) - 320 for text in table.column("id").to_pylist()]
    return table.set_column(0, "id", pa.array(numbers, pa.int64()))


def own_rows() -> pa.Table:
    """Live events: swapped pairs, and some that come so late that they count later."""
    numbers = list(range(BEGIN, NOW))
    for at in range(9, len(numbers) - 40, 12):
        numbers[at], numbers[at + 4] = numbers[at + 4], numbers[at]
    for at in range(30, len(numbers) - 60, 100):
        numbers.insert(at + 30, numbers.pop(at))
    return payments(0, NOW).take(numbers)


@pytest.mark.parametrize("definitions", [METRICS, LONG_IDS])
def test_it_answers_as_if_history_had_come_through_the_log(
    spark: SparkSession, tmp_path: Path, definitions: str
) -> None:
    own, history = (with_ids(each, definitions) for each in (own_rows(), payments(0, CUT + 20)))
    data = tmp_path / "data"
    with small_engine(data) as engine:
        engine.apply(definitions)
        engine.score_table("payments", own)
    made = DeepeningOfEngine(request(data, parquet(tmp_path, shuffled(history)), definitions))
    report = made.build(lambda: spark, now_ms=NOW_MS)
    assert report.counts.after_cut == 20 + sum(row % 10 == 0 for row in range(CUT, CUT + 20))
    with small_engine(data) as engine:
        meanwhile = with_ids(payments(NOW, 200), definitions)
        engine.score_table("payments", meanwhile)
    assert made.build(lambda: spark).built == 0
    with small_engine(data), pytest.raises(HistoryError, match="--url"):
        made.install()
    made.install()
    before = pa.concat_tables([t.filter(pc.less(t.column("ts"), CUT_MS)) for t in (history, own)])
    with small_engine(data) as engine, small_engine(tmp_path / "log") as reference:
        reference.apply(definitions)
        reference.score_table("payments", before.sort_by([("ts", "ascending"), ("id", "ascending")]))
        reference.score_table("payments", own.filter(pc.greater_equal(own.column("ts"), CUT_MS)))
        reference.score_table("payments", meanwhile)
        after = with_ids(payments(NOW + 200, 300), definitions)
        assert engine.score_table("payments", after).equals(reference.score_table("payments", after))
    table = spark.read.format("railgun").option("partitioner", "card").option("source", "reservoir")
    assert 0 < table.load(str(data)).where(f"event_time < '{_when(BEGIN)}'").count() <= BEGIN
    assert not (data / "backfill" / "payments").exists()


def test_what_another_job_builds_is_not_given_up(spark: SparkSession, tmp_path: Path) -> None:
    """It has found what this one had begun, and was first to build: in the same folder two would be in each other's
    way."""
    data, work, begun = tmp_path / "data", tmp_path / "work", list[tuple[HistoryPlan, FolderLock]]()
    with small_engine(data) as engine:
        engine.apply(METRICS)
        engine.score_table("payments", payments(BEGIN, 100))
    work.mkdir()
    asked = replace(request(data, parquet(tmp_path, payments(0, CUT)), METRICS), work=work)
    other = DeepeningOfEngine(asked)

    def session() -> SparkSession:
        begun.append((other.plan(), FolderLock(work)))
        return spark

    wrong = replace(asked, columns={"amount": "nonsense(1)"})
    taken = f"{work}: process {os.getpid()} builds there already"
    for mine, error, said in ((wrong, ColumnError, "nonsense"), (asked, HistoryError, taken)):
        if begun:
            assert other.give_up()
        with pytest.raises(error, match=said):
            DeepeningOfEngine(mine).build(session, now_ms=NOW_MS)
        plan, lock = begun[-1]
        assert other.plan() == plan
        lock.release()
    assert len(begun) == 2
    assert other.build(lambda: spark, now_ms=NOW_MS).built == 4
    other.install()
    with small_engine(data) as engine:
        assert engine.history("payments") == plan.history


def test_a_server_of_another_folder_is_left_as_it_was(tmp_path: Path) -> None:
    with server(tmp_path / "data", open_engine=lambda: small_engine(tmp_path / "data")) as running:
        running.define(METRICS)
        running.score("payments", payments(BEGIN, 1).to_pylist()[0])
        url = str(running.client.base_url)
        asked = request(tmp_path / "elsewhere", tmp_path / "history.parquet", METRICS, None)
        with pytest.raises(HistoryError, match="has another data folder; name that one"):
            DeepeningOfService(asked, url).plan()
        assert running.client.get("/v1/streams/payments/deepening").json()["state"] == "none"


def _when(row: int) -> str:
    return pc.strftime(pa.scalar(START_MS + row * STEP_MS, pa.timestamp("ms"))).as_py() + "Z"


def test_what_adds_nothing_is_told_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    (tmp_path / "d.toml").write_text(METRICS)
    with Engine(data) as engine:
        engine.apply(METRICS)
        engine.score_table("payments", payments(BEGIN, 300))
    words = ["backfill", str(tmp_path / "d.toml"), str(parquet(tmp_path / "own", payments(BEGIN, 200)))]
    options = ["--data", str(data), "--deepen", "--work", str(work)]
    assert main([*words, *options, "--json"]) == 0
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["installed"] is False
    assert report["events"] > 0
    assert [task["added"] for task in report["tasks"]] == [0] * 4
    assert "the stream has all of these events: nothing was installed" in said.err
    assert not (data / "backfill" / "payments").exists()
    with Engine(data) as engine:
        assert engine.deepening("payments") is None
        assert engine.history("payments") is None
    words[2] = str(parquet(tmp_path / "older", payments(0, CUT)))
    assert main([*words, *options]) == 0
    text = capsys.readouterr().out
    assert sum(int(line.split()[3]) for line in text.splitlines() if line.startswith("card/")) == BEGIN
    assert not (work / "backfill.json").exists()
    assert not (work / "tasks").exists()
    with Engine(data) as engine:
        assert engine.history("payments") is not None


def test_what_adds_no_event_makes_partial_metrics_whole(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A metric came when retention had let go what another one's window still keeps."""
    data, later = tmp_path / "data", tmp_path / "d.toml"
    before = DEFINITIONS.replace('lateness = "10s"', 'lateness = "10s"\nretention = "10s"')
    query = "SELECT count(*) AS later FROM payments GROUP BY card OVER SLIDING 50 MINUTES"
    later.write_text(f'{before}\n[[metrics]]\nsql = "{query}"\n')
    with Engine(data) as engine:
        engine.apply(before)
        engine.score_table("payments", payments(BEGIN, 300))
        engine.apply(later.read_text())
        (reply,) = engine.score_table("payments", payments(BEGIN + 300, 1)).to_pylist()
    assert reply["later"] < reply["n"] == 61
    assert [name for name, _ in reply["partial"]] == ["later"]
    words = ["backfill", str(later), str(parquet(tmp_path / "own", payments(BEGIN, 200)))]
    assert main([*words, "--data", str(data), "--deepen", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["installed"] is True
    assert [task["added"] for task in report["tasks"]] == [0] * 4
    with Engine(data) as engine:
        (reply,) = engine.score_table("payments", payments(BEGIN + 305, 1)).to_pylist()
    assert reply["later"] == reply["n"] == 62
    assert reply["partial"] == []


def test_what_is_refused_before_work_starts_leaves_nothing_begun(spark: SparkSession, tmp_path: Path) -> None:
    data, work = tmp_path / "data", tmp_path / "work"
    with small_engine(data) as engine:
        engine.apply(METRICS)
        engine.score_table("payments", payments(BEGIN, 300))
    work.mkdir()
    (work / "backfill.json").write_text('{"fingerprint": "f", "said": "something else"}')
    asked = request(data, parquet(tmp_path, payments(0, CUT)), METRICS)
    wrong = replace(asked, columns={"amount": "nonsense(1)"})
    for each, error in ((replace(asked, work=work), HistoryError), (wrong, ColumnError)):
        with pytest.raises(error):
            DeepeningOfEngine(each).build(lambda: spark, now_ms=NOW_MS)
        with small_engine(data) as engine:
            assert engine.deepening("payments") is None
    made = DeepeningOfEngine(asked)
    plan = made.plan()
    with pytest.raises(ColumnError):
        DeepeningOfEngine(wrong).build(lambda: spark, now_ms=NOW_MS)
    assert made.plan() == plan
