"""Kernels that delete entries of a paged B+tree, for `ordered_map.py`. Empty pages are freed, sparse ones are merged.

A root with one child gives way to the child. A page is sparse once it is a quarter full. From then on, after every
further sixteenth of its capacity that it loses, it is checked for a merge: it merges with a neighbour under the same
parent if both fill at most three quarters of one page.
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import drop_page, mark_dirty, move_page, tick
from railgun.state.paged.blocks import blocks_there, need, need_nothing
from railgun.state.paged.layout import (
    BODY,
    EMPTY_SLABS,
    FREE_BLOCKS,
    HEAD_WORDS,
    LO,
    PLAN,
    block_words,
    class_for,
    class_of,
    count_of,
    set_count,
)
from railgun.state.paged.ordered_map_insert import entries_max, fits_block, size_of_entry
from railgun.state.paged.ordered_map_search import (
    CHILD_BYTES,
    descend,
    open_child,
    path_entry,
    path_index,
    path_page,
    same,
    set_path,
)
from railgun.state.paged.outbox import outbox_full
from railgun.state.status import DRAIN, ROOM
from reservoir.native.jit import copy_bytes, jit, ld64, ldi64, move_bytes, st64, sti64


@jit
def _joins_at(ctx: int, level: Any, left: int, index: Any) -> Any:
    """The page at `index` of the parent, if it can take `left` more entries; 0 if not; or FAULT, BROKEN."""
    page, parent = path_page(ctx, level), path_page(ctx, level + 1)
    if index < 0 or index >= count_of(parent):
        return np.int64(0)
    other = open_child(ctx, parent, index)
    if other < 0:
        return other
    size, together = size_of_entry(page), left + count_of(other)
    if 4 * together > 3 * entries_max(ctx, size):
        return np.int64(0)
    if not fits_block(other if index < path_index(ctx, level + 1) else page, together, size):
        need(ctx, class_for((together * size) >> 3), 0)
    return other


@jit
def _partner(ctx: int, level: Any, left: int) -> Any:
    """The neighbour with which a page of the path merges once it has `left` entries; 0 if none; or FAULT, BROKEN."""
    capacity = entries_max(ctx, size_of_entry(path_page(ctx, level)))
    if 4 * left > capacity or left % max(1, capacity >> 4) != 0:
        return np.int64(0)
    index = path_index(ctx, level + 1)
    other = _joins_at(ctx, level, left, index - 1)
    return other if other != 0 else _joins_at(ctx, level, left, index + 1)


@jit
def _plan(ctx: int, top: Any) -> Any:
    """Find, before anything changes, which pages of the path will merge: 0, or FAULT, ROOM or BROKEN."""
    need_nothing(ctx)
    level = np.int64(0)
    while level < top:
        left = count_of(path_page(ctx, level)) - 1
        other = _partner(ctx, level, left) if left else np.int64(0)
        if other < 0:
            return other
        sti64(ctx + PLAN + 8 * level, other)
        if left and other == 0:
            break
        level += 1
    return np.int64(0) if blocks_there(ctx) else ROOM


@jit
def _cut_entry(page: int, at: int) -> None:
    n, size = count_of(page), size_of_entry(page)
    entry = page + BODY + at * size
    if at < n - 1:
        move_bytes(entry, entry + size, (n - 1 - at) * size)
    set_count(page, n - 1)


@jit
def _join(ctx: int, level: Any, other: int) -> None:
    """Merge the path's page at a level with its neighbour. The path then leads to the parent's entry to be deleted."""
    page, parent, index = path_page(ctx, level), path_page(ctx, level + 1), path_index(ctx, level + 1)
    at_right = index == 0 or ldi64(parent + BODY + CHILD_BYTES * (index - 1) + 16) != ldi64(other + LO)
    left, right = (page, other) if at_right else (other, page)
    lost = index + 1 if at_right else index
    size, kept, moved = size_of_entry(left), count_of(left), count_of(right)
    mark_dirty(ctx, left)
    if not fits_block(left, kept + moved, size):
        left = move_page(ctx, left, class_for(((kept + moved) * size) >> 3))
    target = left + BODY + kept * size
    copy_bytes(target, right + BODY, moved * size)
    if level:
        separator = parent + BODY + CHILD_BYTES * lost
        st64(target, ld64(separator))
        st64(target + 8, ld64(separator + 8))
    set_count(left, kept + moved)
    drop_page(ctx, right)
    set_path(ctx, level, left, 0)
    set_path(ctx, level + 1, parent, lost)


@jit
def _shrink(ctx: int, page: int) -> None:
    """Move a page that uses a quarter of its block into a smaller block, if one is free. Its image stays the same."""
    words = (count_of(page) * size_of_entry(page)) >> 3
    if class_of(page) == 0 or 4 * (words + HEAD_WORDS) > block_words(page):
        return
    size_class = class_for(2 * words)
    if ldi64(ctx + FREE_BLOCKS + 8 * size_class) > 0 or ldi64(ctx + EMPTY_SLABS) > 0:
        move_page(ctx, page, size_class)


@jit
def _settle_root(ctx: int, root: int, top: Any) -> None:
    """As long as the root has only one child, make that child the root."""
    level = top
    page = path_page(ctx, level)
    while level > 0 and count_of(page) == 1:
        child = ldi64(page + BODY + 16)
        sti64(root, child)
        drop_page(ctx, page)
        level -= 1
        page = path_page(ctx, level)
        if page == 0 or ldi64(page + LO) != child:
            return
    _shrink(ctx, page)


@jit
def remove_at_path(ctx: int, root: int, top: Any) -> Any:
    """Remove the entry that the path leads to: 0, or FAULT, ROOM or BROKEN."""
    planned = _plan(ctx, top)
    if planned < 0:
        return planned
    sti64(root + 8, ldi64(root + 8) - 1)
    level = np.int64(0)
    while True:
        page, at = path_page(ctx, level), path_index(ctx, level)
        if count_of(page) == 1:
            drop_page(ctx, page)
            set_path(ctx, level, 0, 0)
            if level == top:
                sti64(root, 0)
                return np.int64(0)
            level += 1
            continue
        mark_dirty(ctx, page)
        _cut_entry(page, at)
        if level == top:
            _settle_root(ctx, root, top)
            return np.int64(0)
        other = ldi64(ctx + PLAN + 8 * level)
        if other == 0:
            _shrink(ctx, page)
            return np.int64(0)
        _join(ctx, level, other)
        level += 1


@jit
def om_delete(ctx: int, root: int, k0: Any, k1: Any) -> Any:
    """Delete the entry with this key: 1, or 0 if there is none."""
    number = ldi64(root)
    if number == 0:
        return np.int64(0)
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    key0, key1 = np.uint64(k0), np.uint64(k1)
    top = descend(ctx, number, key0, key1)
    if top < 0:
        return top
    if path_index(ctx, 0) == count_of(path_page(ctx, 0)) or not same(path_entry(ctx), key0, key1):
        return np.int64(0)
    removed = remove_at_path(ctx, root, top)
    return removed if removed < 0 else np.int64(1)
