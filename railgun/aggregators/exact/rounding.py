"""Rounding to a double: nearest, ties to even, once, with subnormals and overflow to infinity."""

from typing import Any

import numpy as np

from reservoir.compiled import clz64, jit, ld64

u = np.uint64

INFINITY_BITS = u(0x7FF0000000000000)
SIGN_BIT = u(1) << u(63)


@jit
def round_normalized(high: Any, below: bool, exponent: int) -> Any:
    """Bits of the double nearest to high · 2^(exponent − 63) and a little more.

    `high` is a uint64 with its top bit set, `below` says whether anything but zero lies under its last
    bit, `exponent` (int64) is the power of two of the top bit. Beyond the largest double: INFINITY_BITS.
    """
    drop = np.int64(11)
    base = exponent + np.int64(1022)
    if base < 0:
        drop -= base
        base = np.int64(0)
        if drop > 64:
            return u(0)
    elif base > 2045:
        return INFINITY_BITS
    half = u(1) << u(drop - 1)
    rest = high & ((half << u(1)) - u(1))
    kept = u(0)
    if drop < 64:
        kept = high >> u(drop)
    else:
        rest = high
    if rest > half or (rest == half and (below or (kept & u(1)) != u(0))):
        kept += u(1)
    # The implicit bit in `kept` (if any) and a carry out of the fraction both step the exponent up by one.
    return (u(base) << u(52)) + kept


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
