"""Strings held by count in two steps: what may ask for something first, the deed that cannot fail after it.

A family changes its cell or its map and the counts of strings together. So that a kernel can be called again
after a status, every item is first made resident and its image of the old epoch kept; after that counting
is a store to memory, also when changes to a map came in between.
"""

from typing import Any

import numpy as np

from railgun.state.paged.access import mark_dirty, open_page, tick
from railgun.state.paged.layout import BODY
from railgun.state.paged.outbox import outbox_full
from railgun.state.paged.strings import str_ready, string_id_hi
from railgun.state.status import DRAIN
from reservoir.native.jit import jit, ldi64, sti64


@jit
def signed(word: Any) -> Any:
    """A word as the int64 of the same bits, which the kernels of pages take."""
    return np.int64(word)


@jit
def prepare_string(ctx: int, v0: Any, v1: Any) -> Any:
    """Get a held string ready for `count_string`: 0, or FAULT, or DRAIN."""
    if outbox_full(ctx):
        return DRAIN
    tick(ctx)
    page = open_page(ctx, string_id_hi(signed(v0)), signed(v1))
    if page < 0:
        return page
    mark_dirty(ctx, page)
    return np.int64(0)


@jit
def prepare_new_string(ctx: int, v0: Any, v1: Any, text: int, length: int) -> Any:
    """Get a string that may be new, of these bytes, ready for `count_string`: 0, or a status."""
    status = str_ready(ctx, signed(v0), signed(v1), text, length)
    if status < 0:
        return status
    return prepare_string(ctx, v0, v1)


@jit
def count_string(ctx: int, v0: Any, v1: Any, change: int) -> None:
    """One holder more (1) or less (−1) of a string that is ready."""
    page = open_page(ctx, string_id_hi(signed(v0)), signed(v1))
    sti64(page + BODY, ldi64(page + BODY) + change)
