"""Each aggregator on values worked out by hand, empties and extremes among them."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.oracle.aggregates import Aggregate
from tests.oracle.errors import QueryRefused
from tests.oracle.query import AGGREGATORS
from tests.oracle.types import Value, parse_type


def aggregate(name: str, declared: str, values: list[Value]) -> object:
    found = Aggregate(name, parse_type(declared))
    return found.result([found.prepare(value) for value in values])


def dec(*texts: str) -> list[Value]:
    return [Fraction(text) for text in texts]


@pytest.mark.parametrize(
    ("name", "declared", "values", "expected"),
    [
        ("count", "string", ["a", "a"], 2),
        ("count_distinct", "string", ["a", "b", "a"], 2),
        ("count_distinct", "double", [0.1, 0.1, 0.2], 2),
        ("sum", "long", [2**63 - 1] * 3, 3 * (2**63 - 1)),
        ("sum", "long", [-(2**63), -(2**63)], -(2**64)),
        ("sum", "double", [0.1, 0.1, 0.1], 0.30000000000000004),
        ("sum", "double", [0.1] * 10, 1.0),
        ("sum", "double", [1e16, 1.0, -1e16], 1.0),
        ("sum", "double", [1e308, 1e308, -1e308], 1e308),
        ("sum", "double", [1e308, 1e308], None),
        ("sum", "double", [1.7976931348623157e308, 9.9e291], 1.7976931348623157e308),
        ("sum", "double", [5e-324, 5e-324], 1e-323),
        ("sum", "double", [1.0, -1.0], 0.0),
        ("avg", "long", [1, 2], 1.5),
        ("avg", "long", [2**63 - 1, 2**63 - 1], 2.0**63),
        ("avg", "long", [2**53, 2**53 + 1, 0], 2.0**54 / 3),
        ("avg", "double", [0.1, 0.2, 0.3], 0.6 / 3),
        ("avg", "double", [1e308, 1e308], None),
        ("avg", "double", [-5e-324, 0.0, 0.0], 0.0),
        ("var_samp", "double", [1.0, 2.0, 4.0], 7 / 3),
        ("var_pop", "double", [1.0, 2.0, 4.0], 14 / 9),
        ("var_samp", "long", [2**62, 2**62 + 1], 0.5),
        ("var_pop", "double", [1e300, -1e300], None),
        ("stddev_pop", "double", [1e300, -1e300], None),
        ("var_pop", "double", [1e200, 1e200], 0.0),
        ("var_pop", "double", [5e-324, 0.0], 0.0),
        ("stddev_samp", "long", [1, 2, 4], math.sqrt(7 / 3)),
        ("stddev_pop", "long", [1, 3], 1.0),
        ("var_samp", "decimal(5,2)", dec("0.01", "0.03"), 0.0002),
        ("sum", "decimal(5,2)", dec("999.99", "0.01"), Decimal("1000.00")),
        ("sum", "decimal(18,0)", dec("9" * 18, "9" * 18), Decimal(2 * (10**18 - 1))),
        ("avg", "decimal(5,2)", dec("0.01", "0.02", "0.02"), Decimal("0.016667")),
        ("avg", "decimal(5,1)", dec("0.1", *["0.0"] * 15), Decimal("0.00625")),
        ("avg", "decimal(2,0)", dec("1", *["0"] * 31), Decimal("0.0313")),
        ("avg", "decimal(2,0)", dec("-1", *["0"] * 31), Decimal("-0.0313")),
        ("avg", "decimal(18,18)", dec("0.000000000000000001", "0"), Decimal("5000E-22")),
        ("min", "string", ["b", "ab", "Z"], "Z"),
        ("max", "string", ["￿", "😀"], "😀"),
        ("min", "boolean", [True, False], False),
        ("max", "boolean", [True, False], True),
        ("max", "decimal(5,2)", dec("1.5", "-2"), Decimal("1.50")),
        ("min", "timestamp", [5, 3], 3),
        ("first", "string", ["a", "b", "c"], "a"),
        ("last", "string", ["a", "b", "c"], "c"),
        ("prev", "string", ["a", "b", "c"], "b"),
        ("prev", "string", ["a"], None),
        ("prev", "decimal(5,2)", dec("1.5", "2"), Decimal("1.50")),
    ],
)
def test_results(name: str, declared: str, values: list[Value], expected: object) -> None:
    got = aggregate(name, declared, values)
    assert got == expected
    assert type(got) is type(expected)
    assert str(got) == str(expected)


@pytest.mark.parametrize("name", sorted(set(AGGREGATORS.values()) | {"count_distinct"}))
def test_of_nothing_counts_are_zero_and_the_rest_null(name: str) -> None:
    assert aggregate(name, "long", []) == (0 if name.startswith("count") else None)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("var_samp", None),
        ("stddev_samp", None),
        ("var_pop", 0.0),
        ("stddev_pop", 0.0),
        ("avg", 5.0),
        ("sum", 5),
    ],
)
def test_of_one_value(name: str, expected: object) -> None:
    assert aggregate(name, "long", [5]) == expected


@pytest.mark.parametrize("name", ["sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"])
@pytest.mark.parametrize("declared", ["string", "boolean", "timestamp"])
def test_only_numbers_add_up(name: str, declared: str) -> None:
    with pytest.raises(QueryRefused):
        Aggregate(name, parse_type(declared))
