"""The canonical text of metrics: it is kept in logs and folders, and two metrics are the same where it is equal."""

from collections.abc import Iterator

from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import MetricDefinition
from railgun.language.ast import (
    Aggregator,
    ArithmeticOperator,
    ComparisonOperator,
    Function,
    WindowKind,
)
from railgun.language.types import Kind
from railgun.plan.hot import text_of
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.golden.promises import held

STREAM = """
[streams.s]
time = "ts"
partitioners = ["card", "*"]
[streams.s.fields]
ts = "timestamp"
card = "string"
n = "long"
x = "double"
ok = "boolean"
p = "decimal(12,2)"
"""
QUERIES = (
    "select count(*), count(n), sum(n), sum(x), sum(p), avg(x), avg(p) from s group by card over sliding 7 days",
    "SELECT stddev(x), stddev_samp(n), stddev_pop(x), var_samp(x), var_pop(p) FROM s OVER SLIDING 9 MINUTES",
    "SELECT min(card), max(ts), first(ok), last(p), prev(x), count_distinct(card) FROM s OVER TUMBLING 1 DAY",
    "SELECT count(DISTINCT n) FROM s OVER INFINITE DELAYED BY 2 weeks",
    "SELECT sum(-x + n * 2 - 3 / x) AS a, sum(n % 7) AS b, sum(p * 1.5) AS c, sum(x * 1e3) AS d FROM s",
    "SELECT max(UPPER(card)) AS e, min(lower(card)) AS f, sum(abs(n)) AS g, sum(coalesce(x, 0)) AS h FROM s",
    "SELECT count(*) AS i FROM s WHERE x > 1 AND x >= 1 AND x < 9 AND x <= 9 AND n = 3 AND n != 4",
    "SELECT count(*) AS j FROM s WHERE ok OR NOT ok OR card = 'it''s' OR TRUE OR FALSE OR n IS NULL",
    "SELECT count(*) AS k FROM s WHERE n IN (1, 2) OR n NOT IN (3) OR n BETWEEN 1 AND 2 OR x NOT BETWEEN 3 AND 4",
    "SELECT count(*) AS l FROM s WHERE card LIKE 'a%' OR card NOT LIKE '_b' OR x IS NOT NULL",
    "SELECT sum(CASE WHEN ok THEN n ELSE 0 END) AS m, sum(CASE card WHEN 'a' THEN 1 END) AS o FROM s",
    'SELECT last("x") AS q FROM s OVER INFINITE',
    "SELECT max(substr(card, 1, 2) || trim(card)) AS r, sum(LENGTH(card)) AS t, max(nullif(n, 0)) AS u FROM s",
    "SELECT max(greatest(n, x)) AS v, min(LEAST(n, 7)) AS w, sum(round(p, 1)) AS y, sum(FLOOR(x)) AS z FROM s",
    "SELECT sum(ceil(p)) AS aa, sum(sqrt(n)) AS ab, max(cast(n as STRING)) AS ac, sum(cast(x AS long)) AS ad FROM s",
    "SELECT sum(cast(n AS Decimal( 9 , 2))) AS ae, max(cast(n as timestamp)) AS af, sum(round(x)) AS ag FROM s",
    "SELECT max(hour(ts)) AS ah, max(MINUTE(ts)) AS ai, max(day_of_week(ts)) AS aj, max(day(ts)) AS ak FROM s",
    "SELECT max(month(ts)) AS al, max(year(ts)) AS am, max(hour(ts in 'Etc/GMT-2')) AS an FROM s",
    "SELECT count(*), count(*) filter (where ok), sum(n) FILTER (WHERE x > 1 or ok) AS ao FROM s WHERE n > 1",
    "SELECT count(*), avg(p) AS ap FROM s GROUP BY card OVER SLIDING 5 MINUTES DELAYED BY 1 HOUR EXCLUDE CURRENT",
    "SELECT last(card) FROM s OVER INFINITE exclude current",
    "SELECT count(*) FILTER (WHERE NOT ok) FROM s WHERE x > 1 OR n > 1 OVER TUMBLING 1 DAY EXCLUDE CURRENT",
)


def metrics() -> Iterator[MetricDefinition]:
    streams = parse_definitions(STREAM).streams
    for sql in QUERIES:
        window = "" if " over " in sql.lower() else " OVER INFINITE"
        yield from metrics_from_sql(sql + window, streams)


def test_metrics_have_the_texts_names_and_types_that_they_had() -> None:
    held(
        "metric_texts.json",
        [
            {
                "name": each.name,
                "home": each.home,
                "sql": each.sql,
                "type": str(each.resolved.result_type),
            }
            for each in metrics()
        ],
    )


def test_expressions_have_the_columns_that_they_had() -> None:
    """The names of hot columns are stored with them."""
    arguments = {each.name: each.resolved.argument for each in metrics()}
    held(
        "column_texts.json",
        {name: text_of(argument) for name, argument in arguments.items() if argument is not None},
    )


def test_every_word_of_the_language_is_among_them() -> None:
    text = " ".join(each.sql for each in metrics())
    words = [str(each) for kind in (Aggregator, Function) for each in kind]
    assert [word for word in words if f"{word}(" not in text.lower()] == []
    signs = [str(each) for kind in (ArithmeticOperator, ComparisonOperator) for each in kind]
    assert [sign for sign in signs if f" {sign} " not in text] == []
    assert [str(each) for each in WindowKind if f" {each} ".upper() not in f"{text} "] == []


def test_words_that_are_written_and_shown() -> None:
    """Values of enumerations, whatever their names are in Python."""
    held("types.json", [str(each) for each in Kind])
