"""The compiled loop that gathers the results of a batch into one reply record."""

from typing import Any

import numpy as np

from railgun.wire import decode_kernel as decoded
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK
from reservoir.native.jit import copy_bytes, jit, ld8, ld64, ldi64, st8, st64, sti64

REPLY = 0x04
# Indexes of the int64 words of a record's head. The lowest byte of the first word is the kind.
(HEAD_KIND, HEAD_N, HEAD_METRICS, HEAD_PLANES, HEAD_DESCRIPTION, HEAD_IDS, HEAD_HEAP, HEAD_PARTIALS) = range(
    8
)
(HEAD_GENERATION, HEAD_PLACE) = range(8, 10)
HEAD_WORDS = 10
PARTIAL_WORDS = 4
# The words of a row: schema, incarnation, sequence, time, offset.
ROW_WORDS = 5

# Shapes of results.
WORD, WIDE, STRING = 0, 1, 2

# Words of the context array (int64). DECODED: address of the decoder's context, whose rows are answered.
(N, ROWS, METRICS, SHAPES, RESULTS, RESULT_NULLS, STRIDE, RESULT_HEAP) = range(8)
(DECODED, OFFSETS, FLAGS, GENERATION, PLACE) = range(8, 13)
(DESCRIPTION, DESCRIPTION_BYTES, PARTIALS, PARTIAL_COUNT, OUT, CAPACITY) = range(13, 19)
CONTEXT_WORDS = 19


@jit
def _word(context: Any, index: Any) -> Any:
    return ldi64(context + 8 * index)


@jit
def padded(size_bytes: Any) -> Any:
    """Return a size rounded up to whole words."""
    return (size_bytes + 7) & ~7


@jit
def _sizes(context: Any) -> Any:
    """Return (planes, bytes of ids, bytes of strings) of the chosen rows."""
    n, rows, stride = _word(context, N), _word(context, ROWS), _word(context, STRIDE)
    planes, ids, heap = np.int64(0), np.int64(0), np.int64(0)
    id_length = _word(_word(context, DECODED), decoded.ID_LENGTH)
    for i in range(n):
        ids += ldi64(id_length + 8 * ldi64(rows + 8 * i))
    for metric in range(_word(context, METRICS)):
        shape = np.int64(ld8(_word(context, SHAPES) + metric))
        planes += 2 if shape == WIDE else 1
        if shape == STRING:
            words = _word(context, RESULTS) + 16 * metric * stride
            nulls = _word(context, RESULT_NULLS) + metric * stride
            for i in range(n):
                row = ldi64(rows + 8 * i)
                if ld8(nulls + row) == np.uint8(0):
                    heap += ldi64(words + 16 * row) & REF_LENGTH_MASK
    return planes, ids, heap


@jit
def record_bytes(
    n: Any, metrics: Any, planes: Any, description: Any, ids: Any, heap: Any, partials: Any
) -> Any:
    """Return the size of a reply record with these counts and byte sizes."""
    fixed = 8 * HEAD_WORDS + padded(description) + 8 * PARTIAL_WORDS * partials
    rows = 8 * ROW_WORDS * n + padded(n) + 8 * n + padded(ids)
    return fixed + rows + metrics * padded((n + 7) >> 3) + 8 * planes * n + padded(heap)


@jit
def _gather_words(source: Any, rows: Any, n: Any, p: Any) -> Any:
    for i in range(n):
        st64(p + 8 * i, ld64(source + 8 * ldi64(rows + 8 * i)))
    return p + 8 * n


@jit
def _gather_rows(context: Any, p: Any, ids_bytes: Any) -> Any:
    """Write schemas, correlations, times, offsets, flags and ids. Returns the address after them."""
    n, rows, batch = _word(context, N), _word(context, ROWS), _word(context, DECODED)
    p = _gather_words(_word(batch, decoded.SCHEMA), rows, n, p)
    p = _gather_words(_word(batch, decoded.INCARNATION), rows, n, p)
    p = _gather_words(_word(batch, decoded.SEQUENCE), rows, n, p)
    p = _gather_words(_word(batch, decoded.TIME), rows, n, p)
    p = _gather_words(_word(context, OFFSETS), rows, n, p)
    flags = _word(context, FLAGS)
    for i in range(n):
        st8(p + i, ld8(flags + ldi64(rows + 8 * i)))
    p += padded(n)
    data, id_offset = _word(batch, decoded.DATA), _word(batch, decoded.ID_OFFSET)
    id_length = _word(batch, decoded.ID_LENGTH)
    text, used = p + 8 * n, np.int64(0)
    for i in range(n):
        row = ldi64(rows + 8 * i)
        length = ldi64(id_length + 8 * row)
        copy_bytes(text + used, data + ldi64(id_offset + 8 * row), length)
        sti64(p + 8 * i, (used << REF_LENGTH_BITS) | length)
        used += length
    return text + padded(ids_bytes)


@jit
def _gather_metric(
    shape: Any,
    words: Any,
    nulls: Any,
    source_heap: Any,
    rows: Any,
    n: Any,
    bits: Any,
    plane: Any,
    heap: Any,
    used: Any,
) -> Any:
    """Write one metric's null bits, planes and strings. Returns how many bytes of the heap are used."""
    for i in range(n):
        row = ldi64(rows + 8 * i)
        if ld8(nulls + row) != np.uint8(0):
            byte = bits + (i >> 3)
            st8(byte, ld8(byte) | np.uint8(1 << (i & 7)))
            continue
        word = ld64(words + 16 * row)
        if shape == STRING:
            length = np.int64(word) & REF_LENGTH_MASK
            copy_bytes(heap + used, source_heap + (np.int64(word) >> REF_LENGTH_BITS), length)
            word = np.uint64((used << REF_LENGTH_BITS) | length)
            used += length
        elif shape == WIDE:
            st64(plane + 8 * (n + i), ld64(words + 16 * row + 8))
        st64(plane + 8 * i, word)
    return used


@jit
def _gather_results(context: Any, bits: Any, plane: Any, heap: Any) -> None:
    """Write the null bits at `bits`, the values at `plane` and the bytes of strings at `heap`."""
    n, rows, stride = _word(context, N), _word(context, ROWS), _word(context, STRIDE)
    words, nulls, source = _word(context, RESULTS), _word(context, RESULT_NULLS), _word(context, RESULT_HEAP)
    shapes, null_bytes, used = _word(context, SHAPES), padded((n + 7) >> 3), np.int64(0)
    for metric in range(_word(context, METRICS)):
        shape = np.int64(ld8(shapes + metric))
        used = _gather_metric(shape, words, nulls, source, rows, n, bits, plane, heap, used)
        words += 16 * stride
        nulls += stride
        bits += null_bytes
        plane += 8 * n * (2 if shape == WIDE else 1)


@jit
def encode_reply(context: Any) -> Any:
    """Write one reply record at OUT. Returns its size; if CAPACITY is too small, minus its size."""
    n, metrics = _word(context, N), _word(context, METRICS)
    planes, ids, heap = _sizes(context)
    description, partials = _word(context, DESCRIPTION_BYTES), _word(context, PARTIAL_COUNT)
    size = record_bytes(n, metrics, planes, description, ids, heap, partials)
    if size > _word(context, CAPACITY):
        return -size
    out = _word(context, OUT)
    for i in range(size >> 3):
        st64(out + 8 * i, np.uint64(0))
    sti64(out + 8 * HEAD_KIND, REPLY)
    sti64(out + 8 * HEAD_N, n)
    sti64(out + 8 * HEAD_METRICS, metrics)
    sti64(out + 8 * HEAD_PLANES, planes)
    sti64(out + 8 * HEAD_DESCRIPTION, description)
    sti64(out + 8 * HEAD_IDS, ids)
    sti64(out + 8 * HEAD_HEAP, heap)
    sti64(out + 8 * HEAD_PARTIALS, partials)
    sti64(out + 8 * HEAD_GENERATION, _word(context, GENERATION))
    sti64(out + 8 * HEAD_PLACE, _word(context, PLACE))
    p = out + 8 * HEAD_WORDS
    copy_bytes(p, _word(context, DESCRIPTION), description)
    p += padded(description)
    copy_bytes(p, _word(context, PARTIALS), 8 * PARTIAL_WORDS * partials)
    p = _gather_rows(context, p + 8 * PARTIAL_WORDS * partials, ids)
    values = p + metrics * padded((n + 7) >> 3)
    _gather_results(context, p, values, values + 8 * planes * n)
    return size


@jit
def select_rows(context: Any, n: Any, destination: Any) -> Any:
    """Choose those of the first n rows for which a destination waits. Fills ROWS, sets N and returns it."""
    reply_to, rows, count = (
        _word(_word(context, DECODED), decoded.REPLY_TO),
        _word(context, ROWS),
        np.int64(0),
    )
    for row in range(n):
        if ldi64(reply_to + 8 * row) == destination:
            sti64(rows + 8 * count, row)
            count += 1
    sti64(context + 8 * N, count)
    return count
