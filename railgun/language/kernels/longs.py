"""Arithmetic of 64-bit integers. A result that does not fit is null."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    CODE,
    LONG_ADD,
    LONG_MULTIPLY,
    LONG_NEGATE,
    LONG_REMAINDER,
    LONG_SUBTRACT,
    RESULT,
    A,
    B,
)
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import jit, ldi64, mulhi64

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SIGN = np.uint64(63)
_LEAST = np.uint64(1 << 63)


@jit
def magnitude(word: Any) -> Any:
    """The absolute value of a two's complement word, as uint64, which holds that of −2**63 too."""
    return _ZERO - word if (word >> _SIGN) != _ZERO else word


@jit
def run_longs(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the long family over n events."""
    code = ldi64(row + 8 * CODE)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    if code == LONG_ADD:
        for i in range(n):
            x, y = a[i], b[i]
            r = x + y
            null = ((an[i] | bn[i]) != 0) | ((((x ^ r) & (y ^ r)) >> _SIGN) != _ZERO)
            d[i] = _ZERO if null else r
            dn[i] = null
    elif code == LONG_SUBTRACT:
        for i in range(n):
            x, y = a[i], b[i]
            r = x - y
            null = ((an[i] | bn[i]) != 0) | ((((x ^ y) & (x ^ r)) >> _SIGN) != _ZERO)
            d[i] = _ZERO if null else r
            dn[i] = null
    elif code == LONG_MULTIPLY:
        for i in range(n):
            x, y = a[i], b[i]
            p, q = magnitude(x), magnitude(y)
            negative = (x ^ y) >> _SIGN
            # The magnitude of a negative product may be greater by one than that of a positive product.
            null = ((an[i] | bn[i]) != 0) | (mulhi64(p, q) != _ZERO) | (p * q > (_LEAST - _ONE) + negative)
            d[i] = _ZERO if null else x * y
            dn[i] = null
    elif code == LONG_REMAINDER:
        for i in range(n):
            x, y = a[i], b[i]
            null = ((an[i] | bn[i]) != 0) | (y == _ZERO)
            r = _ZERO if null else magnitude(x) % magnitude(y)
            d[i] = _ZERO - r if (x >> _SIGN) != _ZERO else r
            dn[i] = null
    elif code == LONG_NEGATE:
        for i in range(n):
            x = a[i]
            null = (an[i] != 0) | (x == _LEAST)
            d[i] = _ZERO if null else _ZERO - x
            dn[i] = null
    else:
        for i in range(n):
            x = a[i]
            null = (an[i] != 0) | (x == _LEAST)
            d[i] = _ZERO if null else magnitude(x)
            dn[i] = null
