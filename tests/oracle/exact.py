"""Exact arithmetic on what a window holds, rounded once: sums, means and variances as rationals."""

import math
from fractions import Fraction

# Every finite double is a whole number of these.
SMALLEST_DOUBLE = Fraction(1, 2**1074)


def fraction_to_double(value: Fraction) -> float | None:
    """The double nearest to a rational, ties to even, zero as 0.0; None where that is beyond the range."""
    magnitude, divisor = abs(value.numerator), value.denominator
    if magnitude == 0:
        return 0.0
    exponent = magnitude.bit_length() - divisor.bit_length() - 53
    if _scaled(magnitude, divisor, exponent)[0] >= 2**53:
        exponent += 1
    exponent = max(exponent, -1074)
    quotient, remainder, scale = _scaled(magnitude, divisor, exponent)
    if 2 * remainder > scale or (2 * remainder == scale and quotient % 2 == 1):
        quotient += 1
    if quotient * 2 ** max(exponent, 0) >= 2**1024:
        return None
    rounded = math.ldexp(quotient, exponent)
    return -rounded if value < 0 and rounded != 0.0 else rounded


def _scaled(magnitude: int, divisor: int, exponent: int) -> tuple[int, int, int]:
    """Quotient and remainder of magnitude / (divisor * 2^exponent), and the divisor of that remainder."""
    if exponent >= 0:
        divisor <<= exponent
    else:
        magnitude <<= -exponent
    quotient, remainder = divmod(magnitude, divisor)
    return quotient, remainder, divisor


def double_to_units(value: float) -> int:
    """How many times 2^-1074 a finite double is."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (1074 - (denominator.bit_length() - 1))


def rounded_half_away(value: Fraction) -> int:
    """The nearest integer, a half going away from zero."""
    quotient, remainder = divmod(abs(value.numerator), value.denominator)
    if 2 * remainder >= value.denominator:
        quotient += 1
    return -quotient if value < 0 else quotient


def normalised(value: float) -> float | None:
    """The result of one IEEE operation as a value: beyond the range is null, -0.0 is 0.0."""
    if not math.isfinite(value):
        return None
    return 0.0 if value == 0.0 else value


def variance(count: int, total: int, squares: int, unit: Fraction, *, sample: bool) -> float | None:
    """The variance of `count` values that sum to `total` units and whose squares sum to `squares` units².

    Rounded once from the exact rational; None for too few values (two for the sample's, else one).
    """
    divisor = count - 1 if sample else count
    if divisor < 1:
        return None
    return fraction_to_double(Fraction(count * squares - total * total, count * divisor) * unit * unit)
