"""Sums of longs and decimals: 128 bits, means rounded half away from zero, variances of huge counts."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from railgun.aggregators import sum_long
from tests.aggregators.memory import WORD, at, double, signed, to_words, words
from tests.oracle.exact import fraction_to_double, rounded_half_away

LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])
COUNTS = st.integers(1, 100) | st.sampled_from([32, 160, 2**32 - 1, 2**32, 2**40]) | st.integers(1, 2**40)


@given(st.lists(LONGS), st.data())
def test_sums_and_squares(values: list[int], data: st.DataObject) -> None:
    total, squares = words(sum_long.SUM_WORDS), words(sum_long.SQUARES_WORDS)
    left = list(values)
    for value in values:
        sum_long.add_sum(at(total), np.uint64(value % WORD), False)
        sum_long.add_square(at(squares), np.uint64(value % WORD), False)
    while left and data.draw(st.booleans()):
        value = left.pop()
        sum_long.add_sum(at(total), np.uint64(value % WORD), True)
        sum_long.add_square(at(squares), np.uint64(value % WORD), True)
    assert signed(total) == sum(left)
    assert signed(squares) == sum(value * value for value in left)


@given(st.integers(-(2**100), 2**100) | st.integers(-50, 50), COUNTS)
@example(1, 32)
@example(-1, 32)
@example(5, 160)
@example(2**100, 1)
@example(-(2**100), 3)
def test_mean_of_decimals(total: int, n: int) -> None:
    out = words(2)
    sum_long.mean_decimal(at(to_words(total, 2)), np.uint64(n), at(out))
    assert signed(out) == rounded_half_away(Fraction(total * 10**4, n))


@given(st.integers(-(2**103), 2**103) | st.integers(-(2**55), 2**55), COUNTS)
@example(2**53 + 1, 1)
@example(-(2**53) - 1, 1)
@example(2**53 + 1, 3)
def test_mean_of_longs(total: int, n: int) -> None:
    """The sum is rounded once, then divided: not the quotient rounded once."""
    assert sum_long.mean_long(at(to_words(total, 2)), np.uint64(n)) == float(total) / n


@given(
    COUNTS,
    st.integers(-(2**103), 2**103) | st.integers(-(2**40), 2**40),
    st.integers(0, 2**60) | st.integers(0, 3),
    st.integers(0, 18),
    st.booleans(),
)
def test_variance_of_scaled_integers(n: int, total: int, more: int, scale: int, sample: bool) -> None:
    squares = -(-total * total // n) + more
    base = max(n - 1, 1) if sample else n
    if squares >= 2**192 or n * squares >= 2**256:
        return
    bits = sum_long.variance_long(
        at(to_words(total, 2)), at(to_words(squares, 3)), np.uint64(n), np.uint64(base), scale
    )
    exact = Fraction(n * squares - total * total, n * base * 10 ** (2 * scale))
    assert double(bits) == fraction_to_double(exact)
