"""The fast path of variances: numbers of four words at most, unrolled; the general one is variance.py."""

from typing import Any

import numpy as np

from railgun.aggregators.exact.ratio import quotient_of_leading
from reservoir.native.jit import jit, ld64, mulhi64

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
