"""The fast path of sums of doubles: an integer of 256 bits in four words, whose least bit counts as 2^-96.

A double is taken apart as mantissa · 2^place, where place counts from that least bit. The interpreter's loops add to
such sums by themselves; `sum_double.py` also adds values that do not fit.
"""

from typing import Any

import numpy as np

from reservoir.native.jit import clz64, jit, ld64, st64

u = np.uint64

# The least bit of the narrow sum is 2^-96; of the narrow sum of squares, 2^-192.
NARROW_LSB = -96
# Places of the narrow accumulators: any double below 2^119 with all its bits at or above 2^-96, so that
# 2^40 of them cannot overflow 256 bits, nor their squares 512.
PLACE_MAX = u(119 - 53 - NARROW_LSB)
# A double with exponent field E is its mantissa · 2^(E − 1075).
EXPONENT_BIAS = 1075
_PLACE_BIAS = EXPONENT_BIAS + NARROW_LSB
_FRACTION = (u(1) << u(52)) - u(1)
_IMPLICIT = u(1) << u(52)


@jit
def place_of(word: Any) -> Any:
    """The place (int64) of a double's mantissa; negative ones may still fit, by `fit_small`."""
    return np.int64((word >> u(52)) & u(0x7FF)) - _PLACE_BIAS


@jit
def normal_mantissa(word: Any) -> Any:
    """The 53 bits of a normal double's mantissa."""
    return (word & _FRACTION) | _IMPLICIT


@jit
def mantissa_and_exponent(word: Any) -> Any:
    """Mantissa and exponent field of any finite double, subnormals as field 1."""
    field = np.int64((word >> u(52)) & u(0x7FF))
    if field == 0:
        return word & _FRACTION, np.int64(1)
    return (word & _FRACTION) | _IMPLICIT, field


@jit
def fit_small(word: Any) -> Any:
    """Mantissa of a double of negative place, shifted to place 0; 0 when it is zero or bits would be lost.

    Whether anything was lost is the second result.
    """
    mantissa, field = mantissa_and_exponent(word)
    under = _PLACE_BIAS - field
    if mantissa == u(0):
        return u(0), False
    if under >= 53 or (mantissa & ((u(1) << u(under)) - u(1))) != u(0):
        return u(0), True
    return mantissa >> u(under), False


SUM_LIMBS = 4
SQUARE_LIMBS = 8


@jit
def add_narrow(where: int, mantissa: Any, place: int, negative: bool) -> None:
    """Add ± mantissa · 2^place to the four words at an address; place is at most PLACE_MAX."""
    bits = u(place & 63)
    # Two steps, since a shift by 64 is not defined; the mantissa has 53 bits.
    low = mantissa << bits
    high = (mantissa >> u(1)) >> (u(63) - bits)
    mask = u(0) - u(negative)
    at = where + 8 * (place >> 6)
    old = ld64(at)
    word = old + (low ^ mask)
    carry = u(word < old)
    low = word + u(negative)
    carry |= u(low < word)
    st64(at, low)
    old = ld64(at + 8)
    word = old + (high ^ mask)
    over = u(word < old)
    high = word + carry
    carry = over | u(high < word)
    st64(at + 8, high)
    # What is left to add to the words above is mask + carry: nothing, or one more or less.
    step = mask + carry
    at += 16
    end = where + 8 * SUM_LIMBS
    while step != u(0) and at < end:
        old = ld64(at)
        word = old + step
        st64(at, word)
        if negative:
            step = u(0) - u(old == u(0))
        else:
            step = u(word == u(0))
        at += 8


@jit
def narrow_magnitude(where: int) -> Any:
    """Sign bit, and the four words (least first) of the absolute value, of the sum at an address."""
    first = ld64(where)
    second = ld64(where + 8)
    third = ld64(where + 16)
    fourth = ld64(where + 24)
    sign = fourth & (u(1) << u(63))
    if sign != u(0):
        first = u(0) - first
        carry = u(first == u(0))
        second = ~second + carry
        carry = u(carry != u(0) and second == u(0))
        third = ~third + carry
        carry = u(carry != u(0) and third == u(0))
        fourth = ~fourth + carry
    return sign, first, second, third, fourth


@jit
def round_narrow(where: int) -> Any:
    """Bits of the double nearest to the four words at an address: never subnormal, never overflows."""
    sign, first, second, third, fourth = narrow_magnitude(where)
    below = False
    exponent = np.int64(NARROW_LSB)
    if fourth != u(0):
        high, low = fourth, third
        below = (first | second) != u(0)
        exponent += 255
    elif third != u(0):
        high, low = third, second
        below = first != u(0)
        exponent += 191
    elif second != u(0):
        high, low = second, first
        exponent += 127
    elif first != u(0):
        high, low = first, u(0)
        exponent += 63
    else:
        return u(0)
    shift = clz64(high)
    exponent -= shift
    high = (high << u(shift)) | ((low >> u(1)) >> u(63 - shift))
    low <<= u(shift)
    kept = high >> u(11)
    # Round up if the 11 bits that are cut off exceed half, or are half with more bits beneath, or an odd bit is kept.
    sticky = u(low != u(0) or below) | (kept & u(1))
    kept += ((high & u(0x7FF)) + u(0x3FF) + sticky) >> u(11)
    return ((u(exponent + 1022) << u(52)) + kept) | sign
