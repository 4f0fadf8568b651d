"""Rounding once: rationals to doubles as Python divides, sums as math.fsum adds, and cases made by hand."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.exact import (
    SMALLEST_DOUBLE,
    double_to_units,
    fraction_to_double,
    rounded_half_away,
    variance,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LARGEST = (2**53 - 1) * 2**971


@pytest.mark.parametrize(
    ("exact", "rounded"),
    [
        (Fraction(0), 0.0),
        (Fraction(1, 3), 0.3333333333333333),
        (Fraction(2**53 + 1), 9007199254740992.0),
        (Fraction(2**53 + 3), 9007199254740996.0),
        (Fraction(-(2**53) - 1), -9007199254740992.0),
        (Fraction(1, 2**1074), 5e-324),
        (Fraction(1, 2**1075), 0.0),
        (Fraction(-1, 2**1075), 0.0),
        (Fraction(3, 2**1076), 5e-324),
        (Fraction(3, 2**1075), 1e-323),
        (Fraction(2**53 - 1, 2**1075), 2.2250738585072014e-308),
        (Fraction(LARGEST), 1.7976931348623157e308),
        (Fraction(LARGEST + 2**970 - 1), 1.7976931348623157e308),
        (Fraction(LARGEST + 2**970), None),
        (Fraction(-LARGEST - 2**970), None),
        (Fraction(10**400, 3), None),
    ],
)
def test_a_rational_is_rounded_once_ties_to_even(exact: Fraction, rounded: float | None) -> None:
    got = fraction_to_double(exact)
    assert got == rounded
    assert got is None or got != 0.0 or math.copysign(1.0, got) == 1.0


@given(st.integers(-(2**200), 2**200), st.integers(1, 2**200), st.integers(-1200, 1200))
def test_rationals_round_as_python_divides(numerator: int, denominator: int, shift: int) -> None:
    exact = Fraction(numerator, denominator) * Fraction(2) ** shift
    try:
        expected = exact.numerator / exact.denominator
    except OverflowError:
        assert fraction_to_double(exact) is None
    else:
        assert fraction_to_double(exact) == expected


@given(st.lists(FINITE))
def test_the_exact_sum_is_fsum_where_that_does_not_overflow(values: list[float]) -> None:
    rounded = fraction_to_double(sum(map(double_to_units, values)) * SMALLEST_DOUBLE)
    try:
        expected = math.fsum(values)
    except OverflowError:
        return
    assert rounded == (expected if math.isfinite(expected) else None)


@given(FINITE)
def test_units_are_exact(value: float) -> None:
    assert double_to_units(value) * SMALLEST_DOUBLE == Fraction(value)


@pytest.mark.parametrize(
    ("exact", "rounded"), [("0.5", 1), ("-0.5", -1), ("1.49", 1), ("-1.5", -2), ("2", 2)]
)
def test_halves_go_away_from_zero(exact: str, rounded: int) -> None:
    assert rounded_half_away(Fraction(exact)) == rounded


def test_variance_is_the_exact_rational() -> None:
    # 1, 2, 4: mean 7/3, squared deviations 16/9 + 1/9 + 25/9 = 42/9.
    assert variance(3, 7, 21, Fraction(1), sample=True) == 7 / 3
    assert variance(3, 7, 21, Fraction(1), sample=False) == 14 / 9
    assert variance(1, 5, 25, Fraction(1), sample=True) is None
    assert variance(1, 5, 25, Fraction(1), sample=False) == 0.0
    assert variance(0, 0, 0, Fraction(1), sample=False) is None
