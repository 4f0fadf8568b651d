"""Values in the order of time, in an ordered map on pages: the common part of the deque and the queue (deque.py).

Cell: the root of a map from (time, seq) to the value, then a copy of the map's first entry, the *front*:
[time, seq, v0, v1], zeros if there is none. Both words of the key are biased to unsigned order. Results, and removals
of values that the map does not hold, read the front alone, so that they touch no page. Map values are one word, or two
for strings; an entry counts as a reference to its string.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import TYPE_STRING
from railgun.aggregators.entries import ENTRY_WORDS, write_entry
from railgun.aggregators.exact.limbs import clear
from railgun.aggregators.values import drop, keep, prepare_drop, prepare_keep
from railgun.state.paged.ordered_map import om_at_or_above, om_clear, om_delete, om_first, om_insert
from reservoir.native.jit import jit, ld64, ldi64, stack_words

u = np.uint64

ROOT_WORDS = 2
WORDS = ROOT_WORDS + ENTRY_WORDS
FRONT = 8 * ROOT_WORDS
# The words that the map's kernels write for an entry: key and value, two words each.
FOUND_WORDS = 4
FOUND_VALUE = 16
_BIAS = u(1) << u(63)


@jit
def key_word(number: int) -> Any:
    """An int64 as a uint64 of the same order."""
    return u(number) ^ _BIAS


@jit
def number_of(word: Any) -> Any:
    """The int64 that `key_word` made into a word."""
    return np.int64(word ^ _BIAS)


@jit
def is_empty(root: int) -> Any:
    """Whether the map has no entry. Its front is then not valid."""
    return ld64(root) == u(0)


@jit
def found_second(found: int, type_code: int) -> Any:
    """The second word of the value of an entry that the map's kernels wrote."""
    return ld64(found + FOUND_VALUE + 8) if type_code == TYPE_STRING else u(0)


@jit
def insert_value(
    ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Insert an entry that is not there, and reference its string; 0 or a status. The front is not changed."""
    status = prepare_keep(ctx, type_code, v0, v1, text, length)
    if status != 0:
        return status
    words = 2 if type_code == TYPE_STRING else 1
    status = np.int64(om_insert(ctx, root, words, key_word(time), key_word(seq), v0, v1))
    if status < 0:
        return status
    keep(ctx, type_code, v0, v1)
    return np.int64(0)


@jit
def delete_value(ctx: int, root: int, k0: Any, k1: Any, v0: Any, v1: Any, type_code: int) -> Any:
    """Delete an entry that is there, and release its string; 0 or a status. The front is not changed."""
    status = prepare_drop(ctx, type_code, v0, v1)
    if status != 0:
        return status
    status = np.int64(om_delete(ctx, root, k0, k1))
    if status < 0:
        return status
    drop(ctx, type_code, v0, v1)
    return np.int64(0)


@jit
def remove_front(ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int) -> Any:
    """Delete the entry of (time, seq) if the map has it: then it is the front, the oldest entry. 0 or a status."""
    front = root + FRONT
    if is_empty(root) or ldi64(front) != time or ldi64(front + 8) != seq:
        return np.int64(0)
    # The next front is looked up first: a call cannot be repeated once the entry is deleted.
    found = stack_words(FOUND_WORDS)
    following = om_at_or_above(ctx, root, key_word(time), key_word(seq) + u(1), found)
    if following < 0:
        return np.int64(following)
    status = delete_value(ctx, root, key_word(time), key_word(seq), v0, v1, type_code)
    if status != 0:
        return status
    if following > 0:
        held0, held1 = ld64(found + FOUND_VALUE), found_second(found, type_code)
        write_entry(front, number_of(ld64(found)), number_of(ld64(found + 8)), held0, held1)
    else:
        clear(front, ENTRY_WORDS)
    return np.int64(0)


@jit
def reset_tree(ctx: int, root: int, type_code: int) -> Any:
    """Empty the cell: pages are freed later (`PagePool.free_deferred`), strings released one by one; 0 or a status."""
    status = np.int64(0)
    if type_code == TYPE_STRING:
        status = _drop_all(ctx, root)
    if status == 0:
        status = np.int64(om_clear(ctx, root))
    if status == 0:
        clear(root + FRONT, ENTRY_WORDS)
    return status


@jit
def _drop_all(ctx: int, root: int) -> Any:
    """Delete the entries of a map of strings one by one; 0 or a status."""
    found = stack_words(FOUND_WORDS)
    status = np.int64(0)
    while status == 0:
        status = np.int64(om_first(ctx, root, found))
        if status <= 0:
            return status
        v0, v1 = ld64(found + FOUND_VALUE), ld64(found + FOUND_VALUE + 8)
        status = delete_value(ctx, root, ld64(found), ld64(found + 8), v0, v1, TYPE_STRING)
    return status
