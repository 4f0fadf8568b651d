"""`min`, `max` and `first` of a sliding window.

`min` and `max` use a monotonic deque, which keeps values in the order of time. It is an ordered map on pages (trees.py)
with a copy of its first entry, so its root and its front are words of the cell.

A value *dominates* an older one if it is as small or smaller (for `max`: as great or greater). The deque holds the
window's values that no newer value dominates. So its values rise (for `max`: fall) from the oldest entry, the front, to
the newest, and the front is the result. A value that arrives out of order is inserted by its time. It is left out if
the next newer entry dominates it; if that one does not, no later entry does. It removes the older entries that it
dominates.

A value is inserted first, then the entries that it dominates are deleted, from the newest to the oldest, and the front
is set last. A call that returns a status (railgun/state/status.py) is repeated. It then finds its value already
inserted and continues: until the front is set, the old front still says correctly that the value comes after it.

`first` uses a queue of all values in the order of time. Its result is the front.
"""

from typing import Any

import numpy as np

from railgun.aggregators.entries import VALUE_OFFSET, is_after, write_entry
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
from railgun.state.paged.ordered_map import om_at_or_above, om_below, om_last
from reservoir.native.jit import jit, ld64, stack_words


@jit
def add_queue(
    ctx: int, root: int, time: int, seq: int, v0: Any, v1: Any, type_code: int, text: int, length: int
) -> Any:
    """Add a value to the queue of a `first`, in or out of order; return 0 or a status."""
    in_front = is_empty(root) or not is_after(time, seq, root + FRONT)
    status = insert_value(ctx, root, time, seq, v0, v1, type_code, text, length)
    if status == 0 and in_front:
        write_entry(root + FRONT, time, seq, v0, v1)
    return status


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
    """Add a value to the deque of a `min` or a `max` (`greatest`), in or out of order; return 0 or a status.

    time, seq: its place in the order of time. v0, v1, type_code: the words and the type of the value.
    text, length: the address and the number of bytes of a string.
    """
    front = root + FRONT
    if is_empty(root) or not is_after(time, seq, front):
        if not is_empty(root):
            held0, held1 = ld64(front + VALUE_OFFSET), ld64(front + VALUE_OFFSET + 8)
            order = compare_arrival(ctx, type_code, v0, v1, text, length, held0, held1)
            if order != (GREATER if greatest else LESS):
                return min(order, np.int64(0))
        status = insert_value(ctx, root, time, seq, v0, v1, type_code, text, length)
        if status == 0:
            write_entry(front, time, seq, v0, v1)
        return status
    found = stack_words(FOUND_WORDS)
    status = _put(ctx, root, greatest, time, seq, v0, v1, type_code, text, length, found)
    if status <= 0:
        return status
    k0, k1 = key_word(time), key_word(seq)
    while True:
        status = np.int64(om_below(ctx, root, k0, k1, found))
        if status < 0:
            return status
        if status == 0:
            write_entry(front, time, seq, v0, v1)
            return status
        order = _compare_found(ctx, found, v0, v1, type_code, text, length)
        if order < 0 or order == (LESS if greatest else GREATER):
            return min(order, np.int64(0))
        held0, held1 = ld64(found + FOUND_VALUE), found_second(found, type_code)
        status = delete_value(ctx, root, ld64(found), ld64(found + 8), held0, held1, type_code)
        if status < 0:
            return status


@jit
def _put(
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
    found: int,
) -> Any:
    """Insert a value that comes after the front: 1 if it is in the map then, 0 if it is dominated, or a status.

    found: the address of FOUND_WORDS words to work with.
    """
    k0, k1 = key_word(time), key_word(seq)
    status = np.int64(om_last(ctx, root, found))
    if status < 0:
        return status
    if ld64(found) < k0 or (ld64(found) == k0 and ld64(found + 8) < k1):
        status = insert_value(ctx, root, time, seq, v0, v1, type_code, text, length)
        return status if status < 0 else np.int64(1)
    status = np.int64(om_at_or_above(ctx, root, k0, k1, found))
    if status < 0:
        return status
    if ld64(found) == k0 and ld64(found + 8) == k1:
        return np.int64(1)
    order = _compare_found(ctx, found, v0, v1, type_code, text, length)
    if order != (GREATER if greatest else LESS):
        return min(order, np.int64(0))
    status = insert_value(ctx, root, time, seq, v0, v1, type_code, text, length)
    return status if status < 0 else np.int64(1)


@jit
def _compare_found(ctx: int, found: int, v0: Any, v1: Any, type_code: int, text: int, length: int) -> Any:
    """Compare the arriving value with that of the entry at `found`: LESS, EQUAL or GREATER; or a status."""
    held0, held1 = ld64(found + FOUND_VALUE), found_second(found, type_code)
    return compare_arrival(ctx, type_code, v0, v1, text, length, held0, held1)
