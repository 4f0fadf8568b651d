"""Dropped trees: forgotten at once, their pages freed later, one by one.

The graveyard is itself an ordered map, rooted in the context: its keys are the ids of pages still to be
freed, with all that is below them.  It is checkpointed like any other map (its root cell goes into the
task's meta), so that a crash loses no page.
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import drop_page, mark_dirty, open_page, tick
from railgun.state.paged.directory import find_page
from railgun.state.paged.layout import BODY, GRAVES, count_of, level_of, set_count
from railgun.state.paged.ordered_map_delete import om_delete
from railgun.state.paged.ordered_map_insert import om_insert
from railgun.state.paged.ordered_map_search import CHILD_BYTES, descend_edge, path_entry
from railgun.state.paged.outbox import outbox_full
from railgun.state.status import DRAIN, FAULT
from reservoir.native.jit import jit, ldi64, sti64


@jit
def bury_page(ctx: int, number: int) -> Any:
    """Hand a page, of a tree or raw, to the graveyard with all that is below it: 0, or ROOM, DRAIN, FAULT."""
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
    """Empty a map in no time, whatever its size: 0, or a status."""
    number = ldi64(root)
    if number:
        placed = bury_page(ctx, number)
        if placed < 0:
            return placed
        sti64(root, 0)
        sti64(root + 8, 0)
    return np.int64(0)


@jit
def bury_step(ctx: int) -> Any:
    """Free one page of the graveyard: 1, or 0 if it is empty, or a status."""
    number = ldi64(ctx + GRAVES)
    if number == 0:
        return np.int64(0)
    tick(ctx)
    top = descend_edge(ctx, number, False)
    if top < 0:
        return top
    buried = ldi64(path_entry(ctx))
    page = open_page(ctx, 0, buried)
    if page < 0:
        return FAULT
    while level_of(page) and count_of(page):
        # A child is in one place only, its parent or the graveyard, whenever this stops and begins anew.
        child = ldi64(page + BODY + CHILD_BYTES * (count_of(page) - 1) + 16)
        placed = om_insert(ctx, ctx + GRAVES, 1, child, 0, 0, 0)
        if placed < 0:
            return placed
        mark_dirty(ctx, page)
        set_count(page, count_of(page) - 1)
    removed = om_delete(ctx, ctx + GRAVES, buried, 0)
    if removed < 0:
        return removed
    drop_page(ctx, page)
    return np.int64(1)
