"""The two exact kernels, against rational arithmetic, where rounding and order are hardest."""

import math
import random
from fractions import Fraction

import numpy as np

from railgun.language.kernels.arithmetic import decimal_to_double
from railgun.language.kernels.comparisons import compare_decimal_double

MASK = (1 << 64) - 1


def _rounded(unscaled: int, scale: int) -> float:
    digits = Fraction(unscaled, 10**scale)
    return digits.numerator / digits.denominator


def _check_conversion(unscaled: int, scale: int) -> None:
    found = decimal_to_double(np.uint64(unscaled & MASK), np.uint64(10**scale))
    assert found == _rounded(unscaled, scale), f"{unscaled} / 10**{scale}"


def _check_comparison(unscaled: int, scale: int, x: float) -> None:
    found = compare_decimal_double(np.uint64(unscaled & MASK), np.uint64(10**scale), x)
    exact, other = Fraction(unscaled, 10**scale), Fraction(x)
    assert found == (exact > other) - (exact < other), f"{unscaled} / 10**{scale} and {x!r}"


def test_decimals_round_once() -> None:
    rng = random.Random(1)
    for _ in range(20_000):
        scale = rng.randrange(1, 19)
        _check_conversion(rng.randrange(-(10**18), 10**18) >> rng.randrange(0, 60), scale)


def test_decimals_halfway_between_doubles_round_to_even() -> None:
    """k / 2**s is n / 10**s: so halves between two doubles are decimals, and their neighbours nearly so."""
    rng = random.Random(2)
    ties = 0
    for _ in range(20_000):
        scale = rng.randrange(1, 19)
        odd = rng.randrange(1 << 53, 1 << 54) | 1
        unscaled = odd * 5**scale
        if unscaled >= 10**18:
            continue
        ties += 1
        for near in (unscaled - 1, unscaled, unscaled + 1):
            _check_conversion(near, scale)
            _check_conversion(-near, scale)
    assert ties > 50


def test_comparisons_are_exact_at_every_size() -> None:
    rng = random.Random(3)
    for _ in range(20_000):
        scale = rng.randrange(0, 19)
        unscaled = rng.randrange(-(2**63), 2**63) >> rng.randrange(0, 64)
        x = _rounded(unscaled, scale)
        for near in (x, math.nextafter(x, math.inf), math.nextafter(x, -math.inf), -x):
            _check_comparison(unscaled, scale, near)


def test_comparisons_at_the_edges() -> None:
    doubles = [0.0, 5e-324, 2.0**-1022, 2.0**-60, 0.5, 1.0, 2.0**53, 2.0**63, 2.0**64, 1.7976931348623157e308]
    doubles += [math.nextafter(2.0**63, 0), math.nextafter(1.0, 0), 1e18, 1e-18]
    longs = [
        0,
        1,
        2,
        5,
        10**17,
        10**18 - 1,
        10**18,
        2**53,
        2**53 + 1,
        2**62,
        2**63 - 1,
        2**63 - 512,
        2**63 - 513,
    ]
    for x in doubles:
        for value in [*longs, 2**63]:
            for scale in range(19):
                for sign in (1, -1):
                    if -(2**63) <= sign * value < 2**63:
                        _check_comparison(sign * value, scale, x)
                        _check_comparison(sign * value, scale, -x + 0.0)
