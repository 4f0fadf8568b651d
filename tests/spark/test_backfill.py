"""Backfill: a stream that begins with history answers as one whose log the history came through."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from railgun.catalog.definitions import parse_definitions
from railgun.engine.engine import Engine
from railgun.spark.backfill_engine import BackfillOfEngine
from railgun.spark.backfill_source import HistorySource
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
"""
)
EVENTS = 500
CUT_MS = START_MS + EVENTS * STEP_MS
NOW_MS = CUT_MS + 10**9


def history(folder: Path, table: pa.Table) -> str:
    """A Parquet file of events in no order, each tenth twice."""
    n = len(table)
    rows = sorted(range(n), key=lambda row: row * 7919 % n) + list(range(0, n, 10))
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.take(rows), folder / "history.parquet", row_group_size=100)
    return str(folder / "history.parquet")


def backfill_of(data: Path, place: str, **more: object) -> BackfillOfEngine:
    return BackfillOfEngine(
        data=data,
        definitions=parse_definitions(METRICS),
        source=HistorySource.of([place]),
        columns=more.get("columns", {}),
        cut_ms=more.get("cut_ms", CUT_MS),
        settings=SMALL,
    )


def test_it_answers_as_if(spark: SparkSession, tmp_path: Path) -> None:
    with small_engine(tmp_path / "log") as engine:
        engine.apply(METRICS)
        engine.score_table("payments", payments(0, EVENTS))
        wanted = engine.score_table("payments", payments(EVENTS - 30, 200))
    place = history(tmp_path, payments(0, EVENTS + 40))
    backfill = backfill_of(tmp_path / "data", place)
    report = backfill.build(lambda: spark, now_ms=NOW_MS)
    print(report.as_text())
    assert report.events == 550
    backfill.install()
    with small_engine(tmp_path / "data") as engine:
        assert engine.score_table("payments", payments(EVENTS - 30, 200)).equals(wanted)
