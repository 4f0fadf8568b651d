"""Data folders with a few hundred payments, for tests of what reads them."""

from pathlib import Path

import pyarrow as pa

from railgun.engine.engine import Engine
from railgun.task.settings import TaskSettings

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "id"
partitioners = ["card", "shop"]
partitions = 2
lateness = "10s"

[streams.payments.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "long"
amount = "double"
price = "decimal(9,2)"
online = "boolean"

[[metrics]]
sql = "SELECT count(*) AS n FROM payments GROUP BY card OVER SLIDING 1 HOUR"
"""
START_MS = 1_700_000_000_000
STEP_MS = 1_000
SMALL = TaskSettings(chunk_events=16, segment_bytes=1 << 13, checkpoint_interval_s=1e9)


def payments(first: int, n: int) -> pa.Table:
    """Rows first to first + n - 1, a second apart; each seventh has nulls."""
    rows = range(first, first + n)
    return pa.table(
        {
            "id": [f"p{row}" for row in rows],
            "ts": pa.array([START_MS + STEP_MS * row for row in rows], pa.int64()),
            "card": [f"c{row % 5}" for row in rows],
            "shop": pa.array([None if row % 7 == 0 else row % 3 for row in rows], pa.int64()),
            "amount": [None if row % 7 == 0 else row / 4 for row in rows],
            "price": [f"{row}.25" for row in rows],
            "online": [row % 2 == 0 for row in rows],
        }
    )


def small_engine(folder: Path) -> Engine:
    """An engine with chunks of 16 events that writes a checkpoint only when it is closed."""
    return Engine(folder, durability="os", settings=SMALL)


def filled(folder: Path, n: int) -> Engine:
    """An open engine that has taken n payments; close it."""
    engine = small_engine(folder)
    try:
        engine.apply(DEFINITIONS)
        engine.score_table("payments", payments(0, n))
    except BaseException:
        engine.close()
        raise
    return engine
