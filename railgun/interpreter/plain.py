"""Updates plain nodes, which count events, and count and sum the values of one column, without an op table.

Most windows compute only `count`, `sum` and `avg` of one double. Rare cases, such as a value that does not fit the
narrow sum, are left to the loop of ops, before anything is changed.
"""

from typing import Any

import numpy as np

from railgun.aggregators.exact.narrow import PLACE_MAX, add_narrow, normal_mantissa, place_of, round_narrow
from railgun.interpreter import layout as at
from railgun.interpreter.prepared import PREPARED_BYTES, PREPARED_NULLS, PREPARED_WORDS
from reservoir.native.jit import bits_f64, f64_bits, jit, ld8, ld64, ldi64, st8, st64

u = np.uint64


@jit
def plain_cells(node: Any) -> Any:
    """(is plain, cell of count(*), of the count of values, of their sum, offset of the column in a prepared table)."""
    return (
        ldi64(node + at.NODE_PLAIN * 8) != 0,
        ldi64(node + at.NODE_PLAIN_ALL * 8),
        ldi64(node + at.NODE_PLAIN_COUNT * 8),
        ldi64(node + at.NODE_PLAIN_SUM * 8),
        (ldi64(node + at.NODE_PLAIN_OP * 8) + 1) * PREPARED_BYTES,
    )


@jit
def change_plain(plain: Any, table: Any, row: Any, entity: Any, adding: Any) -> Any:
    """Add or remove one row of a frame. Returns False, and changes nothing, if the loop of ops has to do it."""
    is_plain, every, count, total, column = plain
    if not is_plain:
        return False
    predicate = ldi64(table + PREPARED_WORDS)
    if predicate != 0 and ld64(predicate + row * 8) == u(0):
        return True
    step = u(1) if adding else ~u(0)
    if count != 0:
        nulls = ldi64(table + column + PREPARED_NULLS)
        if nulls == 0 or ld8(nulls + row) == 0:
            if total != 0:
                value = ld64(ldi64(table + column + PREPARED_WORDS) + row * 8)
                place = place_of(value)
                if u(place) > PLACE_MAX:
                    return False
                negative = ((value >> u(63)) != u(0)) == adding
                add_narrow(entity + total + 8, normal_mantissa(value), place, negative)
            st64(entity + count, ld64(entity + count) + step)
    if every != 0:
        st64(entity + every, ld64(entity + every) + step)
    return True


@jit
def _out(ctx: Any, node: Any, word: Any) -> Any:
    """The addresses of a plain node's output of one kind for record 0, and of its null flag; 0 if it has none."""
    index, stride = ldi64(node + word * 8), ldi64(ctx + at.RUN_STRIDE * 8)
    if index < 0:
        return np.int64(0), np.int64(0)
    where = index * stride
    return ldi64(ctx + at.RUN_OUT * 8) + where * 16, ldi64(ctx + at.RUN_OUT_NULLS * 8) + where


@jit
def plain_outs(ctx: Any, node: Any, first: Any) -> Any:
    """The addresses of a plain node's outputs: count(*), count of values, sum, average. first: the first one's word."""
    return (
        _out(ctx, node, first),
        _out(ctx, node, first + 1),
        _out(ctx, node, first + 2),
        _out(ctx, node, first + 3),
    )


@jit
def _put(out: Any, record: Any, value: Any, null: Any) -> None:
    where, nulls = out
    if where != 0:
        st64(where + record * 16, value)
        st8(nulls + record, null)


@jit
def read_plain(plain: Any, outs: Any, entity: Any, record: Any) -> Any:
    """Write the results for a record. Returns False, and writes nothing, if the loop of ops has to do it."""
    is_plain, every, count, total, _ = plain
    if not is_plain or (total != 0 and ld64(entity + total) != u(0)):
        return False
    of_all, of_count, of_sum, of_average = outs
    if every != 0:
        _put(of_all, record, ld64(entity + every), np.uint8(0))
    if count == 0:
        return True
    n = ld64(entity + count)
    _put(of_count, record, n, np.uint8(0))
    if total != 0:
        null, value, average = np.uint8(n == u(0)), u(0), u(0)
        if n != u(0):
            value = round_narrow(entity + total + 8)
            average = f64_bits(bits_f64(value) / np.float64(n) + 0.0)
        _put(of_sum, record, value, null)
        _put(of_average, record, average, null)
    return True
