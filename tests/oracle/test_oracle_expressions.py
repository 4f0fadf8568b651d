"""Expression rules, each on values worked out by hand."""

import math
from fractions import Fraction

import pytest

from tests.oracle.errors import QueryRefused
from tests.oracle.expressions import evaluate
from tests.oracle.inference import infer
from tests.oracle.query import parse_expression
from tests.oracle.types import Row, parse_type

FIELDS = {
    name: parse_type(text)
    for name, text in {
        "n": "long",
        "m": "long",
        "low": "long",
        "big": "long",
        "x": "double",
        "y": "double",
        "huge": "double",
        "tiny": "double",
        "d": "decimal(10,2)",
        "e": "decimal(18,4)",
        "wide": "decimal(18,0)",
        "fine": "decimal(18,18)",
        "s": "string",
        "t": "timestamp",
        "u": "timestamp",
        "yes": "boolean",
        "no": "boolean",
        "nil": "long",
        "nob": "boolean",
        "nos": "string",
    }.items()
}
ROW: Row = {
    "n": 7,
    "m": -3,
    "low": -(2**63),
    "big": 2**63 - 1,
    "x": 0.1,
    "y": -5.5,
    "huge": 1e308,
    "tiny": 5e-324,
    "d": Fraction("12.50"),
    "e": Fraction("0.1000"),
    "wide": Fraction(10**18 - 1),
    "fine": Fraction(1, 10**18),
    "s": "Straße",
    "t": 1000,
    "u": 400,
    "yes": True,
    "no": False,
}


def value_of(text: str) -> tuple[str, object]:
    typed = infer(parse_expression(text), FIELDS)
    return str(typed.type), evaluate(typed, ROW)


LONGS = [
    ("n + m", 4),
    ("n * m", -21),
    ("big + 1", None),
    ("low - 1", None),
    ("big * 2", None),
    ("-low", None),
    ("ABS(low)", None),
    ("abs(m)", 3),
    ("-9223372036854775808", -(2**63)),
    ("n % m", 1),
    ("m % n", -3),
    ("-7 % 3", -1),
    ("low % -1", 0),
    ("n % 0", None),
    ("n + nil", None),
    ("t - u", 600),
    ("COALESCE(nil, n)", 7),
    ("CASE WHEN nob THEN 1 WHEN yes THEN 2 ELSE 3 END", 2),
    ("CASE WHEN no THEN 1 END", None),
    ("CASE n WHEN 7 THEN 1 ELSE 0 END", 1),
]
DOUBLES = [
    ("n / 2", 3.5),
    ("n / 0", None),
    ("1 / 3", 1 / 3),
    ("big / 1", 2.0**63),
    ("x + n", 7.1),
    ("x * 3", 0.30000000000000004),
    ("huge * 10", None),
    ("huge + huge", None),
    ("tiny / 2", 0.0),
    ("-tiny / 2", 0.0),
    ("0 * y", 0.0),
    ("y / 0.0", None),
    ("y % 2", -1.5),
    ("5.5 % -2", 1.5),
    ("y % 5.5", 0.0),
    ("y % 0", None),
    ("-0.0", 0.0),
    ("-(0.0)", 0.0),
    ("d / 4", 3.125),
    ("e / 1", 0.1),
    ("d + x", 12.6),
    ("1.5 + 2.5", 4.0),
    ("d + 1e0", 13.5),
    ("9007199254740993 + 0.0", 9007199254740992.0),
    ("wide + 0e0", 1e18),
    ("COALESCE(nil, 1.5)", 1.5),
    ("CASE WHEN yes THEN n ELSE x END", 7.0),
    ("COALESCE(9007199254740993, x)", 9007199254740992.0),
    ("ABS(y)", 5.5),
]
DECIMALS = [
    ("d + e", 4, "12.6000"),
    ("d - 0.5", 2, "12.00"),
    ("d * e", 6, "1.250000"),
    ("d * 1.5", 3, "18.750"),
    ("d * 2", 2, "25.00"),
    ("d + n", 2, "19.50"),
    ("wide + 1", 0, None),
    ("wide + 0", 0, str(10**18 - 1)),
    ("wide - big + big", 0, None),
    ("1000000000000000000 + wide * 0 - 1", 0, None),
    ("-wide - 1", 0, None),
    ("d + 10000000000000000", 2, None),
    ("d + 9999999999999987", 2, "9999999999999999.50"),
    ("d % 5", 2, "2.50"),
    ("-d % 5", 2, "-2.50"),
    ("-12.5 % d * 1", 2, "0.00"),
    ("d % 0", 2, None),
    ("d % 0.30", 2, "0.20"),
    ("n % e", 4, "0.0000"),
    ("fine * 3", 18, "0.000000000000000003"),
    ("ABS(-d)", 2, "12.50"),
    ("COALESCE(d, 0.0)", 2, "12.50"),
    ("CASE WHEN no THEN d ELSE 1.5 END", 2, "1.50"),
    ("CASE WHEN yes THEN d ELSE NULL END", 2, "12.50"),
]
BOOLEANS = [
    ("n > m", True),
    ("n = 7.0", True),
    ("9007199254740993 = 9007199254740992.0", False),
    ("9007199254740993 > 9007199254740992.0", True),
    ("big < 9223372036854775808.0", True),
    ("e = 0.1", True),
    ("e = 1e-1", False),
    ("e < 1e-1", True),
    ("x = 0.1", True),
    ("e = x", False),
    ("d = 12.5", True),
    ("d = 12.500", True),
    ("-0.0 = 0", True),
    ("t > u", True),
    ("yes > no", True),
    ("'b' > 'a'", True),
    ("'a' < 'aa'", True),
    ("'Z' < 'a'", True),
    ("'￿' < '😀'", True),
    ("nil = nil", None),
    ("nil = NULL", None),
    ("nil IS NULL", True),
    ("n IS NOT NULL", True),
    ("(nil > 1) IS NULL", True),
    ("no AND nob", False),
    ("yes AND nob", None),
    ("yes OR nob", True),
    ("no OR nob", None),
    ("NOT nob", None),
    ("NOT no", True),
    ("n IN (1, 7)", True),
    ("n IN (1, NULL)", None),
    ("n IN (7, NULL)", True),
    ("n NOT IN (1, NULL)", None),
    ("n NOT IN (7, NULL)", False),
    ("n IN (1, 2)", False),
    ("nil IN (1, 2)", None),
    ("n IN (6.5, 7.0)", True),
    ("e IN (0.1, 5)", True),
    ("n BETWEEN 7 AND 8", True),
    ("n BETWEEN 8 AND 7", False),
    ("n BETWEEN 8 AND NULL", False),
    ("n BETWEEN 7 AND NULL", None),
    ("n NOT BETWEEN 8 AND NULL", True),
    ("s LIKE 'Str%'", True),
    ("s LIKE 'Stra_e'", True),
    ("s LIKE 'stra%'", False),
    ("s LIKE '_'", False),
    ("'😀' LIKE '_'", True),
    ("'a%' LIKE 'a\\%'", True),
    ("'ab' LIKE 'a\\%'", False),
    ("'a_' LIKE '_\\_'", True),
    ("'a\\' LIKE 'a\\\\'", True),
    ("'ab' LIKE '\\a%b'", True),
    ("'' LIKE '%'", True),
    ("'' LIKE ''", True),
    ("'a' LIKE ''", False),
    ("'a\nb' LIKE 'a%b'", True),
    ("'aXbXc' LIKE '%X%c'", True),
    ("nos LIKE '%'", None),
    ("COALESCE(nob, yes)", True),
]
STRINGS = [
    ("UPPER(s)", "STRASSE"),
    ("LOWER('ΟΔΟΣ')", "οδοσ"),
    ("LOWER('İ')", "i̇"),
    ("UPPER('ŉ')", "ʼN"),
    ("UPPER('ﬁ')", "FI"),
    ("UPPER(nos)", None),
    ("COALESCE(nos, 'it''s')", "it's"),
]


@pytest.mark.parametrize(("text", "expected"), LONGS)
def test_longs(text: str, expected: int | None) -> None:
    assert value_of(text) == ("long", expected)


@pytest.mark.parametrize(("text", "expected"), DOUBLES)
def test_doubles(text: str, expected: float | None) -> None:
    kind, value = value_of(text)
    assert (kind, value) == ("double", expected)
    assert not isinstance(value, float) or value != 0.0 or math.copysign(1.0, value) == 1.0


@pytest.mark.parametrize(("text", "scale", "expected"), DECIMALS)
def test_decimals(text: str, scale: int, expected: str | None) -> None:
    assert value_of(text) == (f"decimal(18,{scale})", None if expected is None else Fraction(expected))


@pytest.mark.parametrize(("text", "expected"), BOOLEANS)
def test_booleans(text: str, expected: bool | None) -> None:
    kind, value = value_of(text)
    assert kind == "boolean"
    assert value is expected


@pytest.mark.parametrize(("text", "expected"), STRINGS)
def test_strings(text: str, expected: str | None) -> None:
    assert value_of(text) == ("string", expected)


def test_timestamps() -> None:
    assert value_of("t + 5") == ("timestamp", 1005)
    assert value_of("t - 5") == ("timestamp", 995)
    assert value_of("t + big") == ("timestamp", None)
    assert value_of("t + low - 1001") == ("timestamp", None)
    assert value_of("(u + low) - t") == ("long", None)


@pytest.mark.parametrize(
    "text",
    [
        "missing",
        "s + 1",
        "s = 1",
        "t = 5",
        "yes = 1",
        "yes + 1",
        "n + t",
        "t * 2",
        "t + u",
        "t + 1.5",
        "-s",
        "NOT n",
        "n AND yes",
        "n LIKE 'x'",
        "LOWER(n)",
        "ABS(t)",
        "fine * e",
        "d * 1.12345678901234567",
        "e = 1.1234567890123456789",
        "d = 12345678901234567.89",
        "CASE WHEN n THEN 1 END",
        "CASE WHEN yes THEN 1 ELSE 'x' END",
        "CASE WHEN yes THEN NULL END",
        "COALESCE(d, e)",
        "COALESCE(d, n)",
        "COALESCE(d, x)",
        "COALESCE(d, 1.234)",
        "COALESCE(t, n)",
        "s LIKE 'x\\'",
        "9223372036854775808",
        "1e999",
        "n IN (1, 'x')",
    ],
)
def test_expressions_without_a_type(text: str) -> None:
    with pytest.raises(QueryRefused):
        infer(parse_expression(text), FIELDS)
