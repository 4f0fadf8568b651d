"""The variance of exact sums, against exact rationals rounded once."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from railgun.aggregators.exact.variance import WORK_LIMBS, variance
from tests.aggregators.memory import at, double, to_words, words
from tests.oracle.exact import fraction_to_double

TOTAL_WORDS = 4
SQUARE_WORDS = 8
COUNTS = st.integers(1, 1000) | st.integers(2**31, 2**33) | st.integers(1, 2**40)


@st.composite
def sums(draw: st.DrawFn) -> tuple[int, int, int]:
    """(n, Σx, Σx²) as n values may have: n · Σx² is not less than (Σx)², and often hardly greater."""
    n = draw(COUNTS)
    total = draw(st.integers(0, 2**40) | st.integers(0, 2**200) | st.integers(0, 2**255))
    least = -(-total * total // n)
    room = 2 ** (64 * SQUARE_WORDS - 1) - 1 - least
    more = draw(st.integers(0, 3) | st.integers(0, 2**70) | st.integers(0, max(room, 0)))
    return n, total, min(least + more, 2 ** (64 * SQUARE_WORDS - 1) - 1 if room >= 0 else least)


@given(sums(), st.booleans(), st.integers(0, 18) | st.just(0), st.sampled_from([0, -192, -1400, -2148, 900]))
@example((2, 4, 10), True, 0, 0)
@example((2**32, 0, 1), False, 18, 0)
@example((2**32 - 1, 0, 1), False, 9, 0)
@example((1, 5, 25), False, 0, -192)
def test_variance(of: tuple[int, int, int], sample: bool, scale: int, lsb: int) -> None:
    n, total, squares = of
    base = max(n - 1, 1) if sample else n
    if squares >= 2 ** (64 * SQUARE_WORDS):
        return
    bits = variance(
        at(to_words(total, TOTAL_WORDS)),
        TOTAL_WORDS,
        at(to_words(squares, SQUARE_WORDS)),
        SQUARE_WORDS,
        lsb,
        np.uint64(n),
        np.uint64(base),
        scale,
        at(words(SQUARE_WORDS + WORK_LIMBS)),
    )
    exact = Fraction(n * squares - total * total, n * base * 10 ** (2 * scale)) * Fraction(2) ** lsb
    rounded = fraction_to_double(exact)
    assert double(bits) == (math.inf if rounded is None else rounded)
