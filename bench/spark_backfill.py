"""How fast history becomes tasks: real flights, shuffled, six metrics, Spark's sort included; and workers' memory."""

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.flights_run import FIELDS_AND_METRICS, fetched
from railgun.catalog.definitions import parse_definitions
from railgun.spark.backfill.engine import BackfillOfEngine
from railgun.spark.backfill.source import HistorySource
from railgun.spark.backfill.target import BackfillRequest

DEFINITIONS = f"""
[streams.flights]
time = "date"
id = "id"
partitioners = ["origin", "destination"]
partitions = 1
lateness = "1m"
[streams.flights.fields]
id = "long"{FIELDS_AND_METRICS}"""
_CUT_MS = 4_102_444_800_000
_PAUSE_S = 0.2


@dataclass(slots=True)
class Peak:
    """The greatest resident memory of a worker, in size_bytes."""

    size_bytes: int = 0


def measure(spark: SparkSession, events: int, prefix: str = "", hot_share: float = 0.0) -> dict[str, int]:
    """Return `backfill` in events/s and `backfill_worker_peak_mib`. hot_share: the share of events of one origin."""
    with tempfile.TemporaryDirectory(prefix="railgun-bench-backfill-") as name:
        folder = Path(name)
        history = _history(folder, events, hot_share)
        source = HistorySource.of([str(history)])
        request = BackfillRequest(folder / "data", parse_definitions(DEFINITIONS), source, {}, _CUT_MS)
        made = BackfillOfEngine(request)
        with _watched() as peak:
            report = made.build(lambda: spark)
        print(report.as_text())
        made.install()
    return {
        f"{prefix}backfill": round(report.events / report.seconds),
        f"{prefix}backfill_worker_peak_mib": peak.size_bytes >> 20,
    }


def _history(folder: Path, events: int, hot_share: float) -> Path:
    """Write flights of the real file, shuffled and with ids; repeatedly if more are wanted than it has."""
    flights = fetched()
    if flights is None:
        raise SystemExit("the flights cannot be fetched")
    table = pq.read_table(flights)
    source = np.random.default_rng(1)
    rows = source.permutation(events) % len(table)
    chosen = table.take(rows).append_column("id", pa.array(np.arange(events)))
    if hot_share:
        origins = chosen.column("origin").to_numpy(zero_copy_only=False).astype(object)
        origins[source.random(events) < hot_share] = "HOT"
        chosen = chosen.set_column(chosen.schema.get_field_index("origin"), "origin", pa.array(origins))
    pq.write_table(chosen, folder / "history.parquet", row_group_size=250_000)
    return folder / "history.parquet"


@contextmanager
def _watched() -> Iterator[Peak]:
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(_PAUSE_S):
            for each in psutil.Process().children(recursive=True):
                try:
                    if "python" in each.name():
                        peak.size_bytes = max(peak.size_bytes, each.memory_info().rss)
                except psutil.Error:
                    continue

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()
