"""Whole numbers and roots: ROUND, FLOOR, CEIL, SQRT, and casts between numbers."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    CODE,
    DECIMAL_CEIL,
    DECIMAL_FLOOR,
    DECIMAL_RESCALE,
    DOUBLE_CEIL,
    DOUBLE_FLOOR,
    DOUBLE_ROUND,
    DOUBLE_SQRT,
    DOUBLE_TO_LONG,
    RESULT,
    A,
    X,
    Y,
)
from railgun.language.kernels.longs import magnitude
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import bits_f64, f64_bits, jit, ldi64, mulhi64

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SIGN = np.uint64(63)
# 2**52: every double of this magnitude or more is a whole number.
_WHOLE_DOUBLES = 4503599627370496.0
_TWO_TO_63 = 9223372036854775808.0


@jit
def _whole(code: Any, x: Any) -> Any:
    """A double rounded to a whole number, never −0.0."""
    if abs(x) >= _WHOLE_DOUBLES:
        return x
    t = np.float64(np.int64(x))
    rest = x - t
    if code == DOUBLE_ROUND:
        if rest >= 0.5:
            t += 1.0
        elif rest <= -0.5:
            t -= 1.0
    elif code == DOUBLE_FLOOR:
        if rest < 0.0:
            t -= 1.0
    elif rest > 0.0:
        t += 1.0
    return t


@jit
def _divided(code: Any, word: Any, divisor: Any) -> Any:
    """A decimal divided by a power of ten and rounded as the operation says."""
    m = magnitude(word)
    quotient, rest = m // divisor, m % divisor
    negative = (word >> _SIGN) != _ZERO
    if code == DECIMAL_RESCALE:
        away = rest >= divisor - rest
    elif code == DECIMAL_FLOOR:
        away = negative & (rest != _ZERO)
    elif code == DECIMAL_CEIL:
        away = (not negative) & (rest != _ZERO)
    else:
        away = False
    return quotient + _ONE if away else quotient


@jit
def _run_decimals(context: Any, row: Any, n: Any) -> None:
    code, factor = ldi64(row + 8 * CODE), ldi64(row + 8 * X)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    divides = code != DECIMAL_RESCALE or factor < 0
    power = np.uint64(abs(factor))
    for i in range(n):
        null = an[i] != 0
        if divides:
            r = _divided(code, a[i], power)
        else:
            m = magnitude(a[i])
            r = m * power
            null = null | (mulhi64(m, power) != _ZERO)
        if code == DECIMAL_RESCALE:
            null = null | (r >= np.uint64(ldi64(row + 8 * Y)))
        signed = _ZERO - r if (a[i] >> _SIGN) != _ZERO else r
        d[i] = _ZERO if null else signed
        dn[i] = null


@jit
def run_rounding(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the rounding family over n events."""
    code = ldi64(row + 8 * CODE)
    if code > DOUBLE_TO_LONG:
        _run_decimals(context, row, n)
        return
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    if code <= DOUBLE_CEIL:
        for i in range(n):
            d[i] = f64_bits(_whole(code, bits_f64(a[i])))
            dn[i] = an[i]
    elif code == DOUBLE_SQRT:
        for i in range(n):
            x = bits_f64(a[i])
            null = (an[i] != 0) | (x < 0.0)
            d[i] = _ZERO if null else f64_bits(np.sqrt(x))
            dn[i] = null
    else:
        for i in range(n):
            x = bits_f64(a[i])
            null = (an[i] != 0) | (x < -_TWO_TO_63) | (x >= _TWO_TO_63)
            d[i] = _ZERO if null else np.uint64(np.int64(x))
            dn[i] = null
