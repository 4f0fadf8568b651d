"""Kernels that search a paged B+tree: positions in a page, the path from the root to a leaf, neighbours.

The other kernels of ordered maps begin with these. An entry of a leaf is a key and its value: k0, k1, v0[, v1]. An
entry of an internal page is k0, k1, child; its key is the least one that may be below the child. The key of a page's
first entry counts as minus infinity. Keys are ordered by (k0, k1) as unsigned words. Pages are never empty. Leaves are
not linked. Instead, the context keeps the path to the present entry (`PATH`: for each level the page's address and the
index in it; level 0 is the leaf).
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import open_page
from railgun.state.paged.layout import BODY, BROKEN, PATH, count_of, level_of, state_of
from railgun.state.status import FAULT
from reservoir.native.jit import jit, ld64, ldi64, sti64

CHILD_WORDS = 3
CHILD_BYTES = 8 * CHILD_WORDS


@jit
def less(entry: int, k0: Any, k1: Any) -> Any:
    """Whether the key of an entry is less than (k0, k1)."""
    first = ld64(entry)
    return first < k0 or (first == k0 and ld64(entry + 8) < k1)


@jit
def same(entry: int, k0: Any, k1: Any) -> Any:
    """Whether the key of an entry is (k0, k1)."""
    return ld64(entry) == k0 and ld64(entry + 8) == k1


@jit
def entry_bytes(page: int) -> Any:
    """Bytes of an entry of a leaf."""
    return 16 + 8 * ((state_of(page) >> 6) & 3)


@jit
def leaf_position(page: int, size: int, k0: Any, k1: Any) -> Any:
    """Index of the first entry of a leaf that is not less than the key. The ends are tried first."""
    first = page + BODY
    high = count_of(page) - 1
    if less(first + high * size, k0, k1):
        return high + 1
    if not less(first, k0, k1):
        return np.int64(0)
    low = np.int64(0)
    while high - low > 1:
        middle = (low + high) >> 1
        if less(first + middle * size, k0, k1):
            low = middle
        else:
            high = middle
    return high


@jit
def child_position(page: int, k0: Any, k1: Any) -> Any:
    """Index of the child of an internal page under which the key belongs."""
    first = page + BODY
    low, high = np.int64(0), count_of(page)
    last = first + (high - 1) * CHILD_BYTES
    if less(last, k0, k1) or same(last, k0, k1):
        return high - 1
    high -= 1
    while high - low > 1:
        middle = (low + high) >> 1
        entry = first + middle * CHILD_BYTES
        if less(entry, k0, k1) or same(entry, k0, k1):
            low = middle
        else:
            high = middle
    return low


@jit
def path_page(ctx: int, level: Any) -> Any:
    """Address of the page of the path at a level."""
    return ldi64(ctx + PATH + 16 * level)


@jit
def path_index(ctx: int, level: Any) -> Any:
    """Index in the page of the path at a level."""
    return ldi64(ctx + PATH + 16 * level + 8)


@jit
def set_path(ctx: int, level: Any, page: int, index: Any) -> None:
    """Store the page and the index of the path at a level."""
    sti64(ctx + PATH + 16 * level, page)
    sti64(ctx + PATH + 16 * level + 8, index)


@jit
def open_child(ctx: int, page: int, index: Any) -> Any:
    """Address of a child of an internal page, or FAULT; BROKEN if it is not of the level below."""
    child = open_page(ctx, 0, ldi64(page + BODY + CHILD_BYTES * index + 16))
    if child > 0 and level_of(child) + 1 != level_of(page):
        return BROKEN
    return child


@jit
def descend(ctx: int, number: int, k0: Any, k1: Any) -> Any:
    """Set the path to the place of a key in its leaf. Returns the root's level, or FAULT or BROKEN."""
    page = open_page(ctx, 0, number)
    if page < 0:
        return FAULT
    top = level_of(page)
    level = top
    while level > 0:
        index = child_position(page, k0, k1)
        set_path(ctx, level, page, index)
        page = open_child(ctx, page, index)
        if page < 0:
            return page
        level -= 1
    set_path(ctx, 0, page, leaf_position(page, entry_bytes(page), k0, k1))
    return top


@jit
def descend_edge(ctx: int, number: int, last: bool) -> Any:
    """Set the path to the first or the last entry. Returns the root's level, or FAULT or BROKEN."""
    page = open_page(ctx, 0, number)
    if page < 0:
        return FAULT
    top = level_of(page)
    return _follow_edge(ctx, page, top, top, last)


@jit
def _follow_edge(ctx: int, page: int, level: Any, top: Any, last: bool) -> Any:
    while True:
        index = count_of(page) - 1 if last else np.int64(0)
        set_path(ctx, level, page, index)
        if level == 0:
            return top
        page = open_child(ctx, page, index)
        if page < 0:
            return page
        level -= 1


@jit
def step_leaf(ctx: int, top: Any, back: bool) -> Any:
    """Move the path to the first entry of the next leaf, or the last of the one before.

    1, or 0 if there is none; FAULT or BROKEN.
    """
    level = np.int64(1)
    while level <= top:
        page, index = path_page(ctx, level), path_index(ctx, level)
        index += -1 if back else 1
        if 0 <= index < count_of(page):
            set_path(ctx, level, page, index)
            page = open_child(ctx, page, index)
            if page < 0:
                return page
            found = _follow_edge(ctx, page, level - 1, top, back)
            return found if found < 0 else np.int64(1)
        level += 1
    return np.int64(0)


@jit
def path_entry(ctx: int) -> Any:
    """Address of the leaf entry that the path leads to."""
    page = path_page(ctx, 0)
    return page + BODY + path_index(ctx, 0) * entry_bytes(page)
