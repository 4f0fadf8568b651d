"""Values in the order of time, in an ordered map: what `deque` and `queue` have in common.

Cell: the root of a map from (time, seq) to the value, both halves of the key biased to unsigned order. One
value word, or two for strings, whose entries hold their strings by count.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import NULL, TYPE_STRING, VALUE
from railgun.aggregators.exact.scratch import stack_words
from railgun.aggregators.values import copy_value, drop, keep, prepare_drop, prepare_keep
from railgun.state.ordered_map import om_clear, om_delete, om_first, om_get, om_insert
from reservoir.compiled import jit, ld64, st64

u = np.uint64

WORDS = 2
# What the map's kernels write: key and value, two words each.
FOUND_WORDS = 4
FOUND_VALUE = 16
_BIAS = u(1) << u(63)


@jit
def key_word(number: int) -> Any:
    """An int64 as a uint64 of the same order."""
    return u(number) ^ _BIAS


@jit
def value_words(type_code: int) -> Any:
    """How many words the values of a map have."""
    return np.int64(2) if type_code == TYPE_STRING else np.int64(1)


@jit
def insert_value(
    ctx: int, root: int, k0: Any, k1: Any, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Insert an entry that is not there, and hold its string; 0 or a status."""
    status = prepare_keep(ctx, type_code, v0, v1, text, length)
    if status != 0:
        return status
    status = om_insert(ctx, root, value_words(type_code), k0, k1, v0, v1)
    if status < 0:
        return status
    keep(ctx, type_code, v0, v1)
    return np.int64(0)


@jit
def delete_value(ctx: int, root: int, k0: Any, k1: Any, v0: Any, v1: Any, type_code: int) -> Any:
    """Delete the entry of a key, if it is there, and let go of its string; 0 or a status."""
    if type_code == TYPE_STRING:
        found = om_get(ctx, root, k0, k1, stack_words(FOUND_WORDS))
        if found <= 0:
            return np.int64(found)
        status = prepare_drop(ctx, type_code, v0, v1)
        if status != 0:
            return status
    deleted = om_delete(ctx, root, k0, k1)
    if deleted < 0:
        return np.int64(deleted)
    if deleted > 0:
        drop(ctx, type_code, v0, v1)
    return np.int64(0)


@jit
def reset_tree(ctx: int, root: int, type_code: int) -> Any:
    """Empty a map: its pages are freed later (`PagePool.bury`), strings let go one by one; 0 or a status."""
    if type_code != TYPE_STRING:
        return np.int64(om_clear(ctx, root))
    found = stack_words(FOUND_WORDS)
    status = np.int64(om_first(ctx, root, found))
    while status > 0:
        v0, v1 = ld64(found + FOUND_VALUE), ld64(found + FOUND_VALUE + 8)
        status = delete_value(ctx, root, ld64(found), ld64(found + 8), v0, v1, type_code)
        if status == 0:
            status = np.int64(om_first(ctx, root, found))
    return status


@jit
def result_front(ctx: int, root: int, type_code: int, out: int) -> Any:
    """Write the value of the earliest entry; VALUE, NULL or a status."""
    if ld64(root) == u(0):
        return np.int64(NULL)
    found = stack_words(FOUND_WORDS)
    status = om_first(ctx, root, found)
    if status < 0:
        return np.int64(status)
    copy_value(out, found + FOUND_VALUE)
    if type_code != TYPE_STRING:
        st64(out + 8, u(0))
    return np.int64(VALUE)
