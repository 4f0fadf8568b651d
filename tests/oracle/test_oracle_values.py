"""What comes in: types, times, durations, keys; nothing converts in silence."""

from decimal import Decimal
from fractions import Fraction

import pytest

from tests.oracle.durations import parse_duration, parse_retention
from tests.oracle.errors import DefinitionRefused, EventRefused
from tests.oracle.murmur2 import murmur2, partition
from tests.oracle.timestamps import parse_timestamp
from tests.oracle.types import parse_type
from tests.oracle.values import json_value, read_value, to_decimal


@pytest.mark.parametrize(
    ("declared", "value", "typed"),
    [
        ("long", -(2**63), -(2**63)),
        ("double", 3, 3.0),
        ("double", 2**60, 2.0**60),
        ("double", -0.0, 0.0),
        ("double", 5e-324, 5e-324),
        ("boolean", False, False),
        ("string", "", ""),
        ("string", None, None),
        ("decimal(5,2)", "-12.5", Fraction(-25, 2)),
        ("decimal(5,2)", "1.500", Fraction(3, 2)),
        ("decimal(5,2)", 999, Fraction(999)),
        ("decimal(5,2)", Decimal("0.01"), Fraction(1, 100)),
        ("timestamp", "1970-01-01T00:00:01Z", 1000),
    ],
)
def test_values_that_fit(declared: str, value: object, typed: object) -> None:
    got = read_value(value, parse_type(declared), "x")
    assert got == typed
    assert type(got) is type(typed)
    assert str(got) == str(typed)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("long", 1.5),
        ("long", 1.0),
        ("long", "1"),
        ("long", True),
        ("long", 2**63),
        ("double", "1"),
        ("double", 2**53 + 1),
        ("double", 10**400),
        ("double", float("nan")),
        ("double", float("-inf")),
        ("double", False),
        ("boolean", 1),
        ("string", 1),
        ("string", "\ud800"),
        ("decimal(5,2)", "1.005"),
        ("decimal(5,2)", 1000),
        ("decimal(5,2)", "-1000.00"),
        ("decimal(5,2)", 1.5),
        ("decimal(5,2)", "1e2"),
        ("decimal(5,2)", ""),
        ("timestamp", 1.0),
        ("timestamp", True),
        ("timestamp", "1970-01-01T00:00:00"),
        ("timestamp", 2**63),
    ],
)
def test_values_that_are_refused(declared: str, value: object) -> None:
    with pytest.raises(EventRefused):
        read_value(value, parse_type(declared), "x")


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14t23:13:20.5+01:00", 1_700_000_000_500),
        ("2023-11-14 21:43:20.0019-00:30", 1_700_000_000_001),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1969-12-31T23:59:59.9999z", -1),
        ("1969-12-31T23:59:59.0001Z", -1000),
        ("2000-02-29T00:00:00Z", 951_782_400_000),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
    ],
)
def test_times_in_text(text: str, expected_ms: int) -> None:
    assert parse_timestamp(text, "ts") == expected_ms


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2023-00-01T00:00:00Z",
        "2023-01-01T24:00:00Z",
        "2016-12-31T23:59:60Z",
        "2023-01-01T00:00:00.Z",
        "2023-01-01T00:00:00+24:00",
        "2023-01-01T00:00:00+0100",
        "2023-01-01",
        "1700000000000",
        "٢٠٢٣-01-01T00:00:00Z",
    ],
)
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(EventRefused):
        parse_timestamp(text, "ts")


def test_durations() -> None:
    assert [parse_duration(text, "x") for text in ("250ms", "5s", "10m", "1h", "7d", "2w")] == [
        250,
        5_000,
        600_000,
        3_600_000,
        604_800_000,
        1_209_600_000,
    ]
    assert parse_retention("forever") is None
    for text in ("5", "s", "1.5s", "5 s", "5S", 5):
        with pytest.raises(DefinitionRefused):
            parse_duration(text, "x")


@pytest.mark.parametrize(
    "text", ["decimal(19,2)", "decimal(2,3)", "decimal(0,0)", "int", "decimal", "STRING"]
)
def test_types_that_are_none(text: str) -> None:
    with pytest.raises(DefinitionRefused):
        parse_type(text)


def test_results_as_json() -> None:
    assert json_value(to_decimal(Fraction(5, 2), 4)) == "2.5000"
    assert json_value(to_decimal(Fraction(-1, 100), 2)) == "-0.01"
    assert json_value(to_decimal(Fraction(0), 2)) == "0.00"
    assert json_value(to_decimal(Fraction(10**30), 0)) == "1" + "0" * 30
    assert json_value(to_decimal(Fraction(1, 10**22), 22)) == "0.0000000000000000000001"
    with pytest.raises(ArithmeticError):
        to_decimal(Fraction(1, 8), 2)


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, signed: int) -> None:
    """The vectors of Kafka's own UtilsTest."""
    assert murmur2(key) == signed % 2**32


def test_a_long_goes_where_its_digits_go() -> None:
    assert partition("21", 10) == (-973932308 & 0x7FFFFFFF) % 10 == partition(21, 10)
