"""Computes results from cells (aggregates' words in a row), by op code, for each result of the interpreter's program.

`railgun/interpreter/rare.py` calls it for results that are not computed in the interpreter's loop itself.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import (
    NULL,
    RESULT_AVG_DECIMAL,
    RESULT_AVG_DOUBLE,
    RESULT_AVG_LONG,
    RESULT_COUNT,
    RESULT_DISTINCT,
    RESULT_EXTREME,
    RESULT_FRONT,
    RESULT_LAST,
    RESULT_PREV,
    RESULT_STDDEV_POP_DOUBLE,
    RESULT_STDDEV_POP_LONG,
    RESULT_STDDEV_SAMP_DOUBLE,
    RESULT_STDDEV_SAMP_LONG,
    RESULT_SUM_DOUBLE,
    RESULT_SUM_LONG,
    RESULT_VAR_SAMP_DOUBLE,
    RESULT_VAR_SAMP_LONG,
    VALUE,
)
from railgun.aggregators.distinct import distinct_values
from railgun.aggregators.entries import VALUE_OFFSET
from railgun.aggregators.latest import result_last, result_prev
from railgun.aggregators.sum_double import sum_double, variance_double
from railgun.aggregators.sum_long import mean_decimal, mean_long, variance_long
from railgun.aggregators.trees import FRONT
from railgun.aggregators.values import copy_value
from reservoir.native.jit import bits_f64, f64_bits, jit, ld64, st64

u = np.uint64


@jit
def apply_result(
    op: int, ctx: int, cell: int, squares: int, count: int, type_code: int, scale: int, out: int
) -> Any:
    """Write a result to `out` (two words); VALUE, NULL, or a negative status of the page pool.

    ctx: the page pool's context.
    cell, squares, count: addresses of words of the row: the cell, Σx² for variances, and the number of values.
    scale: of decimals.
    A result of 64 bits takes the first word. The hashes of strings and 128-bit integers (least word first) take both.
    """
    if op == RESULT_COUNT:
        st64(out, ld64(cell))
        return np.int64(VALUE)
    if op == RESULT_SUM_DOUBLE:
        if ld64(count) == u(0):
            return np.int64(NULL)
        return sum_double(ctx, cell, out)
    if op == RESULT_AVG_DOUBLE:
        n = ld64(count)
        if n == u(0):
            return np.int64(NULL)
        outcome = sum_double(ctx, cell, out)
        if outcome == VALUE:
            st64(out, _divided(ld64(out), n))
        return outcome
    return _result_other(op, ctx, cell, squares, count, type_code, scale, out)


@jit
def _divided(total: Any, n: Any) -> Any:
    """The bits of a double divided by a count. A quotient that would be −0.0 is 0.0."""
    return f64_bits(bits_f64(total) / np.float64(n) + 0.0)


@jit
def _result_other(
    op: int, ctx: int, cell: int, squares: int, count: int, type_code: int, scale: int, out: int
) -> Any:
    """The less frequent ops, in a function of their own, so that the compiler inlines apply_result into its caller."""
    if op == RESULT_DISTINCT:
        st64(out, distinct_values(cell))
        return np.int64(VALUE)
    n = ld64(count)
    if n == u(0):
        return np.int64(NULL)
    if op == RESULT_LAST:
        return result_last(cell, n, out)
    if op == RESULT_PREV:
        return result_prev(cell, n, out)
    if RESULT_VAR_SAMP_DOUBLE <= op <= RESULT_STDDEV_POP_LONG:
        return _result_variance(op, ctx, cell, squares, n, scale, out)
    if op == RESULT_SUM_LONG:
        copy_value(out, cell)
    elif op == RESULT_AVG_LONG:
        st64(out, f64_bits(mean_long(cell, n)))
    elif op == RESULT_AVG_DECIMAL:
        mean_decimal(cell, n, out)
    elif op == RESULT_FRONT:
        copy_value(out, cell + FRONT + VALUE_OFFSET)
    elif op == RESULT_EXTREME:
        copy_value(out, cell)
    else:
        copy_value(out, cell + VALUE_OFFSET)
    return np.int64(VALUE)


@jit
def _result_variance(op: int, ctx: int, cell: int, squares: int, n: Any, scale: int, out: int) -> Any:
    """Variances and standard deviations: the exact rational rounded once, and the square root of that."""
    base = n
    if op in (
        RESULT_VAR_SAMP_DOUBLE,
        RESULT_VAR_SAMP_LONG,
        RESULT_STDDEV_SAMP_DOUBLE,
        RESULT_STDDEV_SAMP_LONG,
    ):
        base = n - u(1)
    if base == u(0):
        return np.int64(NULL)
    if op <= RESULT_STDDEV_POP_DOUBLE:
        outcome = variance_double(ctx, cell, squares, n, base, out)
        if outcome != VALUE:
            return outcome
    else:
        st64(out, variance_long(cell, squares, n, base, scale))
    if op in (
        RESULT_STDDEV_SAMP_DOUBLE,
        RESULT_STDDEV_POP_DOUBLE,
        RESULT_STDDEV_SAMP_LONG,
        RESULT_STDDEV_POP_LONG,
    ):
        st64(out, f64_bits(np.sqrt(bits_f64(ld64(out)))))
    return np.int64(VALUE)
