"""Kernels on ordered maps of any size. Each map is a B+tree of pages, reached from a root cell of two words.

Aggregators keep the values of a window in such maps (`railgun/aggregators/`). The root cell lies in an entity row: [id
of the root page or 0, number of entries]; a cell of zeros is an empty map. The caller must mark the row dirty before it
calls a kernel that changes the map. Keys are two words compared as unsigned (callers bias what is signed); values are 1
or 2 words (`value_words`, fixed per map).

All kernels return a number >= 0 or a status (`status.py`; BROKEN: a defect).  On a status nothing has
changed; after `PagePool.handle(status)` the same call must be made again.  `out` is the address of 4 words:
k0, k1, v0, v1 (v1 left alone in a map of 1 value word).

A dropped map is forgotten at once, and its pages are freed later, one by one. The ids of those pages are the keys of
one more ordered map, rooted in the context. It is checkpointed like any other (its root cell goes into the task's
meta), so that a crash loses no page.
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import drop_page, mark_dirty, open_page, tick
from railgun.state.paged.directory import find_page
from railgun.state.paged.layout import BODY, BROKEN, GRAVES, count_of, level_of, set_count
from railgun.state.paged.ordered_map_delete import om_delete, remove_at_path
from railgun.state.paged.ordered_map_insert import add_at_path, om_insert, plant
from railgun.state.paged.ordered_map_search import (
    CHILD_BYTES,
    descend,
    descend_edge,
    entry_bytes,
    path_entry,
    path_index,
    path_page,
    same,
    set_path,
    step_leaf,
)
from railgun.state.paged.outbox import outbox_full
from railgun.state.status import DRAIN, FAULT
from reservoir.native.jit import copy_bytes, jit, ld64, ldi64, st64, sti64


@jit
def defer_free(ctx: int, number: int) -> Any:
    """Defer the freeing of a page, of a tree or raw, and of all pages below it: 0, or ROOM, DRAIN, FAULT."""
    if outbox_full(ctx):
        return DRAIN
    page = find_page(ctx, 0, number)
    if page and level_of(page) == 0:
        drop_page(ctx, page)
        return np.int64(0)
    placed = om_insert(ctx, ctx + GRAVES, 1, number, 0, 0, 0)
    return placed if placed < 0 else np.int64(0)


@jit
def om_clear(ctx: int, root: int) -> Any:
    """Empty a map in constant time; its pages are freed later. Returns 0, or a status."""
    number = ldi64(root)
    if number:
        placed = defer_free(ctx, number)
        if placed < 0:
            return placed
        sti64(root, 0)
        sti64(root + 8, 0)
    return np.int64(0)


@jit
def free_deferred_page(ctx: int) -> Any:
    """Free one page of the map of deferred pages: 1, or 0 if it is empty, or a status."""
    number = ldi64(ctx + GRAVES)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend_edge(ctx, number, False)
    if top < 0:
        return top
    deferred = ldi64(path_entry(ctx))
    page = open_page(ctx, 0, deferred)
    if page < 0:
        return FAULT
    while level_of(page) and count_of(page):
        # If this stops and begins anew, each child is still in one place only: its parent or the map of deferred pages.
        child = ldi64(page + BODY + CHILD_BYTES * (count_of(page) - 1) + 16)
        placed = om_insert(ctx, ctx + GRAVES, 1, child, 0, 0, 0)
        if placed < 0:
            return placed
        mark_dirty(ctx, page)
        set_count(page, count_of(page) - 1)
    removed = om_delete(ctx, ctx + GRAVES, deferred, 0)
    if removed < 0:
        return removed
    drop_page(ctx, page)
    return np.int64(1)


__all__ = [
    "om_at_or_above",
    "om_below",
    "om_clear",
    "om_count",
    "om_delete",
    "om_first",
    "om_get",
    "om_insert",
    "om_last",
    "om_scan",
]


@jit
def _give(ctx: int, out: int) -> Any:
    """Copy the entry to which the path leads to `out`. Returns 1."""
    entry = path_entry(ctx)
    st64(out, ld64(entry))
    st64(out + 8, ld64(entry + 8))
    st64(out + 16, ld64(entry + 16))
    if entry_bytes(path_page(ctx, 0)) > 24:
        st64(out + 24, ld64(entry + 24))
    return np.int64(1)


@jit
def om_get(ctx: int, root: int, k0: Any, k1: Any, out: int) -> Any:
    """The entry with this key: 1 and `out`, or 0."""
    number = ldi64(root)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend(ctx, number, np.uint64(k0), np.uint64(k1))
    if top < 0:
        return top
    if path_index(ctx, 0) == count_of(path_page(ctx, 0)) or not same(
        path_entry(ctx), np.uint64(k0), np.uint64(k1)
    ):
        return np.int64(0)
    return _give(ctx, out)


@jit
def om_first(ctx: int, root: int, out: int) -> Any:
    """The entry with the least key: 1 and `out`, or 0."""
    number = ldi64(root)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend_edge(ctx, number, False)
    return top if top < 0 else _give(ctx, out)


@jit
def om_last(ctx: int, root: int, out: int) -> Any:
    """The entry with the greatest key: 1 and `out`, or 0."""
    number = ldi64(root)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend_edge(ctx, number, True)
    return top if top < 0 else _give(ctx, out)


@jit
def om_below(ctx: int, root: int, k0: Any, k1: Any, out: int) -> Any:
    """The entry with the greatest key less than this one: 1 and `out`, or 0."""
    number = ldi64(root)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend(ctx, number, np.uint64(k0), np.uint64(k1))
    if top < 0:
        return top
    at = path_index(ctx, 0)
    if at > 0:
        set_path(ctx, 0, path_page(ctx, 0), at - 1)
        return _give(ctx, out)
    found = step_leaf(ctx, top, True)
    return found if found <= 0 else _give(ctx, out)


@jit
def om_at_or_above(ctx: int, root: int, k0: Any, k1: Any, out: int) -> Any:
    """The entry with the least key not less than this one: 1 and `out`, or 0."""
    found = _seek(ctx, root, k0, k1)
    return found if found <= 0 else _give(ctx, out)


@jit
def om_scan(ctx: int, root: int, k0: Any, k1: Any, out: int, limit: int) -> Any:
    """Copy entries in order to `out`, beginning with the least key that is not less than this one.

    Copies entries of one leaf only, at most `limit`, of 2 + value_words words each. Returns how many; 0 at the end.
    """
    found = _seek(ctx, root, k0, k1)
    if found <= 0:
        return found
    page = path_page(ctx, 0)
    n = min(count_of(page) - path_index(ctx, 0), limit)
    copy_bytes(out, path_entry(ctx), n * entry_bytes(page))
    return n


@jit
def _seek(ctx: int, root: int, k0: Any, k1: Any) -> Any:
    """Set the path to the entry with the least key not less than this one. Returns 1; 0 if it has none; or a status."""
    number = ldi64(root)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend(ctx, number, np.uint64(k0), np.uint64(k1))
    if top < 0:
        return top
    if path_index(ctx, 0) < count_of(path_page(ctx, 0)):
        return np.int64(1)
    return step_leaf(ctx, top, False)


@jit
def om_count(ctx: int, root: int, k0: Any, k1: Any, delta: int) -> Any:
    """Add `delta` to the count of a key, in a map that is a counted multiset (1 value word).

    An entry whose count becomes 0 is deleted. Returns the new count, or BROKEN if it would be below 0.
    """
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    key0, key1 = np.uint64(k0), np.uint64(k1)
    number = ldi64(root)
    top = descend(ctx, number, key0, key1) if number else np.int64(0)
    if top < 0:
        return top
    if number and path_index(ctx, 0) < count_of(path_page(ctx, 0)) and same(path_entry(ctx), key0, key1):
        count = ldi64(path_entry(ctx) + 16) + delta
        if count > 0:
            mark_dirty(ctx, path_page(ctx, 0))
            sti64(path_entry(ctx) + 16, count)
        elif count == 0:
            return remove_at_path(ctx, root, top)
        return count if count > 0 else BROKEN
    if delta <= 0:
        return np.int64(0) if delta == 0 else BROKEN
    value, none = np.uint64(delta), np.uint64(0)
    if number:
        added = add_at_path(ctx, root, top, key0, key1, value, none)
    else:
        added = plant(ctx, root, 1, key0, key1, value, none)
    return np.int64(delta) if added > 0 else added
