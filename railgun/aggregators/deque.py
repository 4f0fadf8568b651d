"""`min` and `max` of a sliding window: a monotonic deque, kept in the order of time.

Of the window's values it holds those that no newer value *dominates*: is as small or smaller (for `max`, as
great or greater). So values rise (fall) from the front, the oldest, to the back, the newest, and the front
is the answer. A value that arrives out of order goes in where its time says: it is nothing if the next newer
entry dominates it (the entries after that are no better), and it removes the older ones that it dominates.
"""

from typing import Any

import numpy as np

from railgun.aggregators.entries import VALUE_OFFSET, is_after, write_entry
from railgun.aggregators.exact.scratch import stack_words
from railgun.aggregators.trees import (
    FOUND_VALUE,
    FOUND_WORDS,
    FRONT,
    delete_value,
    found_second,
    insert_value,
    is_empty,
    key_word,
)
from railgun.aggregators.values import GREATER, LESS, compare_arrival
from railgun.state.ordered_map import om_at_or_above, om_below, om_last
from reservoir.compiled import jit, ld64

u = np.uint64

# Where an arriving value goes; statuses are less than these.
_NOWHERE = 0
_IN_FRONT = 1
_BEHIND = 2


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
    place = _place(ctx, root, greatest, time, seq, v0, v1, type_code, text, length)
    if place <= _NOWHERE:
        return place
    status = insert_value(ctx, root, time, seq, v0, v1, type_code, text, length)
    if status == 0 and place == _IN_FRONT:
        write_entry(root + FRONT, time, seq, v0, v1)
    return status


@jit
def _place(
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
    """Make a place for a value: remove the entries that it dominates. _NOWHERE if it is dominated itself.

    Entries go from the newest to the oldest, and the front with the last of them: should a status come in
    between, the front still tells what is older than it and what is not.
    """
    if is_empty(root):
        return np.int64(_IN_FRONT)
    better, worse = (GREATER, LESS) if greatest else (LESS, GREATER)
    front = root + FRONT
    if not is_after(time, seq, front):
        held0, held1 = ld64(front + VALUE_OFFSET), ld64(front + VALUE_OFFSET + 8)
        order = compare_arrival(ctx, type_code, v0, v1, text, length, held0, held1)
        if order < 0:
            return order
        return np.int64(_IN_FRONT) if order == better else np.int64(_NOWHERE)
    k0, k1 = key_word(time), key_word(seq)
    found = stack_words(FOUND_WORDS)
    status = np.int64(om_last(ctx, root, found))
    if status > 0 and (ld64(found) > k0 or (ld64(found) == k0 and ld64(found + 8) > k1)):
        status = np.int64(om_at_or_above(ctx, root, k0, k1, found))
        if status > 0:
            order = _compare_found(ctx, found, v0, v1, type_code, text, length)
            if order < 0:
                return order
            if order != better:
                return np.int64(_NOWHERE)
            status = np.int64(om_below(ctx, root, k0, k1, found))
    while status > 0:
        order = _compare_found(ctx, found, v0, v1, type_code, text, length)
        if order < 0:
            return order
        if order == worse:
            return np.int64(_BEHIND)
        held0, held1 = ld64(found + FOUND_VALUE), found_second(found, type_code)
        status = delete_value(ctx, root, ld64(found), ld64(found + 8), held0, held1, type_code)
        if status == 0:
            status = np.int64(om_below(ctx, root, k0, k1, found))
    return np.int64(_IN_FRONT) if status == 0 else status


@jit
def _compare_found(ctx: int, found: int, v0: Any, v1: Any, type_code: int, text: int, length: int) -> Any:
    """Compare the arriving value with that of an entry; or a status."""
    held0, held1 = ld64(found + FOUND_VALUE), found_second(found, type_code)
    return compare_arrival(ctx, type_code, v0, v1, text, length, held0, held1)
