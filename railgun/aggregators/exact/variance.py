"""The variance of n values from their exact sum and sum of squares: one rational number, rounded once.

`sum_double.py` and `sum_long.py` call it for the results of `var_*` and `stddev_*`. Most variances end in a quotient by
a single word, and most numbers have at most four words: both have a faster, unrolled form beside the general one.
"""

from typing import Any

import numpy as np

from railgun.aggregators.exact.limbs import (
    divide_normalized,
    divide_word,
    multiply_word,
    subtract_square,
    used,
)
from railgun.aggregators.exact.rounding import round_limbs, round_normalized
from reservoir.native.jit import clz64, jit, ld64, mulhi64, st64

u = np.uint64


@jit
def short_variance(low: Any, high: Any, squares: int, limbs: int, lsb: int, n: Any, divisor: Any) -> Any:
    """Bits of (n · Σx² − (Σx)²) / divisor, rounded once, and whether that could be done here.

    |Σx| is the 128-bit (high, low), `squares` the address of Σx² of `limbs` (3 or 4) words with least bit
    2^lsb. It cannot be done when n · Σx² has more than 256 bits.
    """
    w0, w1, w2, w3, over = _product(squares, limbs, n)
    if over != u(0):
        return u(0), False
    w0, w1, w2, w3 = _less_square(w0, w1, w2, w3, low, high)
    exponent = lsb + 192
    words = 4
    while w3 == u(0) and words > 0:
        w3, w2, w1, w0 = w2, w1, w0, u(0)
        exponent -= 64
        words -= 1
    if words == 0:
        return u(0), True
    return quotient_of_leading(w3, w2, w1, w0 != u(0), exponent, divisor), True


@jit
def _product(squares: int, limbs: int, n: Any) -> Any:
    """Four words of n · Σx², and what is above them."""
    word = ld64(squares)
    w0 = word * n
    w1 = mulhi64(word, n)
    word = ld64(squares + 8)
    part = word * n
    w1 += part
    w2 = mulhi64(word, n) + u(w1 < part)
    word = ld64(squares + 16)
    part = word * n
    w2 += part
    w3 = mulhi64(word, n) + u(w2 < part)
    if limbs == 3:
        return w0, w1, w2, w3, u(0)
    word = ld64(squares + 24)
    part = word * n
    w3 += part
    return w0, w1, w2, w3, mulhi64(word, n) + u(w3 < part)


@jit
def _less_square(w0: Any, w1: Any, w2: Any, w3: Any, low: Any, high: Any) -> Any:
    """Four words less the square of the 128-bit (high, low)."""
    cross, cross_high = low * high, mulhi64(low, high)
    doubled = cross << u(1)
    doubled_high = (cross_high << u(1)) | (cross >> u(63))
    s0 = low * low
    s1 = mulhi64(low, low) + doubled
    carry = u(s1 < doubled)
    s2 = high * high + carry
    over = u(s2 < carry)
    s2 += doubled_high
    s3 = mulhi64(high, high) + (cross_high >> u(63)) + over + u(s2 < doubled_high)
    borrow = u(w0 < s0)
    w0 -= s0
    less = w1 - s1
    over = u(w1 < s1) | u(less < borrow)
    w1 = less - borrow
    less = w2 - s2
    borrow = u(w2 < s2) | u(less < over)
    w2 = less - over
    return w0, w1, w2, w3 - s3 - borrow


_DECIMAL_PLACES_MAX = 18
POWERS_OF_TEN = np.array([10**n for n in range(_DECIMAL_PLACES_MAX + 1)], np.uint64)


@jit
def one_divisor(n: Any, base: Any, scale: int) -> Any:
    """n · base · 10^(2 · scale) if it is less than 2^64, otherwise 0."""
    if mulhi64(n, base) != u(0) or 2 * scale > _DECIMAL_PLACES_MAX:
        return u(0)
    divisor = n * base
    factor = POWERS_OF_TEN[2 * scale]
    return divisor * factor if mulhi64(divisor, factor) == u(0) else u(0)


@jit
def quotient_of_leading(high: Any, low: Any, third: Any, below: bool, exponent: int, divisor: Any) -> Any:
    """Bits of the quotient of an integer by a word, from the integer's leading words; `high` is not 0.

    `below` says whether anything but zeros follows, 2^exponent is the weight of the last bit of `high`.
    """
    lead = clz64(high)
    scaling = clz64(divisor)
    divisor <<= u(scaling)
    exponent += scaling - lead
    high = (high << u(lead)) | ((low >> u(1)) >> u(63 - lead))
    low = (low << u(lead)) | ((third >> u(1)) >> u(63 - lead))
    # Both have their top bit set now. Half of `high` is less than the divisor, and the quotient is a word.
    quotient, rest = divide_normalized(high >> u(1), (low >> u(1)) | (high << u(63)), divisor)
    shift = clz64(quotient)
    # One word of all that is beneath the quotient: tests one by one would be mispredicted.
    beneath = (third << u(lead)) | (low & u(1)) | rest | u(below)
    return round_normalized(quotient << u(shift), beneath != u(0), exponent - shift)


# Words of work beside those of the sum of squares: one of the product, and five of the quotient.
WORK_LIMBS = 6
# Four divisions by a word take up to 256 bits away and leave the 64 that rounding wants.
_KEPT = 5


@jit
def variance(
    total: int,
    total_limbs: int,
    squares: int,
    square_limbs: int,
    lsb: int,
    n: Any,
    base: Any,
    scale: int,
    work: int,
) -> Any:
    """Bits of (n · Σx² − (Σx)²) / (n · base · 10^(2 · scale)), rounded once; INFINITY_BITS beyond doubles.

    `total` is the address of |Σx|, `squares` of Σx² (both unsigned, of so many words), `lsb` the power of
    two of the last bit of `squares`. n (the count) and base (n, or n − 1) are uint64 and not 0; `scale` is
    that of scaled integers, at most 18. `work` is the address of square_limbs + WORK_LIMBS words.
    """
    square_limbs = used(squares, square_limbs)
    multiply_word(work, squares, square_limbs, n)
    subtract_square(work, square_limbs + 1, total, used(total, total_limbs))
    limbs = used(work, square_limbs + 1)
    if limbs == 0:
        return u(0)
    divisor = one_divisor(n, base, scale)
    if divisor != u(0):
        return _leading_quotient(work, limbs, lsb, divisor)
    return _long_quotient(work, limbs, lsb, n, base, POWERS_OF_TEN[scale], work + 8 * limbs)


@jit
def _leading_quotient(where: int, limbs: int, lsb: int, divisor: Any) -> Any:
    """Bits of a non-zero integer of `limbs` used words, times 2^lsb, over a word."""
    high = ld64(where + 8 * (limbs - 1))
    low = third = u(0)
    if limbs > 1:
        low = ld64(where + 8 * (limbs - 2))
    if limbs > 2:
        third = ld64(where + 8 * (limbs - 3))
    below = limbs > 3 and used(where, limbs - 3) > 0
    return quotient_of_leading(high, low, third, below, lsb + 64 * (limbs - 1), divisor)


@jit
def _long_quotient(where: int, limbs: int, lsb: int, n: Any, base: Any, power: Any, quotient: int) -> Any:
    """Bits of a non-zero integer times 2^lsb over n · base · power²: one division by a word after another."""
    below, shift = _leading_words(quotient, _KEPT, where, limbs)
    for divisor in (n, base, power, power):
        below |= divide_word(quotient, _KEPT, divisor) != u(0)
    return round_limbs(quotient, _KEPT, lsb + 64 * (limbs - _KEPT) - shift, below)


@jit
def _leading_words(target: int, kept: int, where: int, limbs: int) -> Any:
    """Write the `kept` leading words of a non-zero integer, shifted to have their top bit set, to `target`.

    Returns whether what was left out is not zero, and the shift.
    """
    shift = clz64(ld64(where + 8 * (limbs - 1)))
    below = False
    for i in range(kept):
        at = limbs - 1 - i
        word = u(0)
        if at >= 0:
            word = ld64(where + 8 * at) << u(shift)
        if at >= 1:
            word |= (ld64(where + 8 * (at - 1)) >> u(1)) >> u(63 - shift)
        st64(target + 8 * (kept - 1 - i), word)
    at = limbs - 1 - kept
    if at >= 0:
        below = (ld64(where + 8 * at) << u(shift)) != u(0)
        at -= 1
    while not below and at >= 0:
        below = ld64(where + 8 * at) != u(0)
        at -= 1
    return below, shift
