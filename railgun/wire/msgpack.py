"""Kernels that read single MessagePack values: integers, doubles, and strings, whose UTF-8 is checked.

Readers take p (address of the value's first byte), end (end of the record, beyond which no value may reach) and limit
(end of readable memory, >= end, up to which words may be loaded). They return the address after the value, the value
and a status; `read_str` returns the start and the length of the text instead of the first two. If the status is not OK,
the address is that of the fault.
Source: the MessagePack specification, https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from enum import IntEnum
from typing import Any

import numpy as np

from railgun.wire.schema import STRING_LIMIT_BYTES
from reservoir.native.jit import jit, ld8, load_be64


class Status(IntEnum):
    """The result of decoding a record. A record with another status than OK and UNKNOWN_SCHEMA is written to the dead
    letters.
    """

    OK = 0
    UNKNOWN_SCHEMA = 1
    UNKNOWN_RECORD = 2
    TRUNCATED = 3
    WRONG_TYPE = 4
    OUT_OF_RANGE = 5
    BAD_UTF8 = 6
    TOO_LONG = 7
    WRONG_COUNT = 8
    TRAILING_BYTES = 9


OK = int(Status.OK)
TRUNCATED = int(Status.TRUNCATED)
WRONG_TYPE = int(Status.WRONG_TYPE)
OUT_OF_RANGE = int(Status.OUT_OF_RANGE)
BAD_UTF8 = int(Status.BAD_UTF8)
TOO_LONG = int(Status.TOO_LONG)

NIL = 0xC0
FALSE = 0xC2
TRUE = 0xC3
FLOAT64 = 0xCB

_HIGH_BITS = np.uint64(0x8080808080808080)
_EIGHT = np.uint64(8)


@jit
def load_be(p: Any, size: Any, limit: Any) -> Any:
    """Return the uint64 in `size` (1 to 8) big-endian bytes."""
    if p + 8 <= limit:
        return load_be64(p) >> np.uint64(64 - 8 * size)
    word = np.uint64(0)
    for i in range(size):
        word = (word << _EIGHT) | np.uint64(ld8(p + i))
    return word


@jit
def read_int(p: Any, end: Any, limit: Any) -> Any:
    """Return (next, int64, status). Any integer format is read whose value fits into int64."""
    if p >= end:
        return p, np.int64(0), TRUNCATED
    tag = np.int64(ld8(p))
    if tag < 0x80:
        return p + 1, tag, OK
    if tag >= 0xE0:
        return p + 1, tag - 256, OK
    if tag < 0xCC or tag > 0xD3:
        return p, np.int64(0), WRONG_TYPE
    size = 1 << (tag & 3)
    if p + 1 + size > end:
        return p, np.int64(0), TRUNCATED
    word = load_be(p + 1, size, limit)
    if tag >= 0xD0:
        shift = 64 - 8 * size
        return p + 1 + size, np.int64(word << np.uint64(shift)) >> np.int64(shift), OK
    value = np.int64(word)
    if value < 0:
        return p, np.int64(0), OUT_OF_RANGE
    return p + 1 + size, value, OK


@jit
def read_str(p: Any, end: Any, limit: Any) -> Any:
    """Return (start, length in bytes, status). The next value is at start + length. The text must be UTF-8 and have
    at most STRING_LIMIT_BYTES.
    """
    if p >= end:
        return p, np.int64(0), TRUNCATED
    tag = np.int64(ld8(p))
    if 0xA0 <= tag <= 0xBF:
        start, length = p + 1, tag & 31
    elif 0xD9 <= tag <= 0xDB:
        size = 1 << (tag - 0xD9)
        start = p + 1 + size
        if start > end:
            return p, np.int64(0), TRUNCATED
        length = np.int64(load_be(p + 1, size, limit))
        if length > STRING_LIMIT_BYTES:
            return p, np.int64(0), TOO_LONG
    else:
        return p, np.int64(0), WRONG_TYPE
    if start + length > end:
        return p, np.int64(0), TRUNCATED
    if not is_ascii(start, length, limit) and not is_utf8(start, length):
        return p, np.int64(0), BAD_UTF8
    return start, length, OK


@jit
def is_ascii(p: Any, n: Any, limit: Any) -> Any:
    """Whether the n bytes at p are all below 128."""
    seen = np.uint64(0)
    whole = n & ~7
    for i in range(0, whole, 8):
        seen |= load_be64(p + i)
    if n != whole:
        left = n - whole
        seen |= load_be(p + whole, left, limit)
    return seen & _HIGH_BITS == np.uint64(0)


@jit
def is_utf8(p: Any, n: Any) -> Any:
    """Whether the n bytes at p are UTF-8: only shortest forms, no surrogates, nothing above U+10FFFF."""
    i = 0
    while i < n:
        lead = np.int64(ld8(p + i))
        if lead < 0x80:
            i += 1
            continue
        if 0xC2 <= lead <= 0xDF:
            following, least, greatest = 1, 0x80, 0xBF
        elif 0xE0 <= lead <= 0xEF:
            following = 2
            least = 0xA0 if lead == 0xE0 else 0x80
            greatest = 0x9F if lead == 0xED else 0xBF
        elif 0xF0 <= lead <= 0xF4:
            following = 3
            least = 0x90 if lead == 0xF0 else 0x80
            greatest = 0x8F if lead == 0xF4 else 0xBF
        else:
            return False
        if i + following >= n:
            return False
        for j in range(1, following + 1):
            byte = np.int64(ld8(p + i + j))
            if byte < least or byte > greatest:
                return False
            least, greatest = 0x80, 0xBF
        i += following + 1
    return True
