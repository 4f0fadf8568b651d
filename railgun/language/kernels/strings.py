"""LIKE, and LOWER and UPPER, over the UTF-8 bytes of strings."""

from typing import Any

import numpy as np

from railgun.language.kernels.layout import (
    ANY_ONE,
    ANY_RUN,
    CASE_TABLES,
    CODE,
    DONE,
    HEAP_SCRATCH,
    LIKE,
    POOL,
    RESULT,
    SCRATCH_TOO_SMALL,
    SCRATCH_USED,
    UPPER,
    A,
    X,
    Y,
)
from railgun.language.kernels.scratch import fits_scratch, scratch_word
from railgun.language.kernels.vectors import nulls_of, string_length, string_start, words_of
from railgun.language.limits import STRING_BYTES_MAX
from reservoir.native.jit import jit, ld8, ld16, ldi64, st8, sti64

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
# The mapping of a code point has at most three times the bytes of the code point.
_GROWTH = 3
_RECORD_BYTES = 8


@jit
def _code_point_bytes(lead: Any) -> Any:
    """The number of bytes of a code point that begins with this byte."""
    if lead < 0x80:
        return 1
    return 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)


@jit
def _like(text: Any, length: Any, pattern: Any, items: Any) -> Any:
    """Whether the whole text matches. After a mismatch the last `%` is tried with one code point more."""
    t, p = 0, 0
    run, run_text = -1, 0
    while t < length:
        item = ldi64(pattern + 8 * p) if p < items else -1
        if item == ANY_RUN:
            run, run_text = p, t
            p += 1
        elif item == ANY_ONE:
            t += _code_point_bytes(np.int64(ld8(text + t)))
            p += 1
        elif item == np.int64(ld8(text + t)):
            t += 1
            p += 1
        elif run >= 0:
            run_text += _code_point_bytes(np.int64(ld8(text + run_text)))
            t, p = run_text, run + 1
        else:
            return False
    while p < items and ldi64(pattern + 8 * p) == ANY_RUN:
        p += 1
    return p == items


@jit
def _run_like(context: Any, row: Any, n: Any) -> None:
    pattern, items = ldi64(context + 8 * POOL) + 8 * ldi64(row + 8 * X), ldi64(row + 8 * Y)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    for i in range(n):
        null = an[i] != 0
        truth = False
        if not null:
            truth = _like(string_start(context, a[i]), string_length(a[i]), pattern, items)
        d[i] = _ONE if truth else _ZERO
        dn[i] = null


@jit
def _decode(text: Any, size: Any) -> Any:
    """The code point of `size` bytes at an address."""
    point = np.int64(ld8(text))
    if size == 1:
        return point
    point &= 0x7F >> size
    for i in range(1, size):
        point = (point << 6) | (np.int64(ld8(text + i)) & 0x3F)
    return point


@jit
def _map_case(text: Any, length: Any, target: Any, table: Any, limit: Any, records: Any) -> Any:
    """Write the mapped text at `target` and return its length. A code point without a record is copied."""
    written, t = np.int64(0), np.int64(0)
    while t < length:
        size = min(_code_point_bytes(np.int64(ld8(text + t))), length - t)
        point = _decode(text + t, size)
        index = np.int64(ld16(table + 2 * point)) if point < limit else 0
        if index == 0:
            for i in range(size):
                st8(target + written + i, ld8(text + t + i))
            written += size
        else:
            record = records + _RECORD_BYTES * index
            mapped = np.int64(ld8(record))
            for i in range(mapped):
                st8(target + written + i, ld8(record + 1 + i))
            written += mapped
        t += size
    return written


@jit
def _unchanged(text: Any, length: Any, first: Any) -> Any:
    """Whether a text is ASCII without the 26 letters from `first` on. Case mapping does not change such a text."""
    for i in range(length):
        b = np.int64(ld8(text + i))
        if b >= 0x80 or (b >= first and b < first + 26):
            return False
    return True


@jit
def _run_case(context: Any, row: Any, n: Any) -> Any:
    upper = ldi64(row + 8 * CODE) == UPPER
    tables = ldi64(context + 8 * CASE_TABLES) + (24 if upper else 0)
    table, limit, records = ldi64(tables), ldi64(tables + 8), ldi64(tables + 16)
    first = np.int64(0x61 if upper else 0x41)
    d, dn = words_of(context, row, RESULT, n), nulls_of(context, row, RESULT, n)
    a, an = words_of(context, row, A, n), nulls_of(context, row, A, n)
    wanted = np.int64(0)
    for i in range(n):
        if an[i] == 0:
            wanted += _GROWTH * string_length(a[i])
    if not fits_scratch(context, wanted):
        return SCRATCH_TOO_SMALL
    used, heap = ldi64(context + 8 * SCRATCH_USED), ldi64(context + 8 * HEAP_SCRATCH)
    for i in range(n):
        word, null = a[i], an[i] != 0
        text, length = string_start(context, word), string_length(word)
        if not null and not _unchanged(text, length, first):
            written = _map_case(text, length, heap + used, table, limit, records)
            null = written > STRING_BYTES_MAX
            word = scratch_word(used, written)
            used += written
        d[i] = _ZERO if null else word
        dn[i] = null
    sti64(context + 8 * SCRATCH_USED, used)
    return DONE


@jit
def run_strings(context: Any, row: Any, n: Any) -> Any:
    """Evaluate one row of the string family over n events; DONE or SCRATCH_TOO_SMALL."""
    if ldi64(row + 8 * CODE) == LIKE:
        _run_like(context, row, n)
        return DONE
    return _run_case(context, row, n)
