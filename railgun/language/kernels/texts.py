"""SUBSTR, TRIM, LENGTH and concatenation of strings; conversions between strings and longs."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    CODE,
    CONCATENATE,
    DONE,
    HEAP_SCRATCH,
    LENGTH,
    LENGTH_BITS,
    LONG_TO_STRING,
    OFFSET_SHIFT,
    RESULT,
    SCRATCH_TOO_SMALL,
    SCRATCH_USED,
    STRING_TO_LONG,
    SUBSTR,
    A,
    B,
    C,
    X,
)
from railgun.language.kernels.longs import magnitude
from railgun.language.kernels.scratch import fits_scratch, scratch_word
from railgun.language.kernels.vectors import nulls_of, string_length, string_start, words_of
from railgun.language.limits import STRING_BYTES_MAX
from reservoir.native.jit import copy_bytes, jit, ld8, ldi64, mulhi64, st8, sti64

_ZERO = np.uint64(0)
_TEN = np.uint64(10)
_SIGN = np.uint64(63)
_LEAST = np.uint64(1 << 63)
_GREATEST = np.uint64((1 << 63) - 1)
_OFFSET_SHIFT = np.uint64(OFFSET_SHIFT)
_LENGTH_MASK = np.uint64((1 << LENGTH_BITS) - 1)
_LONG_TEXT_BYTES = 20
_SPACE, _HYPHEN, _DIGIT_0 = 0x20, 0x2D, 0x30


@jit
def _points(text: Any, length: Any) -> Any:
    """The number of code points, which is the number of bytes that are not continuation bytes."""
    count = np.int64(0)
    for i in range(length):
        count += (np.int64(ld8(text + i)) & 0xC0) != 0x80
    return count


@jit
def _after(text: Any, length: Any, begin: Any, points: Any) -> Any:
    """The offset behind `points` code points from the offset `begin` on, but at most the length."""
    # Every code point has at least one byte.
    if points >= length - begin:
        points = length - begin
    t = begin
    while points > 0 and t < length:
        t += 1
        while t < length and (np.int64(ld8(text + t)) & 0xC0) == 0x80:
            t += 1
        points -= 1
    return t


@jit
def _part(word: Any, begin: Any, end: Any) -> Any:
    """The word of a part of a string. No bytes are copied."""
    return (word & ~_LENGTH_MASK) + (np.uint64(begin) << _OFFSET_SHIFT) + np.uint64(end - begin)


@jit
def _run_substr(context: Any, row: Any, n: Any) -> None:
    counted = ldi64(row + 8 * X) != 0
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    c, cn = words_of(context, row, C, n), nulls_of(context, row, C, n)
    for i in range(n):
        first = np.int64(b[i])
        null = ((an[i] | bn[i]) != 0) | (first < 1)
        if counted:
            null = null | (cn[i] != 0) | (np.int64(c[i]) < 0)
        word = _ZERO
        if not null:
            text, length = string_start(context, a[i]), string_length(a[i])
            begin = _after(text, length, np.int64(0), first - 1)
            end = _after(text, length, begin, np.int64(c[i])) if counted else length
            word = _part(a[i], begin, end)
        d[i] = word
        dn[i] = null


@jit
def _trimmed(context: Any, word: Any) -> Any:
    text, end = string_start(context, word), string_length(word)
    begin = np.int64(0)
    while begin < end and np.int64(ld8(text + begin)) == _SPACE:
        begin += 1
    while end > begin and np.int64(ld8(text + end - 1)) == _SPACE:
        end -= 1
    return _part(word, begin, end)


@jit
def _run_concatenate(context: Any, row: Any, n: Any) -> Any:
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    b, bn = words_of(context, row, B, n), nulls_of(context, row, B, n)
    wanted = np.int64(0)
    for i in range(n):
        wanted += string_length(a[i]) + string_length(b[i])
    if not fits_scratch(context, wanted):
        return SCRATCH_TOO_SMALL
    used, heap = ldi64(context + 8 * SCRATCH_USED), ldi64(context + 8 * HEAP_SCRATCH)
    for i in range(n):
        head, tail = string_length(a[i]), string_length(b[i])
        null = ((an[i] | bn[i]) != 0) | (head + tail > STRING_BYTES_MAX)
        word = _ZERO
        if not null:
            copy_bytes(heap + used, string_start(context, a[i]), head)
            copy_bytes(heap + used + head, string_start(context, b[i]), tail)
            word = scratch_word(used, head + tail)
            used += head + tail
        d[i] = word
        dn[i] = null
    sti64(context + 8 * SCRATCH_USED, used)
    return DONE


@jit
def _write_long(word: Any, target: Any) -> Any:
    """Write a long as decimal text. Returns the number of bytes."""
    rest = magnitude(word)
    length, left = np.int64(1), rest // _TEN
    while left > _ZERO:
        length += 1
        left = left // _TEN
    if (word >> _SIGN) != _ZERO:
        st8(target, np.uint64(_HYPHEN))
        target += 1
    for place in range(length):
        st8(target + length - 1 - place, rest % _TEN + np.uint64(_DIGIT_0))
        rest = rest // _TEN
    return length + np.int64(word >> _SIGN)


@jit
def _run_long_to_string(context: Any, row: Any, n: Any) -> Any:
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    if not fits_scratch(context, _LONG_TEXT_BYTES * n):
        return SCRATCH_TOO_SMALL
    used, heap = ldi64(context + 8 * SCRATCH_USED), ldi64(context + 8 * HEAP_SCRATCH)
    for i in range(n):
        null = an[i] != 0
        word = _ZERO
        if not null:
            length = _write_long(a[i], heap + used)
            word = scratch_word(used, length)
            used += length
        d[i] = word
        dn[i] = null
    sti64(context + 8 * SCRATCH_USED, used)
    return DONE


@jit
def _run_string_to_long(context: Any, row: Any, n: Any) -> None:
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    for i in range(n):
        text, length = string_start(context, a[i]), string_length(a[i])
        negative = length > 0 and np.int64(ld8(text)) == _HYPHEN
        t = np.int64(1) if negative else np.int64(0)
        null = (an[i] != 0) | (t >= length)
        r = _ZERO
        limit = _LEAST if negative else _GREATEST
        while t < length and not null:
            digit = np.int64(ld8(text + t)) - _DIGIT_0
            next_r = r * _TEN + np.uint64(digit & 0xF)
            beyond = (mulhi64(r, _TEN) != _ZERO) | (next_r < r) | (next_r > limit)
            null = (digit < 0) | (digit > 9) | beyond
            r = next_r
            t += 1
        signed = _ZERO - r if negative else r
        d[i] = _ZERO if null else signed
        dn[i] = null


@jit
def run_texts(context: Any, row: Any, n: Any) -> Any:
    """Evaluate one row of the family of texts over n events; DONE or SCRATCH_TOO_SMALL."""
    code = ldi64(row + 8 * CODE)
    if code == CONCATENATE:
        return _run_concatenate(context, row, n)
    if code == LONG_TO_STRING:
        return _run_long_to_string(context, row, n)
    if code == STRING_TO_LONG:
        _run_string_to_long(context, row, n)
        return DONE
    if code == SUBSTR:
        _run_substr(context, row, n)
        return DONE
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    for i in range(n):
        null = an[i] != 0
        word = _ZERO
        if not null:
            if code == LENGTH:
                word = np.uint64(_points(string_start(context, a[i]), string_length(a[i])))
            else:
                word = _trimmed(context, a[i])
        d[i] = word
        dn[i] = null
    return DONE
