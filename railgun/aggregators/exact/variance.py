"""The variance of n values from their exact sum and sum of squares: one rational number, rounded once."""

from typing import Any

import numpy as np

from railgun.aggregators.exact.division import divide_word
from railgun.aggregators.exact.limbs import multiply_word, subtract_square, used
from railgun.aggregators.exact.ratio import POWERS_OF_TEN, one_divisor, quotient_of_leading
from railgun.aggregators.exact.rounding import round_limbs
from reservoir.native.jit import clz64, jit, ld64, st64

u = np.uint64

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
