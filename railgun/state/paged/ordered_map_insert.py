"""Kernels that insert entries into a paged B+tree, for `ordered_map.py`.

Pages grow from 8 words to the largest class, then split. A page splits in the middle, unless the new entry belongs at
its right end. Then it stays full, and the new page begins with the new entry alone, so that ascending keys leave full
pages behind.
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import make_page, mark_dirty, move_page, tick
from railgun.state.paged.blocks import blocks_there, need, need_nothing
from railgun.state.paged.layout import (
    BODY,
    BROKEN,
    DEPTH_MAX,
    HEAD_BYTES,
    HEAD_WORDS,
    LO,
    SMALLEST_BLOCK_WORDS,
    TREE,
    TREE_CLASS,
    block_words,
    class_for,
    count_of,
    level_of,
    make_state,
    set_count,
    state_of,
)
from railgun.state.paged.ordered_map_search import (
    CHILD_BYTES,
    CHILD_WORDS,
    descend,
    entry_bytes,
    path_index,
    path_page,
    same,
)
from railgun.state.paged.outbox import outbox_full
from railgun.state.status import DRAIN, ROOM
from reservoir.native.jit import copy_bytes, jit, ld64, ldi64, move_bytes, st64, sti64


@jit
def size_of_entry(page: int) -> Any:
    """Bytes of an entry of a leaf or of an internal page."""
    return CHILD_BYTES if level_of(page) else entry_bytes(page)


@jit
def entries_max(ctx: int, size: int) -> Any:
    """Entries of so many bytes in a page of the largest class for trees."""
    return (8 * ((SMALLEST_BLOCK_WORDS << ldi64(ctx + TREE_CLASS)) - HEAD_WORDS)) // size


@jit
def fits_block(page: int, entries: int, size: int) -> Any:
    """Whether the present block of a page holds so many entries."""
    return HEAD_BYTES + entries * size <= 8 * block_words(page)


@jit
def _write_entry(page: int, at: int, size: int, k0: Any, k1: Any, v0: Any, v1: Any) -> None:
    """Insert an entry into a page whose block has room for it."""
    n = count_of(page)
    entry = page + BODY + at * size
    if at < n:
        move_bytes(entry + size, entry, (n - at) * size)
    st64(entry, k0)
    st64(entry + 8, k1)
    st64(entry + 16, v0)
    if size > 24:
        st64(entry + 24, v1)
    set_count(page, n + 1)


@jit
def _entries_kept(n: int, at: int) -> Any:
    """How many of its n entries a full page keeps when it splits for an entry at index `at`."""
    return n if at == n else (n + 1) >> 1


@jit
def _blocks_for_path(ctx: int, top: Any) -> Any:
    """Whether there are blocks for all pages that an insertion at the path makes grow or split."""
    need_nothing(ctx)
    for level in range(top + 1):
        page = path_page(ctx, level)
        at = path_index(ctx, level) + (1 if level else 0)
        n, size = count_of(page), size_of_entry(page)
        if n < entries_max(ctx, size):
            if not fits_block(page, n + 1, size):
                need(ctx, class_for(((n + 1) * size) >> 3), 0)
            return blocks_there(ctx)
        moved = n - _entries_kept(n, at) + (1 if at > _entries_kept(n, at) or at == n else 0)
        need(ctx, class_for((moved * size) >> 3), 1)
    need(ctx, class_for(2 * CHILD_WORDS), 1)
    return blocks_there(ctx)


@jit
def _split(ctx: int, page: int, at: int, size: int, k0: Any, k1: Any, v0: Any, v1: Any) -> Any:
    """Insert an entry into a full page by splitting it. Returns the address of the new page to its right."""
    n = count_of(page)
    kept = _entries_kept(n, at)
    to_left = at < n and at <= kept
    moved = n - kept
    size_class = class_for(((moved + (0 if to_left else 1)) * size) >> 3)
    right = make_page(ctx, size_class, (state_of(page) & 0xFFF0) | (moved << 16))
    copy_bytes(right + BODY, page + BODY + kept * size, moved * size)
    set_count(page, kept)
    if to_left:
        _write_entry(page, at, size, k0, k1, v0, v1)
    else:
        _write_entry(right, at - kept, size, k0, k1, v0, v1)
    return right


@jit
def _new_root(ctx: int, root: int, top: Any, k0: Any, k1: Any, right: int) -> None:
    page = make_page(ctx, class_for(2 * CHILD_WORDS), make_state(0, TREE, 1, top + 1, 0))
    _write_entry(page, 0, CHILD_BYTES, np.uint64(0), np.uint64(0), ld64(root), np.uint64(0))
    _write_entry(page, 1, CHILD_BYTES, k0, k1, np.uint64(right), np.uint64(0))
    sti64(root, ldi64(page + LO))


@jit
def add_at_path(ctx: int, root: int, top: Any, k0: Any, k1: Any, v0: Any, v1: Any) -> Any:
    """Insert an entry with a new key at the place to which the path leads: 1, or ROOM."""
    page, at = path_page(ctx, 0), path_index(ctx, 0)
    size, n = entry_bytes(page), count_of(page)
    if not fits_block(page, n + 1, size) or n >= entries_max(ctx, size):
        if top >= DEPTH_MAX:
            return BROKEN
        if not _blocks_for_path(ctx, top):
            return ROOM
    level = np.int64(0)
    while True:
        mark_dirty(ctx, page)
        size, n = size_of_entry(page), count_of(page)
        if n < entries_max(ctx, size):
            if not fits_block(page, n + 1, size):
                page = move_page(ctx, page, class_for(((n + 1) * size) >> 3))
            _write_entry(page, at, size, k0, k1, v0, v1)
            break
        right = _split(ctx, page, at, size, k0, k1, v0, v1)
        k0, k1, v0 = ld64(right + BODY), ld64(right + BODY + 8), ld64(right + LO)
        if level == top:
            _new_root(ctx, root, top, k0, k1, ldi64(right + LO))
            break
        level += 1
        page, at = path_page(ctx, level), path_index(ctx, level) + 1
    sti64(root + 8, ldi64(root + 8) + 1)
    return np.int64(1)


@jit
def plant(ctx: int, root: int, value_words: int, k0: Any, k1: Any, v0: Any, v1: Any) -> Any:
    """Insert the first entry of an empty map: 1, or ROOM."""
    size_class = class_for(2 + value_words)
    need_nothing(ctx)
    need(ctx, size_class, 1)
    if not blocks_there(ctx):
        return ROOM
    page = make_page(ctx, size_class, make_state(0, TREE, value_words, 0, 0))
    _write_entry(page, 0, entry_bytes(page), k0, k1, v0, v1)
    sti64(root, ldi64(page + LO))
    sti64(root + 8, 1)
    return np.int64(1)


@jit
def om_insert(ctx: int, root: int, value_words: int, k0: Any, k1: Any, v0: Any, v1: Any) -> Any:
    """Insert an entry, or replace the value of one with this key: 1 if it is new, 0 if it was there."""
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    key0, key1, value0, value1 = np.uint64(k0), np.uint64(k1), np.uint64(v0), np.uint64(v1)
    number = ldi64(root)
    if number == 0:
        return plant(ctx, root, value_words, key0, key1, value0, value1)
    top = descend(ctx, number, key0, key1)
    if top < 0:
        return top
    page, at = path_page(ctx, 0), path_index(ctx, 0)
    entry = page + BODY + at * entry_bytes(page)
    if at == count_of(page) or not same(entry, key0, key1):
        return add_at_path(ctx, root, top, key0, key1, value0, value1)
    mark_dirty(ctx, page)
    st64(entry + 16, value0)
    if value_words > 1:
        st64(entry + 24, value1)
    return np.int64(0)
