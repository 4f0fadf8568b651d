"""Comparisons by exact value, whatever the types; membership in a sorted list; three-valued logic and choice."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    AND,
    CODE,
    COMPARE_DECIMAL_DOUBLE,
    COMPARE_DOUBLE,
    COMPARE_LONG,
    COMPARE_STRING,
    IN_LONG,
    IS_EQUAL,
    IS_GREATER,
    IS_LESS,
    IS_NULL,
    NOT,
    OR,
    POOL,
    RESULT,
    SELECT,
    A,
    B,
    C,
    X,
    Y,
)
from railgun.language.kernels.longs import magnitude
from railgun.language.kernels.vectors import nulls_of, string_length, string_start, words_of
from reservoir.native.jit import bits_f64, f64_bits, jit, ld8, ldi64, mulhi64

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@jit
def run_logic(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the logic family over n events."""
    code = ldi64(row + 8 * CODE)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    if code == AND:
        for i in range(n):
            # A null's word is 0, so a word of 0 without the null byte is false.
            false = ((a[i] == _ZERO) & (an[i] == 0)) | ((b[i] == _ZERO) & (bn[i] == 0))
            d[i] = a[i] & b[i]
            dn[i] = (not false) & ((an[i] | bn[i]) != 0)
    elif code == OR:
        for i in range(n):
            true = a[i] | b[i]
            d[i] = true
            dn[i] = (true == _ZERO) & ((an[i] | bn[i]) != 0)
    elif code == NOT:
        for i in range(n):
            null = an[i] != 0
            d[i] = _ZERO if null else _ONE - a[i]
            dn[i] = null
    elif code == IS_NULL:
        for i in range(n):
            d[i] = np.uint64(an[i])
            dn[i] = 0
    elif code == SELECT:
        c, cn = words_of(context, row, C, n), nulls_of(context, row, C, n)
        for i in range(n):
            chosen = a[i] != _ZERO
            word, null = (b[i], bn[i]) if chosen else (c[i], cn[i])
            d[i] = word
            dn[i] = null
    else:
        for i in range(n):
            kept = an[i] == 0
            word, null = (a[i], an[i]) if kept else (b[i], bn[i])
            d[i] = word
            dn[i] = null


_SIGN = np.uint64(63)
_FRACTION = np.uint64((1 << 52) - 1)
_IMPLICIT = np.uint64(1 << 52)
_LEAST_EXPONENT = np.uint64(1075)
_TWO_TO_63 = 9223372036854775808.0


@jit
def _order(less: Any, greater: Any) -> Any:
    return np.int64(greater) - np.int64(less)


@jit
def _compare_scaled(x: Any, y: Any, factor: Any) -> Any:
    """-1, 0 or 1 as x * factor is below, at or above y; words of int64, factor a uint64."""
    negative = (x >> _SIGN) != _ZERO
    if negative != ((y >> _SIGN) != _ZERO):
        return -1 if negative else 1
    p, q = magnitude(x), magnitude(y)
    high, low = mulhi64(p, factor), p * factor
    order = 1 if high != _ZERO else _order(low < q, low > q)
    return -order if negative else order


@jit
def _compare_to_fraction(rest: Any, divisor: Any, fraction: Any) -> Any:
    """-1, 0 or 1 as rest / divisor is below, at or above a double in (0, 1); rest < divisor <= 10**18."""
    bits = f64_bits(fraction)
    exponent, mantissa = bits >> np.uint64(52), bits & _FRACTION
    if exponent == _ZERO:
        exponent = _ONE
    else:
        mantissa |= _IMPLICIT
    # fraction = mantissa / 2**shift. So the comparison is that of rest with high:low >> shift, where high:low is
    # mantissa * divisor.
    shift = _LEAST_EXPONENT - exponent
    high, low = mulhi64(mantissa, divisor), mantissa * divisor
    if shift >= np.uint64(128):
        whole, beyond = _ZERO, True
    elif shift > np.uint64(64):
        shift -= np.uint64(64)
        whole, beyond = high >> shift, (low != _ZERO) or ((high >> shift) << shift) != high
    elif shift == np.uint64(64):
        whole, beyond = high, low != _ZERO
    else:
        whole = (high << (np.uint64(64) - shift)) | (low >> shift)
        beyond = ((low >> shift) << shift) != low
    if rest != whole:
        return 1 if rest > whole else -1
    return -1 if beyond else 0


@jit
def compare_decimal_double(word: Any, divisor: Any, x: Any) -> Any:
    """-1, 0 or 1 as word / divisor is below, at or above a finite double; divisor a power of ten (uint64)."""
    value = np.int64(word)
    if value == 0 or x == 0.0 or (value < 0) != (x < 0.0):
        # The signs decide if they differ, or if one of the numbers is zero.
        sign = _order(x < 0.0, x > 0.0)
        return _order(value < 0, value > 0) if sign == 0 else -sign
    y = abs(x)
    m = magnitude(word)
    quotient, rest = m // divisor, m % divisor
    if y >= _TWO_TO_63:
        # −2**63 is the only long that has this magnitude.
        order = 0 if (y == _TWO_TO_63 and quotient == np.uint64(1 << 63)) else -1
    else:
        whole = np.uint64(y)
        fraction = y - np.float64(whole)
        if quotient != whole:
            order = 1 if quotient > whole else -1
        elif fraction == 0.0:
            order = 1 if rest != _ZERO else 0
        else:
            order = _compare_to_fraction(rest, divisor, fraction)
    return -order if value < 0 else order


@jit
def compare_strings(context: Any, x: Any, y: Any) -> Any:
    """-1, 0 or 1 as the bytes of string x come before, equal or come after those of y."""
    p, q = string_start(context, x), string_start(context, y)
    length_x, length_y = string_length(x), string_length(y)
    for i in range(min(length_x, length_y)):
        b, c = ld8(p + i), ld8(q + i)
        if b != c:
            return -1 if b < c else 1
    return _order(length_x < length_y, length_x > length_y)


@jit
def equal_strings(context: Any, x: Any, y: Any) -> Any:
    """Whether two strings have the same bytes."""
    length = string_length(x)
    if x == y or length != string_length(y):
        return x == y
    p, q = string_start(context, x), string_start(context, y)
    same = 0
    while same < length and ld8(p + same) == ld8(q + same):
        same += 1
    return same == length


@jit
def _run_strings(context: Any, row: Any, n: Any) -> None:
    outcomes = ldi64(row + 8 * X)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    # = and <> need no order: strings of different lengths differ, whatever their bytes are.
    equality = outcomes == IS_EQUAL or outcomes == IS_LESS + IS_GREATER
    for i in range(n):
        null = (an[i] | bn[i]) != 0
        truth = False
        if not null:
            if equality:
                truth = equal_strings(context, a[i], b[i]) == (outcomes == IS_EQUAL)
            else:
                truth = ((outcomes >> (compare_strings(context, a[i], b[i]) + 1)) & 1) != 0
        d[i] = _ONE if truth else _ZERO
        dn[i] = null


@jit
def _run_membership(context: Any, row: Any, n: Any) -> None:
    first, coded = ldi64(context + 8 * POOL) + 8 * ldi64(row + 8 * X), ldi64(row + 8 * Y)
    count, with_null = coded >> 1, (coded & 1) != 0
    longs = ldi64(row + 8 * CODE) == IN_LONG
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    for i in range(n):
        found = False
        if an[i] == 0:
            low, high = 0, count
            while low < high and not found:
                middle = (low + high) >> 1
                item = ldi64(first + 8 * middle)
                if longs:
                    value = np.int64(a[i])
                    order = _order(item < value, item > value)
                else:
                    order = compare_strings(context, np.uint64(item), a[i])
                found = order == 0
                if order < 0:
                    low = middle + 1
                else:
                    high = middle
        d[i] = _ONE if found else _ZERO
        dn[i] = (an[i] != 0) | (with_null & (not found))


@jit
def run_comparisons(context: Any, row: Any, n: Any) -> None:
    """Evaluate one row of the comparison family over n events."""
    code = ldi64(row + 8 * CODE)
    if code == COMPARE_STRING:
        _run_strings(context, row, n)
        return
    if code > COMPARE_STRING:
        _run_membership(context, row, n)
        return
    outcomes, factor = ldi64(row + 8 * X), ldi64(row + 8 * Y)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    for i in range(n):
        null = (an[i] | bn[i]) != 0
        if code == COMPARE_LONG:
            x, y = np.int64(a[i]), np.int64(b[i])
            order = _order(x < y, x > y)
        elif code == COMPARE_DOUBLE:
            v, w = bits_f64(a[i]), bits_f64(b[i])
            order = _order(v < w, v > w)
        elif code == COMPARE_DECIMAL_DOUBLE:
            order = compare_decimal_double(a[i], np.uint64(factor), bits_f64(b[i]))
        elif factor > 0:
            order = _compare_scaled(a[i], b[i], np.uint64(factor))
        else:
            order = -_compare_scaled(b[i], a[i], np.uint64(-factor))
        truth = (not null) & (((outcomes >> (order + 1)) & 1) != 0)
        d[i] = _ONE if truth else _ZERO
        dn[i] = null
