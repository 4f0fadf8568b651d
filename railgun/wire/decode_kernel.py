"""The compiled loop that splits event records into header columns and field columns."""

from typing import Any

import numpy as np

from railgun.wire.msgpack import (
    FALSE,
    FLOAT64,
    NIL,
    OK,
    OUT_OF_RANGE,
    TRUE,
    TRUNCATED,
    WRONG_TYPE,
    Status,
    load_be,
    read_int,
    read_str,
)
from railgun.wire.records import EVENT
from railgun.wire.schema import EVENT_TIME_MIN_MS, WireKind
from reservoir.native.jit import jit, ld8, ldi32, ldi64, st8, st64, sti32, sti64
from reservoir.siphash import siphash128

HEADER_ITEMS = 7

# Words of the context array (int64). DATA, DATA_END, OFFSETS: where the bytes of the N records lie. VERSIONS: one more
# than the newest schema version. SCHEMA_START to FIELD_LIMIT: addresses of tables (decode.py, `_schema_tables`).
# WANTED: how many fields are decoded. CAPACITY: rows of a column. HASH_IDS: whether ids are hashed, with KEY0 and KEY1.
# All others are addresses of columns (decode.py, `Decoded`).
DATA, DATA_END, OFFSETS, N = 0, 1, 2, 3
VERSIONS, SCHEMA_START, SCHEMA_COUNT = 4, 5, 6
FIELD_KIND, FIELD_SLOT, FIELD_LIMIT = 7, 8, 9
WANTED, CAPACITY, WORDS, NULLS = 10, 11, 12, 13
STATUS, SCHEMA, TIME, REPLY_TO, INCARNATION, SEQUENCE = 14, 15, 16, 17, 18, 19
SOURCE_PARTITION, SOURCE_OFFSET, ID_OFFSET, ID_LENGTH, ID_HI, ID_LO = 20, 21, 22, 23, 24, 25
FAULT_AT, KEY0, KEY1, HASH_IDS, SOURCE_COMMITTED = 26, 27, 28, 29, 30
CONTEXT_WORDS = 31

_STRING, _DOUBLE, _BOOLEAN = int(WireKind.STRING), int(WireKind.DOUBLE), int(WireKind.BOOLEAN)
_UNKNOWN_SCHEMA = int(Status.UNKNOWN_SCHEMA)
_UNKNOWN_RECORD = int(Status.UNKNOWN_RECORD)
_WRONG_COUNT = int(Status.WRONG_COUNT)
_TRAILING_BYTES = int(Status.TRAILING_BYTES)
_ABSOLUTE = np.uint64(0x7FFFFFFFFFFFFFFF)
_INFINITY = np.uint64(0x7FF0000000000000)
_INT32_MAX = 0x7FFFFFFF


@jit
def _word(context: Any, index: Any) -> Any:
    return ldi64(context + 8 * index)


@jit
def _array_count(p: Any, end: Any, limit: Any) -> Any:
    """Return (next, items, status) of the head of an array."""
    if p >= end:
        return p, np.int64(0), TRUNCATED
    tag = np.int64(ld8(p))
    if 0x90 <= tag <= 0x9F:
        return p + 1, tag & 15, OK
    if tag != 0xDC and tag != 0xDD:
        return p, np.int64(0), WRONG_TYPE
    size = 2 << (tag - 0xDC)
    if p + 1 + size > end:
        return p, np.int64(0), TRUNCATED
    return p + 1 + size, np.int64(load_be(p + 1, size, limit)), OK


@jit
def _field(p: Any, end: Any, limit: Any, kind: Any, greatest: Any, data: Any) -> Any:
    """Return (next, word, null, status) of one field's value, which must be of the field's type or nil.

    end: of the record.  limit: the end of all records.  greatest: FIELD_LIMIT.  data: strings are offsets from here.
    """
    zero = np.uint64(0)
    if p >= end:
        return p, zero, 1, TRUNCATED
    tag = np.int64(ld8(p))
    if tag == NIL:
        return p + 1, zero, 1, OK
    if kind == _STRING:
        start, length, status = read_str(p, end, limit)
        if status != OK:
            return p, zero, 1, status
        return start + length, np.uint64(((start - data) << 24) | length), 0, OK
    if kind == _DOUBLE:
        if tag != FLOAT64:
            return p, zero, 1, WRONG_TYPE
        if p + 9 > end:
            return p, zero, 1, TRUNCATED
        bits = load_be(p + 1, 8, limit)
        if bits & _ABSOLUTE >= _INFINITY:
            return p, zero, 1, OUT_OF_RANGE
        return p + 9, zero if bits & _ABSOLUTE == zero else bits, 0, OK
    if kind == _BOOLEAN:
        if tag != FALSE and tag != TRUE:
            return p, zero, 1, WRONG_TYPE
        return p + 1, np.uint64(tag - FALSE), 0, OK
    after, value, status = read_int(p, end, limit)
    if status != OK:
        return p, zero, 1, status
    if value > greatest or value < -greatest - (greatest == 0x7FFFFFFFFFFFFFFF):
        return p, zero, 1, OUT_OF_RANGE
    return after, np.uint64(value), 0, OK


@jit
def _source(context: Any, row: Any, p: Any, end: Any, limit: Any) -> Any:
    """Return (next, status) of the source position, which is nil or [partition, offset, committed]."""
    partition, offset, committed = np.int64(-1), np.int64(-1), np.int64(-1)
    if p < end and np.int64(ld8(p)) == NIL:
        p += 1
    else:
        p, items, status = _array_count(p, end, limit)
        if status == OK and items != 3:
            status = _WRONG_COUNT
        if status == OK:
            p, partition, status = read_int(p, end, limit)
        if status == OK:
            p, offset, status = read_int(p, end, limit)
        if status == OK:
            p, committed, status = read_int(p, end, limit)
        if status == OK and (partition < 0 or partition > _INT32_MAX or offset < 0 or committed < 0):
            status = OUT_OF_RANGE
        if status != OK:
            return p, status
    sti64(_word(context, SOURCE_PARTITION) + 8 * row, partition)
    sti64(_word(context, SOURCE_OFFSET) + 8 * row, offset)
    sti64(_word(context, SOURCE_COMMITTED) + 8 * row, committed)
    return p, OK


@jit
def _header(context: Any, row: Any, p: Any, end: Any, limit: Any) -> Any:
    """Fill the header columns of one row. Returns (next, number of field values, schema version, status)."""
    p, items, status = _array_count(p, end, limit)
    if status == OK and items < HEADER_ITEMS:
        status = _WRONG_COUNT
    if status != OK:
        return p, np.int64(0), np.int64(0), status
    p, version, status = read_int(p, end, limit)
    if status != OK:
        return p, items, version, status
    start, length, status = read_str(p, end, limit)
    if status != OK:
        return start, items, version, status
    p = start + length
    sti64(_word(context, ID_OFFSET) + 8 * row, start - _word(context, DATA))
    sti64(_word(context, ID_LENGTH) + 8 * row, length)
    for column in (TIME, REPLY_TO, INCARNATION, SEQUENCE):
        p, value, status = read_int(p, end, limit)
        if status != OK:
            return p, items, version, status
        if column == TIME and value < EVENT_TIME_MIN_MS:
            return p, items, version, OUT_OF_RANGE
        sti64(_word(context, column) + 8 * row, value)
    p, status = _source(context, row, p, end, limit)
    sti64(_word(context, SCHEMA) + 8 * row, version)
    if status == OK and _word(context, HASH_IDS):
        key0, key1 = np.uint64(_word(context, KEY0)), np.uint64(_word(context, KEY1))
        hi, lo = siphash128(start, length, key0, key1)
        st64(_word(context, ID_HI) + 8 * row, hi)
        st64(_word(context, ID_LO) + 8 * row, lo)
    return p, items - HEADER_ITEMS, version, status


@jit
def _record(context: Any, row: Any, p: Any, end: Any, limit: Any) -> Any:
    """Decode one event record: check all its values, and store the wanted ones. Returns (address reached, status)."""
    if p >= end:
        return p, TRUNCATED
    if np.int64(ld8(p)) != EVENT:
        return p, _UNKNOWN_RECORD
    p, values, version, status = _header(context, row, p + 1, end, limit)
    if status != OK:
        return p, status
    if version < 0 or version >= _word(context, VERSIONS):
        return p, _UNKNOWN_SCHEMA
    first = ldi64(_word(context, SCHEMA_START) + 8 * version)
    if first < 0:
        return p, _UNKNOWN_SCHEMA
    if values > ldi64(_word(context, SCHEMA_COUNT) + 8 * version):
        return p, _WRONG_COUNT
    data, capacity = _word(context, DATA), _word(context, CAPACITY)
    words, nulls = _word(context, WORDS), _word(context, NULLS)
    kinds, slots = _word(context, FIELD_KIND) + first, _word(context, FIELD_SLOT) + 4 * first
    greatest = _word(context, FIELD_LIMIT) + 8 * first
    for j in range(values):
        p, word, null, status = _field(p, end, limit, np.int64(ld8(kinds + j)), ldi64(greatest + 8 * j), data)
        if status != OK:
            return p, status
        slot = np.int64(ldi32(slots + 4 * j))
        if slot >= 0:
            st64(words + 8 * (slot * capacity + row), word)
            st8(nulls + slot * capacity + row, np.uint8(null))
    return p, (OK if p == end else _TRAILING_BYTES)


@jit
def _clear(context: Any, first: Any, after: Any) -> None:
    """Set the wanted fields of rows first to after - 1 to null."""
    capacity = _word(context, CAPACITY)
    for slot in range(_word(context, WANTED)):
        words = _word(context, WORDS) + 8 * slot * capacity
        nulls = _word(context, NULLS) + slot * capacity
        for row in range(first, after):
            st64(words + 8 * row, np.uint64(0))
            st8(nulls + row, np.uint8(1))


@jit
def decode_records(context: Any) -> Any:
    """Decode event records; returns how many rows have a status that is not OK.

    Such a row has null fields; FAULT_AT says at which byte of the record it was given up.
    """
    data, limit = _word(context, DATA), _word(context, DATA_END)
    offsets, n = _word(context, OFFSETS), _word(context, N)
    statuses, faults = _word(context, STATUS), _word(context, FAULT_AT)
    exceptions = 0
    _clear(context, 0, n)
    for row in range(n):
        start, end = data + ldi64(offsets + 8 * row), data + ldi64(offsets + 8 * row + 8)
        reached, status = _record(context, row, start, end, limit)
        st8(statuses + row, np.uint8(status))
        sti32(faults + 4 * row, np.int32(reached - start))
        if status != OK:
            _clear(context, row, row + 1)
            exceptions += 1
    return exceptions
