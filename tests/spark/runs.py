"""Off-line runs with everything in them, for validation: definitions, events, and the replies of the engine."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from railgun.cli.main import main
from railgun.spark.validation.run_source import RunFiles
from railgun.spark.validation.translate import InexpressibleError

STREAM = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["card", "*"]
partitions = 3
lateness = "8s"
dedup_events = 40
late_policy = "{policy}"

[streams.s.fields]
id = "string"
ts = "timestamp"
card = "string"
shop = "long"
amount = "double"
count = "long"
price = "decimal(9,2)"
note = "string"
ok = "boolean"
"""
WINDOWS = (
    "SLIDING 30 SECONDS",
    "SLIDING 3 SECONDS",
    "SLIDING 20 SECONDS DELAYED BY 6 SECONDS",
    "TUMBLING 25 SECONDS",
    "TUMBLING 10 SECONDS DELAYED BY 3 SECONDS",
    "INFINITE",
    "INFINITE DELAYED BY 9 SECONDS",
)
# What the language has beside aggregates over windows: without the event itself, conditions of their own, functions,
# the clocks of zones, casts, and derived metrics.
CONSTRUCTS = """
[[metrics]]
sql = '''SELECT avg(amount) AS usual, count(*) AS seen, max(price) AS dearest, last(ts) AS latest,
          count_distinct(note) FILTER (WHERE ok) AS said
       FROM s GROUP BY card OVER SLIDING 30 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = '''SELECT min(count) AS least, stddev_pop(amount) AS spread FROM s WHERE shop IS NOT NULL
       GROUP BY shop OVER TUMBLING 25 SECONDS EXCLUDE CURRENT'''
[[metrics]]
sql = '''SELECT prev(note) AS said_before, sum(price) AS spent FROM s GROUP BY card OVER INFINITE EXCLUDE CURRENT'''
[[metrics]]
sql = '''SELECT count(*) FILTER (WHERE HOUR(ts IN 'Europe/Lisbon') < 6) AS nightly,
          sum(MINUTE(ts IN 'Asia/Kolkata') + DAY_OF_WEEK(ts)) AS minutes,
          max(ROUND(amount)) AS rounded, sum(FLOOR(price)) AS whole,
          count(*) FILTER (WHERE CEIL(price) = price) AS even,
          last(UPPER(TRIM(note)) || '/' || CAST(shop AS string)) AS tag, max(LENGTH(note)) AS longest,
          sum(GREATEST(ABS(amount), 2e0)) AS least_two, last(NULLIF(SUBSTR(note, 1, 1), 'a')) AS initial,
          max(SQRT(ABS(amount))) AS root, sum(CASE WHEN ok THEN 1 WHEN note LIKE '%B%' THEN 2 END) AS cases,
          count(*) FILTER (WHERE COALESCE(ok, false) AND price > 1.00) AS bought
       FROM s GROUP BY card OVER SLIDING 30 SECONDS'''
[[metrics]]
sql = '''SELECT min(LEAST(count, shop, 5)) AS lower, first(LEAST(note, 'b')) AS lesser,
          sum(DAY(CAST(CAST(amount * 1e9 AS long) AS timestamp) IN 'America/New_York')) AS days,
          max(MONTH(CAST(CAST(amount * 1e9 AS long) AS timestamp))) AS last_month,
          max(YEAR(CAST(CAST(amount * 1e9 AS long) AS timestamp) IN 'Pacific/Apia')) AS last_year,
          sum(ROUND(price, 1)) AS tenths, last(ROUND(price, 0)) AS units, last(ROUND(price, 2)) AS as_it_is,
          sum(CAST(count AS double)) AS as_double, min(CAST(price AS double)) AS price_as_double,
          sum(CAST(amount AS long)) AS cut, max(CAST(price AS long)) AS price_cut,
          last(CAST(count AS decimal(18,2))) AS as_decimal, last(CAST(price AS decimal(6,1))) AS narrower,
          max(CAST(shop * 86400000 AS timestamp)) AS shop_day, last(CAST(ts AS long)) AS ms,
          sum(CAST(SUBSTR(id, 2) AS long)) AS numbers, count(CAST(note AS long)) AS numeric
       FROM s GROUP BY card OVER SLIDING 30 SECONDS'''
[[metrics]]
sql = '''DERIVE amount / usual AS times_usual, CAST(ts AS long) - CAST(latest AS long) AS gap_ms,
          nightly * 1.0 / (seen + 1) AS night_share, note = said_before AS says_again,
          COALESCE(price, 0.00) > COALESCE(dearest, 0.00) AS is_dearest, seen + COALESCE(said, 0) AS either,
          CASE WHEN least < count THEN tag ELSE initial END AS shown, either % 7 AS rest,
          ROUND(dearest, 1) AS dearest_tenths, CAST(dearest AS decimal(9,0)) AS dearest_units,
          YEAR(shop_day) AS shop_year, LEAST(usual, 5e1) AS usual_most, CAST(usual AS long) AS usual_cut FROM s'''
"""
NUMERIC = ("sum", "avg", "stddev", "stddev_pop", "var_samp", "var_pop")
ANY = ("count", "min", "max", "first", "last", "prev")
FIELDS = ("amount", "count", "price", "note", "ok", "ts")
START_MS = 1_700_000_000_000


def definitions(
    policy: str, windows: Iterable[int] = range(len(WINDOWS)), *, full: bool = False, few: bool = False
) -> str:
    """Every aggregate over windows of every kind, with a predicate here and there.

    full: of every type too.  few: `sum` and `last`, beside the numbers of all events and of values.
    """
    parts = [STREAM.format(policy=policy)]
    numeric_names, any_names = (("sum",), ("count", "last")) if few else (NUMERIC, ANY)
    for number in windows:
        window = WINDOWS[number]
        numeric = FIELDS[:3] if full else FIELDS[number % 3 : number % 3 + 1]
        items = ["count(*)"] + [f"{name}({field})" for name in numeric_names for field in numeric]
        items += [
            f"{name}({field})"
            for place, name in enumerate(any_names)
            for field in (FIELDS if full else [FIELDS[(number + place) % len(FIELDS)]])
        ]
        items += ["count_distinct(note)"] if full or number in (0, 2, 3) else []
        named = ", ".join(f"{item} AS m{number}_{place}" for place, item in enumerate(items))
        where = "WHERE LOWER(note) LIKE '%a%' OR amount > 1 " if number % 3 == 1 else ""
        group = ("card, shop", "card", "shop")[number % 3]
        parts.append(f'[[metrics]]\nsql = """SELECT {named} FROM s {where}GROUP BY {group} OVER {window}"""')
    return "\n".join(parts)


def events(seed: int, n: int) -> list[dict[str, Any]]:
    """Late, duplicate and null ones among them; a third of them of one card."""
    source = random.Random(seed)
    made: list[dict[str, Any]] = []
    clock = START_MS
    for number in range(n):
        clock += source.choice((0, 0, 100, 400, 1_500))
        lag = source.choice((0, 0, 0, 700, 4_000, 7_900, 15_000))
        made.append(
            {
                "id": f"e{number}" if source.random() > 0.1 or not made else source.choice(made[-60:])["id"],
                "ts": clock - lag,
                "card": None
                if source.random() < 0.05
                else source.choice(("hot", "hot", "c1", "c2", "c3", "c4")),
                "shop": source.choice((None, 1, 2)),
                "amount": source.choice((None, 0.1, 1e6, -2.25, source.random() * 100)),
                "count": source.choice((None, 0, 7, -(1 << 63), (1 << 63) - 1)),
                "price": source.choice((None, "0.01", "-9999999.99", f"{number}.50")),
                "note": source.choice((None, "a", "B", "Ä", "ǅ", "zß", "\U0001f600", "")),
                "ok": source.choice((None, True, False)),
            }
        )
    return made


def run(
    folder: Path,
    definition: str,
    rows: list[dict[str, Any]],
    suffix: str = ".parquet",
    *,
    skip_bad: bool = False,
) -> RunFiles:
    """Run the engine over rows; what it read and wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    places = [folder / "d.toml", folder / "events.ndjson", folder / f"out{suffix}"]
    places[0].write_text(definition, encoding="utf-8")
    places[1].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    words = [str(each) for each in places]
    assert main(["run", *words[:2], "--out", words[2], *(["--skip-bad"] if skip_bad else [])]) == 0
    return RunFiles(words[0], "s", (words[1],), words[2], skip_bad)


def add_to_replies(files: RunFiles, name: str, added: Mapping[int, Any]) -> None:
    """Plant errors in a column of a Parquet file of replies: by row, what is added to its value."""
    table = pq.read_table(files.out)
    values = table.column(name).to_pylist()
    for row, more in added.items():
        values[row] = type(values[row])(values[row] + more)
    place, type_ = table.schema.get_field_index(name), table.schema.field(name).type
    pq.write_table(table.set_column(place, name, pa.array(values).cast(type_)), files.out)


@contextmanager
def partitioners_in_spark() -> Iterator[None]:
    """For random streams: what Spark cannot compute may be a partitioner, and is refused then."""
    try:
        yield
    except InexpressibleError as error:
        if not str(error).startswith("Spark cannot compute the partitioner "):
            raise
