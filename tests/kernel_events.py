"""Events that have every kernel called, but for the few that only rare events call.

They meet every aggregator over every kind of window, on disk.
"""

import tempfile
from pathlib import Path

import pyarrow as pa

from railgun.engine.engine import Engine
from railgun.task.settings import TaskSettings

_STREAM = """
[streams.warmup]
time = "ts"
id = "id"
partitioners = ["k", "*"]
partitions = 2
dedup_events = 100
[streams.warmup.fields]
id = "string"
ts = "timestamp"
k = "string"
d = "double"
n = "long"
m = "decimal(9,2)"
b = "boolean"
[streams.crowd]
id = "id"
partitioners = ["id"]
[streams.crowd.fields]
id = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM crowd GROUP BY id OVER SLIDING 1 SECOND"
"""
_WINDOWS = ("SLIDING 2 SECONDS", "SLIDING 1 SECOND DELAYED BY 1 SECOND", "TUMBLING 1 SECOND", "INFINITE")
# An aggregator of every kind of state. Kernels are compiled for kinds of columns, not for each metric.
_ITEMS = (
    *("count(*)", "sum(d)", "avg(n)", "stddev(m)", "min(d)", "max(k)", "first(ts)", "last(b)", "prev(d)"),
    "count_distinct(k)",
)
_EVENTS, _STEP = 600, 50
# A chunk has few events, so that some chunks are sealed, written and read back. The sweep of idle rows is always due.
_SETTINGS = TaskSettings(chunk_events=64, sweep_interval_s=0.0)
_CROWD = 3_000  # more ids and entities than tables begin with


def _definitions() -> str:
    """Return a stream with a field of every type, metrics of every kind of state, and one metric of many entities."""
    metrics = []
    for number, window in enumerate(_WINDOWS):
        named = ", ".join(f"{item} AS m{number}_{index}" for index, item in enumerate(_ITEMS))
        filtered = "WHERE LOWER(k) LIKE 'k%' AND (d > 1 OR n IN (1, 2, 3)) " if number % 2 else ""
        metrics.append(
            f'[[metrics]]\nsql = """SELECT {named} FROM warmup {filtered}GROUP BY k OVER {window}"""'
        )
    return _STREAM + "\n".join(metrics)


def _events() -> pa.Table:
    rows = range(_EVENTS)
    odd = [1e300, 5e-324, -2.5e-9, 3.25]
    return pa.table(
        {
            "id": [f"e{row % (_EVENTS - 5)}" for row in rows],
            "ts": [1_700_000_000_000 + 20 * row - (row % 7) * 30 for row in rows],
            "k": [None if row % 11 == 0 else f"K{row % 3}é" for row in rows],
            "d": [odd[row % 4] if row % 50 == 0 else row / 4 for row in rows],
            "n": [None if row % 9 == 0 else row - 300 for row in rows],
            "m": [f"{row}.25" for row in rows],
            "b": [row % 2 == 0 for row in rows],
        }
    )


def play() -> None:
    """Score the events in a temporary folder, and recover from a checkpoint."""
    table = _events()
    with tempfile.TemporaryDirectory(prefix="railgun-events-") as folder:
        with Engine(Path(folder) / "data", durability="os", settings=_SETTINGS) as engine:
            engine.apply(_definitions())
            engine.score_table("warmup", table.slice(0, _EVENTS // 2))
            engine.score_table("crowd", pa.table({"id": [f"e{number}" for number in range(_CROWD)]}))
            engine.add_metrics("warmup", "SELECT max(k) AS later FROM warmup GROUP BY k OVER SLIDING 1 HOUR")
            # The steps are small, so that kernels which notice the work of other threads are called too.
            for first in range(_EVENTS // 2, _EVENTS, _STEP):
                engine.score_table("warmup", table.slice(first, _STEP))
        with Engine(Path(folder) / "data", durability="os", settings=_SETTINGS) as engine:
            engine.values("warmup", [{"k": "K1é"}, {"k": None}, {"k": "of none"}])
            engine.score("warmup", {**table.slice(_EVENTS - 1).to_pylist()[0], "id": "once more"})
            engine.drop_metric("warmup", "later")
