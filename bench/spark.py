"""How fast Spark validates a run and builds history: `python -m bench.spark --events 1000000`.

One key has 30 % of the events, the others about ten in the window: the shape at which joining every pair would end.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.spark_backfill import measure as measure_backfill
from railgun.cli.main import main as railgun
from railgun.spark.environment import local_session
from railgun.spark.validation.run_source import RunFiles
from railgun.spark.validation.validate_run import validate_run

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "tx_id"
partitioners = ["card"]
lateness = "5s"
[streams.payments.fields]
tx_id = "string"
ts = "timestamp"
card = "string"
amount = "double"
[[metrics]]
sql = '''SELECT count(*) AS n, sum(amount) AS total, max(amount) AS greatest FROM payments
         GROUP BY card OVER SLIDING 1 HOUR'''
"""
HOUR_MS, START_MS = 3_600_000, 1_700_000_000_000
HOT_SHARE, PER_KEY, WINDOWS = 0.3, 10, 4


def events(n: int, seed: int = 1) -> pa.Table:
    """Return n payments over the time of four windows. A few of them are late by up to four seconds."""
    source = np.random.default_rng(seed)
    cards = max(1, int(n * (1 - HOT_SHARE)) // (PER_KEY * WINDOWS))
    card = np.where(source.random(n) < HOT_SHARE, 0, 1 + source.integers(0, cards, n))
    times = START_MS + np.sort(source.integers(0, WINDOWS * HOUR_MS, n))
    late = np.where(source.random(n) < 0.02, source.integers(0, 4_000, n), 0)
    return pa.table(
        {
            "tx_id": [f"t{number}" for number in range(n)],
            "ts": times - late,
            "card": pa.array(card).cast(pa.string()),
            "amount": np.round(source.gamma(2.0, 30.0, n), 2),
        }
    )


def main() -> None:
    """Run the engine, validate its results with Spark, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--backfill-events", type=int, default=3_000_000)
    parser.add_argument("--memory", default="1g")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="railgun-bench-spark-") as name:
        folder = Path(name)
        (folder / "d.toml").write_text(DEFINITIONS)
        pq.write_table(events(arguments.events), folder / "events.parquet")
        places = [str(folder / each) for each in ("d.toml", "events.parquet", "out.parquet")]
        if railgun(["run", places[0], places[1], "--out", places[2]]) != 0:
            raise SystemExit(1)
        files = RunFiles(places[0], "payments", (places[1],), places[2])
        spark = local_session(memory=arguments.memory)
        try:
            report, again = validate_run(spark, files), validate_run(spark, files)
            backfill = measure_backfill(spark, arguments.backfill_events)
            backfill |= measure_backfill(spark, arguments.backfill_events, "hot_", HOT_SHARE)
        finally:
            spark.stop()
    print(report.as_text())
    rates = {"validation": report, "validation_again": again}
    figures = {name: round(each.events / each.seconds) for name, each in rates.items()} | backfill
    print(json.dumps({"bench": "spark", "figures": figures}))
    if report.mismatches or again.mismatches:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
