"""Arithmetic: exact for scaled integers, one IEEE operation for doubles.

A decimal of more than 18 digits becomes null, and so does a double that is not finite. −0.0 becomes 0.0.
"""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    CODE,
    DECIMAL_MULTIPLY,
    DECIMAL_REMAINDER,
    DECIMAL_SUBTRACT,
    DOUBLE_ADD,
    DOUBLE_DIVIDE,
    DOUBLE_MULTIPLY,
    DOUBLE_NEGATE,
    DOUBLE_REMAINDER,
    DOUBLE_SUBTRACT,
    LONG_TO_DOUBLE,
    RESULT,
    A,
    B,
    X,
    Y,
)
from railgun.language.kernels.longs import magnitude
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import bits_f64, clz64, f64_bits, jit, ldi64, mulhi64

_ZERO = np.uint64(0)

_MINUS_ZERO = np.uint64(1 << 63)
_EXPONENT = np.uint64(0x7FF0000000000000)
_MAGNITUDE = np.uint64(0x7FFFFFFFFFFFFFFF)


@jit
def _store(d: Any, dn: Any, i: Any, null: Any, value: Any) -> None:
    bits = f64_bits(value)
    null = null | ((bits & _EXPONENT) == _EXPONENT)
    d[i] = _ZERO if null | (bits == _MINUS_ZERO) else bits
    dn[i] = null


@jit
def run_doubles(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the double family over n events."""
    code = ldi64(row + 8 * CODE)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    if code == DOUBLE_ADD:
        for i in range(n):
            _store(d, dn, i, (an[i] | bn[i]) != 0, bits_f64(a[i]) + bits_f64(b[i]))
    elif code == DOUBLE_SUBTRACT:
        for i in range(n):
            _store(d, dn, i, (an[i] | bn[i]) != 0, bits_f64(a[i]) - bits_f64(b[i]))
    elif code == DOUBLE_MULTIPLY:
        for i in range(n):
            _store(d, dn, i, (an[i] | bn[i]) != 0, bits_f64(a[i]) * bits_f64(b[i]))
    elif code == DOUBLE_DIVIDE:
        # x / 0 is an infinity or NaN, which becomes null like every double that is not finite.
        for i in range(n):
            _store(d, dn, i, (an[i] | bn[i]) != 0, bits_f64(a[i]) / bits_f64(b[i]))
    elif code == DOUBLE_REMAINDER:
        for i in range(n):
            null = ((an[i] | bn[i]) != 0) | (b[i] == _ZERO)
            _store(d, dn, i, null, 0.0 if null else np.fmod(bits_f64(a[i]), bits_f64(b[i])))
    elif code == DOUBLE_NEGATE:
        for i in range(n):
            _store(d, dn, i, an[i] != 0, -bits_f64(a[i]))
    else:
        for i in range(n):
            d[i] = a[i] & _MAGNITUDE
            dn[i] = an[i]


_ONE = np.uint64(1)
_TEN = np.uint64(10)
_SIGN = np.uint64(63)
_TOO_MANY_DIGITS = np.uint64(10**18)
# Two operands below this limit add up within 64 bits. A sum with an operand above it has more than 18 digits, because
# the other operand, which has the result's scale, has at most 18.
_SUMMAND_LIMIT = 4 * 10**18
_EXACT_DOUBLE = np.uint64(1 << 53)


@jit
def _within(x: Any, limit: Any) -> Any:
    return (x <= limit) & (x >= -limit)


@jit
def _remainder(x: Any, y: Any, factor_x: Any, factor_y: Any) -> Any:
    """(x * factor_x) % (y * factor_y) of magnitudes, y not 0; one of the factors is 1."""
    if factor_x == _ONE:
        return x if mulhi64(y, factor_y) != _ZERO else x % (y * factor_y)
    if mulhi64(x, factor_x) == _ZERO:
        return (x * factor_x) % y
    # y has at most 18 digits here, so that ten times a remainder stays within 64 bits.
    r = x % y
    while factor_x > _ONE:
        r = (r * _TEN) % y
        factor_x = factor_x // _TEN
    return r


@jit
def decimal_to_double(word: Any, divisor: Any) -> Any:
    """The double nearest to word / divisor, ties to even; divisor a power of ten up to 10**18 (uint64)."""
    m = magnitude(word)
    if m <= _EXACT_DOUBLE:
        # Both are exact as doubles, so the one division rounds once.
        r = np.float64(m) / np.float64(divisor)
    else:
        # The quotient has 55 bits or more, and its last bit says whether anything remains. So rounding it to a double
        # rounds the exact quotient.
        quotient, rest = m // divisor, m % divisor
        shift = 0
        while shift < 64 and clz64(quotient) > 8:
            rest = rest + rest
            quotient = quotient + quotient
            if rest >= divisor:
                rest = rest - divisor
                quotient = quotient | _ONE
            shift += 1
        if rest != _ZERO:
            quotient = (quotient << _ONE) | _ONE
            shift += 1
        r = np.float64(quotient) / np.float64(_ONE << np.uint64(shift))
    return -r if (word >> _SIGN) != _ZERO else r


@jit
def run_decimals(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the decimal family over n events."""
    code = ldi64(row + 8 * CODE)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    factor_a, factor_b = ldi64(row + 8 * X), ldi64(row + 8 * Y)
    if code < DECIMAL_MULTIPLY:
        limit_a, limit_b = _SUMMAND_LIMIT // factor_a, _SUMMAND_LIMIT // factor_b
        if code == DECIMAL_SUBTRACT:
            factor_b = -factor_b
        for i in range(n):
            x, y = np.int64(a[i]), np.int64(b[i])
            r = np.uint64(x * factor_a + y * factor_b)
            fits = _within(x, limit_a) & _within(y, limit_b) & (magnitude(r) < _TOO_MANY_DIGITS)
            null = ((an[i] | bn[i]) != 0) | (not fits)
            d[i] = _ZERO if null else r
            dn[i] = null
    elif code == DECIMAL_MULTIPLY:
        for i in range(n):
            p, q = magnitude(a[i]), magnitude(b[i])
            null = ((an[i] | bn[i]) != 0) | (mulhi64(p, q) != _ZERO) | (p * q >= _TOO_MANY_DIGITS)
            d[i] = _ZERO if null else a[i] * b[i]
            dn[i] = null
    elif code == DECIMAL_REMAINDER:
        for i in range(n):
            null = ((an[i] | bn[i]) != 0) | (b[i] == _ZERO)
            r = _ZERO
            if not null:
                r = _remainder(magnitude(a[i]), magnitude(b[i]), np.uint64(factor_a), np.uint64(factor_b))
            d[i] = _ZERO - r if (a[i] >> _SIGN) != _ZERO else r
            dn[i] = null
    elif code == LONG_TO_DOUBLE:
        for i in range(n):
            d[i] = f64_bits(np.float64(np.int64(a[i])))
            dn[i] = an[i]
    else:
        for i in range(n):
            d[i] = f64_bits(decimal_to_double(a[i], np.uint64(factor_a)))
            dn[i] = an[i]
