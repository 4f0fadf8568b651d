"""A double taken apart: mantissa · 2^place above the least bit of the narrow accumulators."""

from typing import Any

import numpy as np

from reservoir.native.jit import jit

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
