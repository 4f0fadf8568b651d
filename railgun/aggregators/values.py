"""Values in cells: two words and a type; the strings behind string values are held by count.

A value is (v0, v1): the word and 0, or the two halves of a string's hash, whose first has its top bit set,
so that v0 is never 0 for a string.

A string is kept or dropped in two steps: `prepare_…`, which may ask for something (a negative status of the page
pool), and then the change, which cannot fail. A family changes its cell or its map and the counts of strings
together: so a kernel can be called again after a status. First every item is made resident and its image of the old
epoch is kept; after that, counting is a store to memory.
"""

from typing import Any

import numpy as np

from railgun.aggregators.codes import TYPE_DOUBLE, TYPE_STRING
from railgun.state.paged.access import mark_dirty, open_page, tick
from railgun.state.paged.layout import BODY
from railgun.state.paged.outbox import outbox_full
from railgun.state.paged.strings import str_address, str_length, str_ready, string_id_hi
from railgun.state.status import DRAIN
from reservoir.native.jit import bits_f64, jit, ld8, ld64, ldi64, st64, sti64


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


u = np.uint64

VALUE_WORDS = 2

# How an arriving value compares with a held one.
LESS = 0
EQUAL = 1
GREATER = 2


@jit
def compare_arrival(
    ctx: int, type_code: int, v0: Any, v1: Any, text: int, length: int, held0: Any, held1: Any
) -> Any:
    """Whether an arriving value is LESS than a held one, EQUAL or GREATER; or a status of the pool.

    `text` and `length` give the bytes of an arriving string.
    """
    if v0 == held0 and v1 == held1:
        return np.int64(EQUAL)
    if type_code == TYPE_STRING:
        return _compare_string(ctx, text, length, held0, held1)
    if type_code == TYPE_DOUBLE:
        greater = bits_f64(v0) > bits_f64(held0)
    else:
        greater = np.int64(v0) > np.int64(held0)
    return np.int64(GREATER) if greater else np.int64(LESS)


@jit
def _compare_string(ctx: int, text: int, length: int, held0: Any, held1: Any) -> Any:
    """The same for two different strings, by their UTF-8 bytes."""
    held = str_address(ctx, signed(held0), signed(held1))
    if held < 0:
        return held
    held_length = str_length(ctx, signed(held0), signed(held1))
    common = min(length, held_length)
    at = 0
    while at + 8 <= common and ld64(text + at) == ld64(held + at):
        at += 8
    while at < common and ld8(text + at) == ld8(held + at):
        at += 1
    if at < common:
        greater = ld8(text + at) > ld8(held + at)
    else:
        greater = length > held_length
    return np.int64(GREATER) if greater else np.int64(LESS)


@jit
def prepare_keep(ctx: int, type_code: int, v0: Any, v1: Any, text: int, length: int) -> Any:
    """Get what `keep` of an arriving value will want; 0, or a status of the pool."""
    if type_code == TYPE_STRING:
        return prepare_new_string(ctx, v0, v1, text, length)
    return np.int64(0)


@jit
def prepare_drop(ctx: int, type_code: int, v0: Any, v1: Any) -> Any:
    """Get what `drop` of a held value will want; 0, or a status of the pool."""
    if type_code == TYPE_STRING:
        return prepare_string(ctx, v0, v1)
    return np.int64(0)


@jit
def keep(ctx: int, type_code: int, v0: Any, v1: Any) -> None:
    """Hold the string of a value that is stored from now on; prepared, so it cannot fail."""
    if type_code == TYPE_STRING:
        count_string(ctx, v0, v1, 1)


@jit
def drop(ctx: int, type_code: int, v0: Any, v1: Any) -> None:
    """Let go of the string of a value that is stored no more; prepared, so it cannot fail."""
    if type_code == TYPE_STRING:
        count_string(ctx, v0, v1, -1)


@jit
def store(where: int, v0: Any, v1: Any) -> None:
    """Write a value's two words."""
    st64(where, v0)
    st64(where + 8, v1)


@jit
def copy_value(out: int, where: int) -> None:
    """Write a value's two words to a result."""
    st64(out, ld64(where))
    st64(out + 8, ld64(where + 8))
