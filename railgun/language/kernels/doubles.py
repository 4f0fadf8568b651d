"""Arithmetic of doubles: one IEEE operation; what is not finite is null, −0.0 is 0.0."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    CODE,
    DOUBLE_ADD,
    DOUBLE_DIVIDE,
    DOUBLE_MULTIPLY,
    DOUBLE_NEGATE,
    DOUBLE_REMAINDER,
    DOUBLE_SUBTRACT,
    RESULT,
    A,
    B,
)
from railgun.language.kernels.vectors import nulls_of, words_of
from reservoir.native.jit import bits_f64, f64_bits, jit, ldi64

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
        # x / 0 is an infinity or NaN: null with the rest that is not finite.
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
