"""Rounding long integers to doubles, against exact rationals."""

import math
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from railgun.aggregators.exact.rounding import INFINITY_BITS, round_limbs
from tests.aggregators.memory import at, double, to_words
from tests.oracle.exact import fraction_to_double

COUNT = 5
# Leading bits, a middle that is near the half of the last place, and a tail that breaks ties.
NEAR_HALVES = st.builds(
    lambda head, tail, length: (head << length) + (1 << length >> 1) + tail,
    st.integers(2**52, 2**53 - 1),
    st.integers(-1, 1),
    st.integers(2, 260),
)
INTEGERS = st.integers(0, 2 ** (64 * COUNT) - 1) | NEAR_HALVES | st.integers(0, 2**64)
# Powers of two that bring the value anywhere: below the subnormals, among them, beyond the largest.
LSB = st.integers(-1500, 1100) | st.integers(-1400, -1000) | st.integers(650, 1030)


def expected(value: Fraction) -> float:
    rounded = fraction_to_double(value)
    return math.inf if rounded is None else rounded


@given(INTEGERS, LSB, st.booleans())
@example(2**53 - 1, 971, False)
@example(2**54 - 1, 970, False)
@example(2**54 - 2, 970, True)
@example(1, -1074, False)
@example(1, -1075, False)
@example(2**63, -1138, True)
@example(3, -1076, False)
@example(2**53 - 1, -1075, False)
@example(2**64 - 1, -1139, True)
@example(2**63, -1138, False)
@example(2**63, -1139, True)
def test_round_limbs(value: int, lsb: int, below: bool) -> None:
    array = to_words(value, COUNT)
    below = below and value >= 2**54
    bits = round_limbs(at(array), COUNT, lsb, below)
    if value == 0:
        assert bits == 0
        return
    more = Fraction(1, 3) if below else Fraction(0)
    assert double(bits) == expected((value + more) * Fraction(2) ** lsb)


def test_beyond_the_largest_double_is_infinity() -> None:
    array = to_words(1, COUNT)
    assert round_limbs(at(array), COUNT, 1024, False) == INFINITY_BITS
    assert double(round_limbs(at(array), COUNT, 1023, False)) == 2.0**1023
