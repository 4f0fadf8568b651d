"""The variance of n values from their exact sum and sum of squares: one rational number, rounded once."""

from typing import Any

import numpy as np

from railgun.aggregators.exact.division import divide_word
from railgun.aggregators.exact.limbs import multiply_word, subtract_square, used
from railgun.aggregators.exact.rounding import round_limbs
from reservoir.compiled import clz64, jit, ld64, st64

u = np.uint64

# Words of work beside those of the sum of squares: one of the product, and five of the quotient.
WORK_LIMBS = 6
_DECIMAL_PLACES_MAX = 18
_POWERS_OF_TEN = np.array([10**n for n in range(_DECIMAL_PLACES_MAX + 1)], np.uint64)
_SMALL_COUNT = u(1) << u(32)


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
    quotient = work + 8 * (square_limbs + 1)
    kept = np.int64(1) + _divisors(n, scale)
    below, shift = _leading_words(quotient, kept, work, limbs)
    if n < _SMALL_COUNT:
        below |= divide_word(quotient, kept, n * base) != u(0)
    else:
        below |= divide_word(quotient, kept, n) != u(0)
        below |= divide_word(quotient, kept, base) != u(0)
    if scale > 9:
        below |= divide_word(quotient, kept, _POWERS_OF_TEN[scale]) != u(0)
        below |= divide_word(quotient, kept, _POWERS_OF_TEN[scale]) != u(0)
    elif scale > 0:
        below |= divide_word(quotient, kept, _POWERS_OF_TEN[2 * scale]) != u(0)
    return round_limbs(quotient, kept, lsb + 64 * (limbs - kept) - shift, below)


@jit
def _divisors(n: Any, scale: int) -> Any:
    """How many words `variance` divides by one after another."""
    divisors = np.int64(1)
    if n >= _SMALL_COUNT:
        divisors += 1
    if scale > 9:
        divisors += 2
    elif scale > 0:
        divisors += 1
    return divisors


@jit
def _leading_words(target: int, kept: int, where: int, limbs: int) -> Any:
    """Write the `kept` leading words of a non-zero integer, shifted to have their top bit set, to `target`.

    Each division by a word takes up to 64 bits away; one word more than there are divisors leaves the 64
    bits that rounding wants. Returns whether what was left out is not zero, and the shift.
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
