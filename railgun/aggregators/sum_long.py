"""Exact sums of 64-bit integers (also of scaled decimals) and of their squares, and the results that come from them.

The sum is 128 bits in two's complement, least word first; the sum of squares 192 bits, unsigned.
"""

from typing import Any

import numpy as np

from railgun.aggregators.exact.limbs import add_shifted, divide_word, magnitude, multiply_word
from railgun.aggregators.exact.rounding import round_limbs
from railgun.aggregators.exact.variance import WORK_LIMBS, one_divisor, short_variance, variance
from reservoir.native.jit import bits_f64, jit, ld64, mulhi64, st64, stack_words

u = np.uint64

SUM_WORDS = 2
SQUARES_WORDS = 3
_QUOTIENT_WORDS = SUM_WORDS + 1
_WORK = SQUARES_WORDS + WORK_LIMBS
# The mean of decimals has four digits behind the point more than they have.
AVG_EXTRA_SCALE = 4
_AVG_FACTOR = u(10**AVG_EXTRA_SCALE)


@jit
def add_sum(cell: int, word: Any, negative: bool) -> None:
    """Add an int64 (its bits) to Σx, or remove it if `negative`."""
    low, high = ld64(cell), ld64(cell + 8)
    sign = u(0) - (word >> u(63))
    if negative:
        st64(cell, low - word)
        st64(cell + 8, high - sign - u(low < word))
    else:
        total = low + word
        st64(cell, total)
        st64(cell + 8, high + sign + u(total < low))


@jit
def add_square(cell: int, word: Any, negative: bool) -> None:
    """Add the square of an int64 (its bits) to Σx², or remove it if `negative`."""
    size = word
    if (word >> u(63)) != u(0):
        size = u(0) - word
    add_shifted(cell, SQUARES_WORDS, size * size, mulhi64(size, size), 0, negative)


@jit
def mean_long(cell: int, n: Any) -> Any:
    """Σx rounded to a double, divided by n (uint64, not 0): a double."""
    total = stack_words(SUM_WORDS)
    negative = magnitude(total, cell, SUM_WORDS)
    bits = round_limbs(total, SUM_WORDS, 0, False) | (u(negative) << u(63))
    return bits_f64(bits) / np.float64(n)


@jit
def mean_decimal(cell: int, n: Any, out: int) -> None:
    """Write Σx · 10^4 / n (n uint64, not 0), half away from zero: 128 bits, two's complement."""
    total = stack_words(SUM_WORDS)
    quotient = stack_words(_QUOTIENT_WORDS)
    negative = magnitude(total, cell, SUM_WORDS)
    multiply_word(quotient, total, SUM_WORDS, _AVG_FACTOR)
    rest = divide_word(quotient, _QUOTIENT_WORDS, n)
    low, high = ld64(quotient), ld64(quotient + 8)
    if rest >= n - rest:
        low += u(1)
        high += u(low == u(0))
    if negative:
        low = u(0) - low
        high = ~high + u(low == u(0))
    st64(out, low)
    st64(out + 8, high)


@jit
def variance_long(cell: int, squares: int, n: Any, base: Any, scale: int) -> Any:
    """The bits of the variance of n values of a scale. base: n or n − 1, not 0. It never overflows."""
    total = stack_words(SUM_WORDS)
    magnitude(total, cell, SUM_WORDS)
    divisor = one_divisor(n, base, scale)
    if divisor != u(0):
        bits, _ = short_variance(ld64(total), ld64(total + 8), squares, SQUARES_WORDS, 0, n, divisor)
        return bits
    work = stack_words(_WORK)
    return variance(total, SUM_WORDS, squares, SQUARES_WORDS, 0, n, base, scale, work)
