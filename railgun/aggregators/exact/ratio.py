"""An integer over a single word, rounded once to a double: how most variances end."""

from typing import Any

import numpy as np

from railgun.aggregators.exact.division import divide_normalized
from railgun.aggregators.exact.rounding import round_normalized
from reservoir.native.jit import clz64, jit, mulhi64

u = np.uint64

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
    """Bits of an integer, of which these are the leading words, over a word; `high` is not 0.

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
