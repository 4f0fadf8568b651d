"""`min` and `max` of a sliding window: a monotonic deque, kept in the order of time.

Of the window's values it holds those that no newer value *dominates*: is as small or smaller (for `max`, as
great or greater). So values rise (fall) from the front, the oldest, to the back, the newest, and the front
is the answer. A value that arrives out of order goes in where its time says: it is nothing if the next newer
entry dominates it (the entries after that are no better), and it removes the older ones that it dominates.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import TYPE_STRING
from railgun.aggregators.exact.scratch import stack_words
from railgun.aggregators.trees import FOUND_VALUE, FOUND_WORDS, delete_value, insert_value, key_word
from railgun.aggregators.values import GREATER, LESS, compare_arrival
from railgun.state.ordered_map import om_at_or_above, om_below
from reservoir.compiled import jit, ld64

u = np.uint64


@jit
def add_deque(
    ctx: int,
    root: int,
    greatest: bool,
    time: int,
    seq: int,
    v0: Any,
    v1: Any,
    type_code: int,
    text: int,
    length: int,
) -> Any:
    """Add a value, in or out of order; 0 or a status."""
    k0, k1 = key_word(time), key_word(seq)
    better = np.int64(GREATER if greatest else LESS)
    found = stack_words(FOUND_WORDS)
    status = om_at_or_above(ctx, root, k0, k1, found)
    if status > 0:
        order = _compare_found(ctx, found, v0, v1, type_code, text, length)
        if order < 0 or order != better:
            return min(order, np.int64(0))
    while status >= 0:
        status = om_below(ctx, root, k0, k1, found)
        if status <= 0:
            break
        order = _compare_found(ctx, found, v0, v1, type_code, text, length)
        if order < 0:
            return order
        if order == (LESS if greatest else GREATER):
            break
        held1 = ld64(found + FOUND_VALUE + 8) if type_code == TYPE_STRING else u(0)
        status = delete_value(
            ctx, root, ld64(found), ld64(found + 8), ld64(found + FOUND_VALUE), held1, type_code
        )
    if status < 0:
        return np.int64(status)
    return insert_value(ctx, root, k0, k1, v0, v1, type_code, text, length)


@jit
def _compare_found(ctx: int, found: int, v0: Any, v1: Any, type_code: int, text: int, length: int) -> Any:
    """Compare the arriving value with that of an entry; or a status."""
    held1 = ld64(found + FOUND_VALUE + 8) if type_code == TYPE_STRING else v1
    return compare_arrival(ctx, type_code, v0, v1, text, length, ld64(found + FOUND_VALUE), held1)


@jit
def remove_deque(ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int) -> Any:
    """Remove the value that was added with this time and seq, if nothing dominated it; 0 or a status."""
    return delete_value(ctx, root, key_word(time), key_word(seq), v0, v1, type_code)
