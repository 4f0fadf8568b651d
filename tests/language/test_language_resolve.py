"""Metrics of a query: their types, names and the form in which they are shared."""

import hashlib

import pytest

from railgun.language.parser import parse_query
from railgun.language.resolve import ResolvedMetric, resolve
from railgun.language.typed import Apply, Constant, Field, Operation, fields_of
from railgun.language.types import BOOLEAN, DOUBLE, LONG, STRING, decimal, parse_type

FIELDS = {
    name: parse_type(text)
    for name, text in {
        "card": "string",
        "merchant": "string",
        "amount": "double",
        "n": "long",
        "d": "decimal(10,2)",
        "at": "timestamp",
        "ok": "boolean",
    }.items()
}


def metric(select: str, rest: str = "OVER INFINITE") -> ResolvedMetric:
    return resolve(parse_query(f"SELECT {select} FROM s {rest}"), FIELDS, "s")[0]


RESULTS = [
    ("count(*)", "long"),
    ("count(card)", "long"),
    ("count(DISTINCT ok)", "long"),
    ("sum(n)", "integer128"),
    ("sum(d)", "decimal(38,2)"),
    ("sum(d * d)", "decimal(38,4)"),
    ("sum(amount)", "double"),
    ("sum(n / 2)", "double"),
    ("sum(at - at)", "integer128"),
    ("avg(n)", "double"),
    ("avg(amount)", "double"),
    ("avg(d)", "decimal(38,6)"),
    ("stddev(d)", "double"),
    ("stddev_pop(n)", "double"),
    ("var_samp(amount)", "double"),
    ("var_pop(n)", "double"),
    ("min(card)", "string"),
    ("max(d)", "decimal(10,2)"),
    ("max(d + 1)", "decimal(18,2)"),
    ("first(at)", "timestamp"),
    ("last(ok)", "boolean"),
    ("prev(at + 5)", "timestamp"),
    ("last(n > 3)", "boolean"),
    ("min(COALESCE(n, amount))", "double"),
    ("min(CASE WHEN ok THEN d ELSE 0.5 END)", "decimal(10,2)"),
    ("min(d + 0.005)", "decimal(18,3)"),
    ("min(n + 0.5)", "double"),
]


@pytest.mark.parametrize(("select", "result"), RESULTS)
def test_result_types(select: str, result: str) -> None:
    assert str(metric(select).result_type) == result


def test_conversions_are_explicit() -> None:
    d, n = Field(decimal(10, 2), "d"), Field(LONG, "n")
    assert metric("sum(n / 3)").argument == Apply(
        DOUBLE, Operation.DIVIDE, (Apply(DOUBLE, Operation.TO_DOUBLE, (n,)), Constant(DOUBLE, 3.0))
    )
    assert metric("sum(d + 1.50)").argument == Apply(
        decimal(18, 2), Operation.ADD, (d, Constant(decimal(3, 2), 150))
    )
    assert metric("max(COALESCE(d, 1.5, NULL))").argument == Apply(
        decimal(10, 2), Operation.COALESCE, (d, Constant(decimal(10, 2), 150), Constant(decimal(10, 2), None))
    )


def test_what_is_shorthand_is_written_out() -> None:
    n, card = Field(LONG, "n"), Field(STRING, "card")
    one, null = Constant(LONG, 1), Constant(BOOLEAN, None)
    assert metric("count(*)", "WHERE n BETWEEN 1 AND NULL OVER INFINITE").predicate == Apply(
        BOOLEAN, Operation.AND, (Apply(BOOLEAN, Operation.GREATER_EQUAL, (n, one)), null)
    )
    assert metric("max(CASE n WHEN 1 THEN card END)").argument == Apply(
        STRING,
        Operation.CASE,
        (Apply(BOOLEAN, Operation.EQUAL, (n, one)), card, Constant(STRING, None)),
    )


def test_a_metric_says_everything_that_its_value_depends_on() -> None:
    found = metric(
        "sum(n + 1) AS total", "WHERE card LIKE 'a%' GROUP BY merchant, card, merchant OVER TUMBLING 2 WEEKS"
    )
    assert found.name == "total"
    assert found.stream == "s"
    assert found.group_by == ("card", "merchant")
    assert (found.window.kind, found.window.size_ms, found.window.delay_ms) == ("tumbling", 1_209_600_000, 0)
    assert found.predicate is not None
    assert fields_of(found.predicate) == {"card"}
    assert found.argument_text == "n + 1"
    assert found.predicate_text == "card LIKE 'a%'"
    assert found.canonical == (
        "SELECT sum(n + 1) FROM s WHERE card LIKE 'a%' GROUP BY card, merchant OVER TUMBLING 14 DAYS"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "sum(n) FROM s GROUP BY card, merchant OVER INFINITE",
            "sum(n) FROM s GROUP BY merchant,card OVER INFINITE",
        ),
        ("sum(n) AS a FROM s OVER SLIDING 1 DAY", "SUM(n) AS b FROM s OVER SLIDING 24 HOURS"),
        (
            "count(*) FILTER (WHERE ok) FROM s WHERE n > 1 OR ok OVER INFINITE",
            "count(*) FROM s WHERE (n > 1 OR ok) AND ok OVER INFINITE",
        ),
        (
            "sum(n) FILTER (WHERE ok AND n > 2) AS a FROM s WHERE n > 1 AND n < 5 OVER INFINITE",
            "sum(n) filter (where n > 2) FROM s WHERE n > 1 AND (n < 5 AND ok) OVER INFINITE",
        ),
        ("avg(n) FILTER (WHERE ok) FROM s OVER INFINITE", "avg(n) FROM s WHERE ok OVER INFINITE"),
        ("stddev(n) FROM s WHERE (n > 1) OVER INFINITE", "stddev_samp(n) FROM s WHERE n > 1 OVER INFINITE"),
    ],
)
def test_equal_metrics_have_equal_text(one: str, other: str) -> None:
    first, second = (resolve(parse_query(f"SELECT {text}"), FIELDS, "s")[0] for text in (one, other))
    assert first.canonical == second.canonical
    assert (first.argument, first.predicate) == (second.argument, second.predicate)


def test_canonical_text_resolves_to_the_same_metric() -> None:
    for select, _ in RESULTS:
        found = metric(select, "WHERE ok GROUP BY merchant, card OVER SLIDING 1 WEEK")
        again = resolve(parse_query(found.canonical), FIELDS, "s")[0]
        assert again == found


NAMES = [
    ("max(SUBSTR(card, 1, 2) || merchant)", "OVER INFINITE", "max_substr_card_1_2_concat_merchant_infinite"),
    ("sum(CAST(d AS decimal(9,1)))", "OVER INFINITE", "sum_cast_d_as_decimal_9_1_infinite"),
    ("count(*)", "OVER INFINITE", "count_infinite"),
    ("sum(amount)", "GROUP BY card OVER SLIDING 7 DAYS", "sum_amount_by_card_sliding_7d"),
    ("stddev(n)", "OVER SLIDING 5 MINUTES DELAYED BY 1 HOUR", "stddev_samp_n_sliding_5m_delayed_1h"),
    ("count(DISTINCT card)", "OVER TUMBLING 1 DAY", "count_distinct_card_tumbling_1d"),
    ("count(*)", "WHERE amount > 0 OVER INFINITE", "count_where_amount_gt_0_infinite"),
    ("count(*)", "WHERE amount < 0 OVER INFINITE", "count_where_amount_lt_0_infinite"),
    ("sum(n)", "GROUP BY merchant, card OVER INFINITE", "sum_n_by_card_merchant_infinite"),
    ("avg(n)", "OVER INFINITE EXCLUDE CURRENT", "avg_n_infinite_exclude_current"),
    (
        "avg(n)",
        "OVER TUMBLING 1 DAY DELAYED BY 1 HOUR exclude  current",
        "avg_n_tumbling_1d_delayed_1h_exclude_current",
    ),
    ("max(LOWER(card))", "OVER INFINITE DELAYED BY 1 WEEK", "max_lower_card_infinite_delayed_7d"),
    ("sum(n * -2)", "OVER INFINITE", "sum_n_times_minus_2_infinite"),
    ("count(*)", "WHERE card = 'É' OVER INFINITE", "count_where_card_eq_infinite"),
]


@pytest.mark.parametrize(("select", "rest", "name"), NAMES)
def test_names_of_metrics_without_one(select: str, rest: str, name: str) -> None:
    assert metric(select, rest).name == name


def test_long_names_are_cut_and_told_apart() -> None:
    texts = [f"WHERE card IN ('merchant number one', 'another one', '{i}') OVER INFINITE" for i in range(50)]
    found = [metric("sum(amount * amount)", text) for text in texts]
    assert len({m.name for m in found}) == len(found)
    for m in found:
        assert len(m.name) <= 63
        assert m.name.endswith("_" + hashlib.sha256(m.canonical.encode()).hexdigest()[:8])


def test_every_select_item_makes_a_metric_in_order() -> None:
    query = parse_query("SELECT count(*), sum(n) AS total, avg(n) FROM s OVER SLIDING 1 HOUR")
    assert [m.name for m in resolve(query, FIELDS, "s")] == ["count_sliding_1h", "total", "avg_n_sliding_1h"]
