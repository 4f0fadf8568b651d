"""Calls the kernel of an op code, for each cell (an aggregate's words in a row) that the interpreter updates.

The caller is `railgun/interpreter/rare.py`. Every kernel returns 0 (apply_result also NULL), or a negative status of
the page pool. After a status, the caller must let the pool serve it and repeat the call with the same arguments, which
then completes the update correctly.

The count of an argument's values is a cell of its own. The caller must update it before the other cells of the same
argument, both when a value is added and when it is removed, and they read it at `count`.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import (
    COUNT,
    DEQUE_MAX,
    DEQUE_MIN,
    EARLIEST,
    GREATEST,
    LATEST,
    LEAST,
    MULTISET,
    QUEUE,
    SQUARES_DOUBLE,
    SQUARES_LONG,
    SUM_DOUBLE,
    SUM_LONG,
)
from railgun.aggregators.deque import add_deque, add_queue
from railgun.aggregators.distinct import add_to_set, count_value
from railgun.aggregators.earliest import add_earliest
from railgun.aggregators.entries import reset_entries
from railgun.aggregators.exact.limbs import clear
from railgun.aggregators.exact.narrow import SQUARE_LIMBS, SUM_LIMBS
from railgun.aggregators.extreme import add_extreme, reset_extreme
from railgun.aggregators.latest import add_latest, remove_latest
from railgun.aggregators.sum_double import add_square as add_square_double
from railgun.aggregators.sum_double import add_sum as add_sum_double
from railgun.aggregators.sum_double import reset_accumulator
from railgun.aggregators.sum_long import SQUARES_WORDS, SUM_WORDS
from railgun.aggregators.sum_long import add_square as add_square_long
from railgun.aggregators.sum_long import add_sum as add_sum_long
from railgun.aggregators.trees import remove_front, reset_tree
from railgun.state.paged.ordered_map import om_clear
from reservoir.native.jit import jit, ld64, st64

u = np.uint64


@jit
def apply_add(
    op: int,
    ctx: int,
    cell: int,
    count: int,
    time: int,
    seq: int,
    v0: Any,
    v1: Any,
    type_code: int,
    text: int,
    length: int,
) -> Any:
    """Add a value that is not null to a cell; 0 or a status.

    ctx: the page pool's context.  cell, count: addresses of words of the row.
    v0, v1: the value; v1 is 0 except for strings.  text, length: the address and number of a string's bytes.
    """
    if op == COUNT:
        st64(cell, ld64(cell) + u(1))
        return np.int64(0)
    if op == SUM_DOUBLE:
        return add_sum_double(ctx, cell, v0, False)
    if op == SUM_LONG:
        add_sum_long(cell, v0, False)
        return np.int64(0)
    return _add_other(op, ctx, cell, count, time, seq, v0, v1, type_code, text, length)


@jit
def _add_other(
    op: int,
    ctx: int,
    cell: int,
    count: int,
    time: int,
    seq: int,
    v0: Any,
    v1: Any,
    type_code: int,
    text: int,
    length: int,
) -> Any:
    """The less frequent ops, in a function of their own, so that the compiler inlines apply_add into its caller."""
    if op == SQUARES_DOUBLE:
        return add_square_double(ctx, cell, v0, False)
    if op == SQUARES_LONG:
        add_square_long(cell, v0, False)
        return np.int64(0)
    n = ld64(count)
    if op == LATEST:
        return add_latest(ctx, cell, n, time, seq, v0, v1, type_code, text, length)
    if op == EARLIEST:
        return add_earliest(ctx, cell, n, time, seq, v0, v1, type_code, text, length)
    if op in (LEAST, GREATEST):
        return add_extreme(ctx, cell, n, op == GREATEST, v0, v1, type_code, text, length)
    if op in (DEQUE_MIN, DEQUE_MAX):
        return add_deque(ctx, cell, op == DEQUE_MAX, time, seq, v0, v1, type_code, text, length)
    if op == QUEUE:
        return add_queue(ctx, cell, time, seq, v0, v1, type_code, text, length)
    if op == MULTISET:
        return count_value(ctx, cell, v0, v1, 1)
    return add_to_set(ctx, cell, v0, v1)


@jit
def apply_remove(
    op: int, ctx: int, cell: int, count: int, time: int, seq: int, v0: Any, v1: Any, type_code: int
) -> Any:
    """Remove the value that was added with (time, seq). Values must be removed in this order. 0 or a status."""
    if op == COUNT:
        st64(cell, ld64(cell) - u(1))
        return np.int64(0)
    if op == SUM_DOUBLE:
        return add_sum_double(ctx, cell, v0, True)
    if op == SUM_LONG:
        add_sum_long(cell, v0, True)
        return np.int64(0)
    return _remove_other(op, ctx, cell, count, time, seq, v0, v1, type_code)


@jit
def _remove_other(
    op: int, ctx: int, cell: int, count: int, time: int, seq: int, v0: Any, v1: Any, type_code: int
) -> Any:
    """The less frequent ops. EARLIEST, LEAST, GREATEST and VALUE_SET are for windows that no event leaves."""
    if op == SQUARES_DOUBLE:
        return add_square_double(ctx, cell, v0, True)
    if op == SQUARES_LONG:
        add_square_long(cell, v0, True)
        return np.int64(0)
    if op == LATEST:
        return remove_latest(ctx, cell, ld64(count), type_code)
    if op in (DEQUE_MIN, DEQUE_MAX, QUEUE):
        return remove_front(ctx, cell, time, seq, v0, v1, type_code)
    return count_value(ctx, cell, v0, v1, -1)


@jit
def apply_reset(op: int, ctx: int, cell: int, type_code: int) -> Any:
    """Empty a cell: its bucket has passed, or its metric is dropped; 0 or a status."""
    if op == COUNT:
        st64(cell, u(0))
    elif op == SUM_DOUBLE:
        return reset_accumulator(ctx, cell, SUM_LIMBS)
    elif op == SQUARES_DOUBLE:
        return reset_accumulator(ctx, cell, SQUARE_LIMBS)
    elif op == SUM_LONG:
        clear(cell, SUM_WORDS)
    elif op == SQUARES_LONG:
        clear(cell, SQUARES_WORDS)
    elif op == LATEST:
        return reset_entries(ctx, cell, 2, type_code)
    elif op == EARLIEST:
        return reset_entries(ctx, cell, 1, type_code)
    elif op in (LEAST, GREATEST):
        return reset_extreme(ctx, cell, type_code)
    elif op in (DEQUE_MIN, DEQUE_MAX, QUEUE):
        return reset_tree(ctx, cell, type_code)
    else:
        return np.int64(om_clear(ctx, cell))
    return np.int64(0)
