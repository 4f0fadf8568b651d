"""The doubles that do not fit the narrow accumulators: exact still, in a page of their own.

The page holds how many such values are in the accumulator, then a two's-complement integer wide enough for
every finite double (or its square). It is made for the first of them and goes with the last, so that what
is stored is a function of the values alone. The whole sum is that of the wide and the narrow accumulator.
"""

from typing import Any

import numpy as np

from railgun.aggregators.exact.doubles import NARROW_LSB, mantissa_and_exponent
from railgun.aggregators.exact.limbs import add_limbs, add_shifted
from railgun.state.paged.access import page_address, page_free, page_new, page_touch
from reservoir.native.jit import copy_bytes, jit, ld64, ldi64, mulhi64, st64, sti64

u = np.uint64

# 2^-1074 to 2^1024, a sign, and 40 bits for the number of values; for squares twice the exponents.
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
    """Count a value in or out: address of the wide page for its addition, or a status.

    The first one in makes the page. The last one out leaves zeros behind, whatever it is: it takes the page
    with it, and the answer is 0.
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
    """Give back the wide page of a cell, if there is one; 0 or a status."""
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
