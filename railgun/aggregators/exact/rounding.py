"""Rounding to a double: nearest, ties to even, once, with subnormals and overflow to infinity.

The results of exact sums and variances are rounded so.
"""

from typing import Any

import numpy as np

from reservoir.native.jit import clz64, jit, ld64

u = np.uint64

INFINITY_BITS = u(0x7FF0000000000000)


@jit
def round_normalized(high: Any, below: bool, exponent: int) -> Any:
    """Bits of the double nearest to high · 2^(exponent − 63), plus a little more if `below`.

    `high` is a uint64 with its top bit set, `below` says whether anything but zero lies under its last
    bit, `exponent` (int64) is the power of two of the top bit. Beyond the largest double: INFINITY_BITS.
    """
    if exponent < -1022:
        return _round_subnormal(high, below, -1022 - exponent)
    if exponent > 1023:
        return INFINITY_BITS
    kept = high >> u(11)
    # Round up if the 11 bits that are cut off exceed half, or are half with more bits beneath, or an odd bit is kept.
    odd = (kept & u(1)) | u(below)
    kept += ((high & u(0x7FF)) + u(0x3FF) + odd) >> u(11)
    # The implicit bit and a carry out of the fraction both step the exponent up by one.
    return (u(exponent + 1022) << u(52)) + kept


@jit
def _round_subnormal(high: Any, below: bool, under: int) -> Any:
    """`round_normalized` for a top bit that lies `under` places below that of the least normal double."""
    if under > 53:
        return u(0)
    half = u(1) << u(10 + under)
    rest = high & ((half << u(1)) - u(1))
    # Two steps, since a shift by 64 is not defined.
    kept = (high >> u(10 + under)) >> u(1)
    if rest > half or (rest == half and (below or (kept & u(1)) != u(0))):
        kept += u(1)
    return kept


@jit
def round_limbs(where: int, limbs: int, lsb: int, below: bool) -> Any:
    """Bits of the double nearest to an unsigned integer of `limbs` words at an address, times 2^lsb.

    `below` says whether the true value is a little more, by less than one in the last place; then the integer
    has more than 54 bits, so that only a tie can tell the difference.
    """
    top = limbs - 1
    while top >= 0 and ld64(where + 8 * top) == u(0):
        top -= 1
    if top < 0:
        return u(0)
    high = ld64(where + 8 * top)
    shift = clz64(high)
    exponent = lsb + 64 * top + 63 - shift
    rest = top - 1
    if rest >= 0:
        low = ld64(where + 8 * rest)
        # Two steps, since a shift by 64 is not defined.
        high = (high << u(shift)) | ((low >> u(1)) >> u(63 - shift))
        below = below or (low << u(shift)) != u(0)
        rest -= 1
    else:
        high <<= u(shift)
    while not below and rest >= 0:
        below = ld64(where + 8 * rest) != u(0)
        rest -= 1
    return round_normalized(high, below, exponent)
