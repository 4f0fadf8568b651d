"""The compiled loop that writes event records from columns."""

from typing import Any

import numpy as np

from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK
from railgun.wire.decode_kernel import HEADER_ITEMS
from railgun.wire.msgpack import FALSE, FLOAT64, NIL
from railgun.wire.records import EVENT
from railgun.wire.schema import WireKind
from reservoir.native.jit import copy_bytes, jit, ld8, ld64, ldi64, st8, sti64, store_be64

# Words of the context array (int64). FIELDS is the address of int64[fields, 4]: for each field its kind, and the
# addresses of its words, nulls (0: none) and heap (0: none). SOURCE_OFFSETS, TIMES, ID_WORDS: addresses of columns.
# SOURCE_PARTITION: -1 if events have no source position.
(N, SCHEMA, REPLY_TO, INCARNATION, FIRST_SEQUENCE) = range(5)
(SOURCE_PARTITION, SOURCE_OFFSETS, TIMES, ID_WORDS, ID_HEAP) = range(5, 10)
(FIELDS, FIELD_COUNT, OUT, OUT_OFFSETS, SOURCE_COMMITTED) = range(10, 15)
CONTEXT_WORDS = 15
FIELD_WORDS = 4

# The most bytes of a record's header, and of a value, both without the bytes of strings. OVERRUN_BYTES: how far a
# store may write beyond the end.
HEADER_LIMIT_BYTES = 1 + 5 + 5 + 5 + 4 * 9 + 1 + 5 + 9 + 9
VALUE_LIMIT_BYTES = 9
OVERRUN_BYTES = 16

_STRING, _DOUBLE, _BOOLEAN = int(WireKind.STRING), int(WireKind.DOUBLE), int(WireKind.BOOLEAN)


@jit
def _word(context: Any, index: Any) -> Any:
    return ldi64(context + 8 * index)


@jit
def _tagged(p: Any, tag: Any, value: Any, size: Any) -> Any:
    """Write a tag and the lowest `size` bytes of an int64. May write up to 8 bytes beyond them. Returns the address
    after them.
    """
    st8(p, np.uint8(tag))
    store_be64(p + 1, np.uint64(value) << np.uint64(64 - 8 * size))
    return p + 1 + size


@jit
def write_int(p: Any, value: Any) -> Any:
    """Write an int64 in its shortest form. Returns the address after it."""
    if -32 <= value < 128:
        st8(p, np.uint8(value & 0xFF))
        return p + 1
    if value >= 0:
        if value < 0x100:
            return _tagged(p, 0xCC, value, 1)
        if value < 0x10000:
            return _tagged(p, 0xCD, value, 2)
        if value < 0x100000000:
            return _tagged(p, 0xCE, value, 4)
        return _tagged(p, 0xCF, value, 8)
    if value >= -0x80:
        return _tagged(p, 0xD0, value, 1)
    if value >= -0x8000:
        return _tagged(p, 0xD1, value, 2)
    if value >= -0x80000000:
        return _tagged(p, 0xD2, value, 4)
    return _tagged(p, 0xD3, value, 8)


@jit
def _write_str(p: Any, ref: Any, heap: Any) -> Any:
    """Write the string that is at a reference into a heap. Returns the address after it."""
    n = np.int64(ref) & REF_LENGTH_MASK
    if n < 32:
        st8(p, np.uint8(0xA0 | n))
        p += 1
    elif n < 0x100:
        p = _tagged(p, 0xD9, n, 1)
    elif n < 0x10000:
        p = _tagged(p, 0xDA, n, 2)
    else:
        p = _tagged(p, 0xDB, n, 4)
    copy_bytes(p, heap + (np.int64(ref) >> REF_LENGTH_BITS), n)
    return p + n


@jit
def _write_array(p: Any, items: Any) -> Any:
    """Write the head of an array. Returns the address after it."""
    if items < 16:
        st8(p, np.uint8(0x90 | items))
        return p + 1
    if items < 0x10000:
        return _tagged(p, 0xDC, items, 2)
    return _tagged(p, 0xDD, items, 4)


@jit
def _write_value(p: Any, field: Any, row: Any) -> Any:
    """Write one value of the field whose description is at address `field`. Returns the address after it."""
    nulls = ldi64(field + 16)
    if nulls != 0 and ld8(nulls + row) != np.uint8(0):
        st8(p, np.uint8(NIL))
        return p + 1
    kind = ldi64(field)
    word = ld64(ldi64(field + 8) + 8 * row)
    if kind == _STRING:
        return _write_str(p, word, ldi64(field + 24))
    if kind == _DOUBLE:
        st8(p, np.uint8(FLOAT64))
        store_be64(p + 1, word)
        return p + 9
    if kind == _BOOLEAN:
        st8(p, np.uint8(FALSE + np.int64(word)))
        return p + 1
    return write_int(p, np.int64(word))


@jit
def encode_records(context: Any) -> Any:
    """Write n event records one after another. Returns how many bytes were written.

    OUT: must have room for the worst case.
    OUT_OFFSETS: int64[n + 1]; is set to where each record starts, and where the last one ends.
    """
    out, offsets = _word(context, OUT), _word(context, OUT_OFFSETS)
    fields, field_count = _word(context, FIELDS), _word(context, FIELD_COUNT)
    partition, source_offsets = _word(context, SOURCE_PARTITION), _word(context, SOURCE_OFFSETS)
    p = out
    for row in range(_word(context, N)):
        sti64(offsets + 8 * row, p - out)
        st8(p, np.uint8(EVENT))
        p = _write_array(p + 1, HEADER_ITEMS + field_count)
        p = write_int(p, _word(context, SCHEMA))
        p = _write_str(p, ld64(_word(context, ID_WORDS) + 8 * row), _word(context, ID_HEAP))
        p = write_int(p, ldi64(_word(context, TIMES) + 8 * row))
        p = write_int(p, _word(context, REPLY_TO))
        p = write_int(p, _word(context, INCARNATION))
        p = write_int(p, _word(context, FIRST_SEQUENCE) + row)
        if partition < 0:
            st8(p, np.uint8(NIL))
            p += 1
        else:
            p = write_int(_write_array(p, 3), partition)
            p = write_int(p, ldi64(source_offsets + 8 * row))
            p = write_int(p, _word(context, SOURCE_COMMITTED))
        for j in range(field_count):
            p = _write_value(p, fields + 8 * FIELD_WORDS * j, row)
    sti64(offsets + 8 * _word(context, N), p - out)
    return p - out
