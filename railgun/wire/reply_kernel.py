"""The compiled gather that writes one reply record from the results of a batch."""

from typing import Any

import numpy as np

from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK
from reservoir.compiled import copy_bytes, jit, ld8, ld64, ldi64, st8, st64, sti64

REPLY = 0x03
# int64 words of a record's head, the first of which holds the kind in its lowest byte.
(HEAD_KIND, HEAD_N, HEAD_METRICS, HEAD_PLANES, HEAD_DESCRIPTION, HEAD_IDS, HEAD_HEAP, HEAD_PARTIALS) = range(
    8
)
(HEAD_GENERATION, HEAD_PLACE) = range(8, 10)
HEAD_WORDS = 10
PARTIAL_WORDS = 4

# Shapes of results.
WORD, WIDE, STRING = 0, 1, 2

# Words of the context array (int64).
(N, ROWS, METRICS, SHAPES, RESULTS, RESULT_NULLS, STRIDE, RESULT_HEAP) = range(8)
(IDS, ID_OFFSET, ID_LENGTH, INCARNATION, SEQUENCE, TIME, OFFSETS, FLAGS) = range(8, 16)
(DESCRIPTION, DESCRIPTION_BYTES, PARTIALS, PARTIAL_COUNT, GENERATION, PLACE) = range(16, 22)
(OUT, CAPACITY) = range(22, 24)
CONTEXT_WORDS = 24


@jit
def _word(context: Any, index: Any) -> Any:
    return ldi64(context + 8 * index)


@jit
def padded(size_bytes: Any) -> Any:
    """A size rounded up to whole words."""
    return (size_bytes + 7) & ~7


@jit
def _row(context: Any, i: Any) -> Any:
    return ldi64(_word(context, ROWS) + 8 * i)


@jit
def _is_null(context: Any, metric: Any, row: Any) -> Any:
    return ld8(_word(context, RESULT_NULLS) + metric * _word(context, STRIDE) + row) != np.uint8(0)


@jit
def _result(context: Any, metric: Any, row: Any) -> Any:
    """Address of the two words of a result."""
    return _word(context, RESULTS) + 16 * (metric * _word(context, STRIDE) + row)


@jit
def _sizes(context: Any) -> Any:
    """(planes, bytes of ids, bytes of strings) of the chosen rows."""
    n = _word(context, N)
    planes, ids, heap = np.int64(0), np.int64(0), np.int64(0)
    for i in range(n):
        ids += ldi64(_word(context, ID_LENGTH) + 8 * _row(context, i))
    for metric in range(_word(context, METRICS)):
        shape = np.int64(ld8(_word(context, SHAPES) + metric))
        planes += 2 if shape == WIDE else 1
        if shape == STRING:
            for i in range(n):
                row = _row(context, i)
                if not _is_null(context, metric, row):
                    heap += ldi64(_result(context, metric, row)) & REF_LENGTH_MASK
    return planes, ids, heap


@jit
def record_bytes(
    n: Any, metrics: Any, planes: Any, description: Any, ids: Any, heap: Any, partials: Any
) -> Any:
    """The size of a reply record with these counts and byte sizes."""
    fixed = 8 * HEAD_WORDS + padded(description) + 8 * PARTIAL_WORDS * partials
    rows = 8 * 4 * n + padded(n) + 8 * n + padded(ids)
    return fixed + rows + metrics * padded((n + 7) >> 3) + 8 * planes * n + padded(heap)


@jit
def _gather_words(context: Any, column: Any, p: Any) -> Any:
    source = _word(context, column)
    for i in range(_word(context, N)):
        st64(p + 8 * i, ld64(source + 8 * _row(context, i)))
    return p + 8 * _word(context, N)


@jit
def _gather_rows(context: Any, p: Any, ids_bytes: Any) -> Any:
    """Write correlations, times, offsets, flags and ids; returns the address after them."""
    n = _word(context, N)
    p = _gather_words(context, INCARNATION, p)
    p = _gather_words(context, SEQUENCE, p)
    p = _gather_words(context, TIME, p)
    p = _gather_words(context, OFFSETS, p)
    for i in range(n):
        st8(p + i, ld8(_word(context, FLAGS) + _row(context, i)))
    p += padded(n)
    text = p + 8 * n
    used = np.int64(0)
    for i in range(n):
        row = _row(context, i)
        length = ldi64(_word(context, ID_LENGTH) + 8 * row)
        copy_bytes(text + used, _word(context, IDS) + ldi64(_word(context, ID_OFFSET) + 8 * row), length)
        sti64(p + 8 * i, (used << REF_LENGTH_BITS) | length)
        used += length
    return text + padded(ids_bytes)


@jit
def _gather_results(context: Any, nulls: Any, planes: Any, heap: Any) -> None:
    """Write the null bits at `nulls`, the values at `planes` and the bytes of strings at `heap`."""
    n, used = _word(context, N), np.int64(0)
    null_bytes = padded((n + 7) >> 3)
    for metric in range(_word(context, METRICS)):
        shape = np.int64(ld8(_word(context, SHAPES) + metric))
        for i in range(n):
            row = _row(context, i)
            if _is_null(context, metric, row):
                bits = nulls + (i >> 3)
                st8(bits, ld8(bits) | np.uint8(1 << (i & 7)))
                continue
            result = _result(context, metric, row)
            if shape == STRING:
                ref = ldi64(result)
                length = ref & REF_LENGTH_MASK
                copy_bytes(heap + used, _word(context, RESULT_HEAP) + (ref >> REF_LENGTH_BITS), length)
                sti64(planes + 8 * i, (used << REF_LENGTH_BITS) | length)
                used += length
                continue
            st64(planes + 8 * i, ld64(result))
            if shape == WIDE:
                st64(planes + 8 * (n + i), ld64(result + 8))
        nulls += null_bytes
        planes += 8 * n * (2 if shape == WIDE else 1)


@jit
def encode_reply(context: Any) -> Any:
    """Write one reply record at OUT; returns its size, or minus its size where CAPACITY is too small."""
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
def select_rows(reply_to: Any, n: Any, destination: Any, rows: Any) -> Any:
    """Write the places where reply_to (int64[n]) is the destination to rows (int64[n]); returns how many."""
    count = np.int64(0)
    for i in range(n):
        if ldi64(reply_to + 8 * i) == destination:
            sti64(rows + 8 * count, i)
            count += 1
    return count
