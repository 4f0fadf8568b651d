"""Exact sums of doubles and of their squares, and the results that are rounded from them.

A cell is [id of the wide page or 0, narrow accumulator]. The accumulator has 256 bits with least bit 2^-96 for Σx, and
512 bits with least bit 2^-192 for Σx². A value that does not fit is added to the wide page instead. Whether it fits
depends on the value alone, so that it is removed from where it was added.

The wide page holds the number of values in it, then a two's-complement integer that is wide enough for every finite
double (or its square). It is allocated for the first such value and freed with the last one, so that the stored bytes
are a function of the values alone. The sum is that of the wide and the narrow accumulator.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import NULL, VALUE
from railgun.aggregators.exact.limbs import add_limbs, add_shifted, clear, magnitude
from railgun.aggregators.exact.narrow import (
    NARROW_LSB,
    PLACE_MAX,
    SQUARE_LIMBS,
    SUM_LIMBS,
    add_narrow,
    fit_small,
    mantissa_and_exponent,
    narrow_magnitude,
    normal_mantissa,
    place_of,
    round_narrow,
)
from railgun.aggregators.exact.rounding import INFINITY_BITS, round_limbs
from railgun.aggregators.exact.variance import WORK_LIMBS, one_divisor, short_variance, variance
from railgun.state.paged.access import page_address, page_free, page_new, page_touch
from reservoir.native.jit import copy_bytes, jit, ld64, ldi64, mulhi64, st64, stack_words, sti64

u = np.uint64

# The bits from 2^-1074 to 2^1024, a sign, and 40 bits for the number of values. Squares have twice the exponents.
WIDE_SUM_LIMBS = 34
WIDE_SUM_LSB = -1074
WIDE_SQUARE_LIMBS = 68
WIDE_SQUARE_LSB = 2 * WIDE_SUM_LSB


@jit
def add_wide_sum(ctx: int, cell: int, word: Any, negative: bool) -> Any:
    """Add a double to (or, if `negative`, remove it from) the wide part of a sum; 0 or a status."""
    page = _page(ctx, cell, WIDE_SUM_LIMBS, negative)
    if page > 0:
        mantissa, field = mantissa_and_exponent(word)
        sign = ((word >> u(63)) != u(0)) != negative
        add_shifted(page + 8, WIDE_SUM_LIMBS, mantissa, u(0), field - 1, sign)
    return min(page, np.int64(0))


@jit
def add_wide_square(ctx: int, cell: int, word: Any, negative: bool) -> Any:
    """Add the square of a double to the wide part of a sum of squares, or remove it; 0 or a status."""
    page = _page(ctx, cell, WIDE_SQUARE_LIMBS, negative)
    if page > 0:
        mantissa, field = mantissa_and_exponent(word)
        low, high = mantissa * mantissa, mulhi64(mantissa, mantissa)
        add_shifted(page + 8, WIDE_SQUARE_LIMBS, low, high, 2 * (field - 1), negative)
    return min(page, np.int64(0))


@jit
def _page(ctx: int, cell: int, limbs: int, negative: bool) -> Any:
    """Change the number of values of the wide page by one. Returns the address of the page, or a status.

    The first value allocates the page. Removing the last value frees the page, without a subtraction, because the
    result would be zero anyway: then 0 is returned.
    """
    page_id = ldi64(cell)
    if page_id == 0:
        page_id = page_new(ctx, limbs + 1)
        if page_id < 0:
            return page_id
        sti64(cell, page_id)
    page = page_touch(ctx, page_id)
    if page < 0:
        return page
    if not negative:
        st64(page, ld64(page) + u(1))
    elif ld64(page) == u(1):
        return reset_wide(ctx, cell)
    else:
        st64(page, ld64(page) - u(1))
    return page


@jit
def reset_wide(ctx: int, cell: int) -> Any:
    """Free the wide page of a cell, if there is one; 0 or a status."""
    page_id = ldi64(cell)
    if page_id != 0:
        status = page_free(ctx, page_id)
        if status < 0:
            return status
        sti64(cell, np.int64(0))
    return np.int64(0)


@jit
def wide_total(ctx: int, cell: int, narrow_limbs: int, limbs: int, target: int) -> Any:
    """Write the whole (signed) accumulator, wide and narrow, to `target` (`limbs` words); 0 or a status."""
    page = page_address(ctx, ldi64(cell))
    if page < 0:
        return page
    copy_bytes(target, page + 8, 8 * limbs)
    lsb_above = (limbs // WIDE_SUM_LIMBS) * (NARROW_LSB - WIDE_SUM_LSB)
    add_limbs(target, limbs, cell + 8, narrow_limbs, lsb_above)
    return np.int64(0)


SUM_WORDS = 1 + SUM_LIMBS
SQUARES_WORDS = 1 + SQUARE_LIMBS
WIDE_SUM_WORDS = 1 + WIDE_SUM_LIMBS
WIDE_SQUARES_WORDS = 1 + WIDE_SQUARE_LIMBS
_NARROW_SQUARE_LSB = 2 * NARROW_LSB
_NARROW_WORK = SQUARE_LIMBS + WORK_LIMBS
_WIDE_WORK = WIDE_SQUARE_LIMBS + WORK_LIMBS


@jit
def add_sum(ctx: int, cell: int, word: Any, negative: bool) -> Any:
    """Add a double (its bits) to Σx, or remove it if `negative`; 0 or a status of the pool."""
    place = place_of(word)
    if u(place) <= PLACE_MAX:
        add_narrow(cell + 8, normal_mantissa(word), place, ((word >> u(63)) != u(0)) != negative)
        return np.int64(0)
    return _add_sum_unusual(ctx, cell, word, negative)


@jit
def _add_sum_unusual(ctx: int, cell: int, word: Any, negative: bool) -> Any:
    """Add a zero, a small double whose bits may fit all the same, or one that goes to the wide page."""
    if place_of(word) < 0:
        mantissa, lost = fit_small(word)
        if not lost:
            add_narrow(cell + 8, mantissa, 0, ((word >> u(63)) != u(0)) != negative)
            return np.int64(0)
    return add_wide_sum(ctx, cell, word, negative)


@jit
def add_square(ctx: int, cell: int, word: Any, negative: bool) -> Any:
    """Add the square of a double (its bits) to Σx², or remove it if `negative`; 0 or a status of the pool."""
    place = place_of(word)
    mantissa = normal_mantissa(word)
    if u(place) > PLACE_MAX:
        lost = True
        if place < 0:
            mantissa, lost = fit_small(word)
            place = np.int64(0)
        if lost:
            return add_wide_square(ctx, cell, word, negative)
    low, high = mantissa * mantissa, mulhi64(mantissa, mantissa)
    add_shifted(cell + 8, SQUARE_LIMBS, low, high, 2 * place, negative)
    return np.int64(0)


@jit
def reset_accumulator(ctx: int, cell: int, limbs: int) -> Any:
    """Empty a cell of Σx or Σx². limbs: the words of its narrow accumulator. 0 or a status of the pool."""
    status = reset_wide(ctx, cell)
    if status == 0:
        clear(cell + 8, limbs)
    return status


@jit
def sum_double(ctx: int, cell: int, out: int) -> Any:
    """Write the bits of Σx rounded once; VALUE, NULL beyond the doubles' range, or a status."""
    if ld64(cell) == u(0):
        st64(out, round_narrow(cell + 8))
        return np.int64(VALUE)
    return _sum_wide(ctx, cell, out)


@jit
def _sum_wide(ctx: int, cell: int, out: int) -> Any:
    total = stack_words(WIDE_SUM_LIMBS)
    status = wide_total(ctx, cell, SUM_LIMBS, WIDE_SUM_LIMBS, total)
    if status != 0:
        return status
    negative = magnitude(total, total, WIDE_SUM_LIMBS)
    bits = round_limbs(total, WIDE_SUM_LIMBS, WIDE_SUM_LSB, False)
    if bits == INFINITY_BITS:
        return np.int64(NULL)
    st64(out, bits | (u(negative) << u(63)))
    return np.int64(VALUE)


@jit
def variance_double(ctx: int, cell: int, squares: int, n: Any, base: Any, out: int) -> Any:
    """Write the bits of the variance of n values over `base` (n or n − 1, not 0); VALUE, NULL or a status."""
    if ld64(cell) != u(0) or ld64(squares) != u(0):
        return _variance_wide(ctx, cell, squares, n, base, out)
    divisor = one_divisor(n, base, 0)
    _, low, high, third, fourth = narrow_magnitude(cell + 8)
    above = ld64(squares + 40) | ld64(squares + 48) | ld64(squares + 56) | ld64(squares + 64)
    if divisor != u(0) and (third | fourth | above) == u(0):
        bits, done = short_variance(low, high, squares + 8, 4, _NARROW_SQUARE_LSB, n, divisor)
        if done:
            st64(out, bits)
            return np.int64(VALUE)
    st64(out, _variance_narrow(cell, squares, n, base))
    return np.int64(VALUE)


@jit
def _variance_narrow(cell: int, squares: int, n: Any, base: Any) -> Any:
    total = stack_words(SUM_LIMBS)
    work = stack_words(_NARROW_WORK)
    magnitude(total, cell + 8, SUM_LIMBS)
    return variance(total, SUM_LIMBS, squares + 8, SQUARE_LIMBS, _NARROW_SQUARE_LSB, n, base, 0, work)


@jit
def _variance_wide(ctx: int, cell: int, squares: int, n: Any, base: Any, out: int) -> Any:
    total = stack_words(WIDE_SUM_LIMBS)
    total_squares = stack_words(WIDE_SQUARE_LIMBS)
    work = stack_words(_WIDE_WORK)
    status = wide_total(ctx, cell, SUM_LIMBS, WIDE_SUM_LIMBS, total)
    if status == 0:
        status = wide_total(ctx, squares, SQUARE_LIMBS, WIDE_SQUARE_LIMBS, total_squares)
    if status != 0:
        return status
    magnitude(total, total, WIDE_SUM_LIMBS)
    bits = variance(
        total, WIDE_SUM_LIMBS, total_squares, WIDE_SQUARE_LIMBS, WIDE_SQUARE_LSB, n, base, 0, work
    )
    if bits == INFINITY_BITS:
        return np.int64(NULL)
    st64(out, bits)
    return np.int64(VALUE)
