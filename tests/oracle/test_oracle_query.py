"""The oracle's parser: whole queries and the shapes of expressions."""

import pytest

from tests.oracle.errors import QueryRefused
from tests.oracle.query import parse_expression, parse_query
from tests.oracle.syntax import (
    Binary,
    Call,
    Case,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Metric,
    Negation,
    Not,
    Window,
)

A, B, C = Field("a"), Field("b"), Field("c")
ONE, TWO = Literal("integer", "1"), Literal("integer", "2")


def test_a_query_makes_one_metric_for_each_item() -> None:
    found = parse_query(
        "select COUNT(*) as n, Sum(a+1) AS s,count(DISTINCT b) AS d, stddev(a) AS sd\n FROM events "
        "WHERE b = 'it''s' GROUP BY b, c OVER Sliding 7 days delayed by 1 Hour"
    )
    rest = (
        "events",
        Binary("=", B, Literal("string", "it's")),
        ("b", "c"),
        Window("sliding", 7 * 86_400_000, 3_600_000),
    )
    assert found == [
        Metric("n", "count", None, *rest),
        Metric("s", "sum", Binary("+", A, ONE), *rest),
        Metric("d", "count_distinct", B, *rest),
        Metric("sd", "stddev_samp", A, *rest),
    ]


def test_keywords_may_be_names() -> None:
    (metric,) = parse_query("SELECT last(a) AS delayed FROM Group GROUP BY over, By OVER INFINITE")
    assert (metric.name, metric.stream, metric.group_by) == ("delayed", "Group", ("over", "By"))


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("SLIDING 1 MILLISECOND", Window("sliding", 1)),
        ("SLIDING 20 MILLISECONDS", Window("sliding", 20)),
        ("SLIDING 5 MINUTES DELAYED BY 1 HOUR", Window("sliding", 300_000, 3_600_000)),
        ("TUMBLING 1 DAY", Window("tumbling", 86_400_000)),
        ("TUMBLING 2 WEEKS DELAYED BY 3 SECONDS", Window("tumbling", 1_209_600_000, 3_000)),
        ("INFINITE", Window("infinite")),
        ("INFINITE DELAYED BY 1 SECOND", Window("infinite", 0, 1_000)),
    ],
)
def test_windows(text: str, window: Window) -> None:
    assert parse_query(f"SELECT count(*) AS n FROM s OVER {text}")[0].window == window


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a OR b AND NOT c", Binary("or", A, Binary("and", B, Not(C)))),
        ("NOT a = b", Not(Binary("=", A, B))),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("a + b * c", Binary("+", A, Binary("*", B, C))),
        ("(a + b) * c", Binary("*", Binary("+", A, B), C)),
        ("-a * b", Binary("*", Negation(A), B)),
        ("- 1", Literal("integer", "-1")),
        ("-(1)", Negation(ONE)),
        ("a -1", Binary("-", A, ONE)),
        ("a - -1", Binary("-", A, Literal("integer", "-1"))),
        ("1.50", Literal("point", "1.50")),
        ("1e-3", Literal("exponent", "1e-3")),
        ("a != b", Binary("<>", A, B)),
        (
            "a BETWEEN 1 AND 2 AND b",
            Binary("and", Binary("and", Binary(">=", A, ONE), Binary("<=", A, TWO)), B),
        ),
        ("a NOT IN (1, 2)", Not(In(A, (ONE, TWO)))),
        ("a LIKE 'x%'", Like(A, "x%")),
        ("a NOT LIKE 'x%'", Not(Like(A, "x%"))),
        ("a + 1 IS NOT NULL", Not(IsNull(Binary("+", A, ONE)))),
        ("CASE WHEN a THEN 1 END", Case(((A, ONE),), Literal("null"))),
        ("CASE a WHEN b THEN 1 ELSE 2 END", Case(((Binary("=", A, B), ONE),), TWO)),
        ("coalesce(a, b, TRUE)", Call("coalesce", (A, B, Literal("boolean", "true")))),
        ("Abs(a)", Call("abs", (A,))),
    ],
)
def test_expressions(text: str, expression: object) -> None:
    assert parse_expression(text) == expression


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT count(*) AS n FROM s",
        "SELECT count(*) FROM s OVER INFINITE",
        "SELECT sum(*) AS n FROM s OVER INFINITE",
        "SELECT median(a) AS n FROM s OVER INFINITE",
        "SELECT count(*) AS n FROM s OVER SLIDING 1 YEAR",
        "SELECT count(*) AS n FROM s OVER SLIDING 0 DAYS",
        "SELECT count(*) AS n FROM s OVER SLIDING 1.5 DAYS",
        "SELECT count(*) AS n FROM s OVER SLIDING 1DAY",
        "SELECT count(*) AS n FROM s GROUP BY a + 1 OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE a = b = c OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE a NOT b OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE a IN () OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE CASE ELSE 1 END OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE 'open OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE abs(a, b) > 1 OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE power(a) > 1 OVER INFINITE",
        "SELECT count(*) AS n FROM s WHERE a ! b OVER INFINITE",
        "SELECT count(*) AS n FROM s OVER INFINITE x",
    ],
)
def test_what_is_no_query(text: str) -> None:
    with pytest.raises(QueryRefused):
        parse_query(text)
