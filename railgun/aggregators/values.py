"""Values in cells: two words and a type. The strings of string values have reference counts.

A value is (v0, v1): the word and 0, or the two halves of a string's hash. The first half has its top bit set, so that
v0 is never 0 for a string.

A string is referenced or released in two steps: `prepare_…`, which may return a negative status of the page pool, and
then the change, which cannot fail. `prepare_…` makes the string's item resident and keeps its image of the old epoch;
the change is a store to memory. A kernel prepares everything before it changes its cell or its map and the counts of
strings. So it can be called again after a status.
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
    """The int64 with the bits of a word, as the kernels of pages take it."""
    return np.int64(word)


@jit
def prepare_string(ctx: int, v0: Any, v1: Any) -> Any:
    """Prepare a referenced string for `count_string`: 0, FAULT or DRAIN."""
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
    """Prepare a string of these bytes, which may be new, for `count_string`: 0 or a status."""
    status = str_ready(ctx, signed(v0), signed(v1), text, length)
    if status < 0:
        return status
    return prepare_string(ctx, v0, v1)


@jit
def count_string(ctx: int, v0: Any, v1: Any, change: int) -> None:
    """Add to the reference count of a prepared string. change: 1 or −1."""
    page = open_page(ctx, string_id_hi(signed(v0)), signed(v1))
    sti64(page + BODY, ldi64(page + BODY) + change)


VALUE_WORDS = 2

# How an arriving value compares with one in the cell.
LESS = 0
EQUAL = 1
GREATER = 2


@jit
def compare_arrival(
    ctx: int, type_code: int, v0: Any, v1: Any, text: int, length: int, held0: Any, held1: Any
) -> Any:
    """LESS, EQUAL or GREATER, as an arriving value compares with one in the cell; or a status of the pool.

    text, length: the address and number of the bytes of an arriving string.
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
    """Compare two different strings by their UTF-8 bytes: LESS or GREATER; or a status of the pool."""
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
    """Prepare `keep` of an arriving value; 0 or a status of the pool."""
    if type_code == TYPE_STRING:
        return prepare_new_string(ctx, v0, v1, text, length)
    return np.int64(0)


@jit
def prepare_drop(ctx: int, type_code: int, v0: Any, v1: Any) -> Any:
    """Prepare `drop` of a value in the cell; 0 or a status of the pool."""
    if type_code == TYPE_STRING:
        return prepare_string(ctx, v0, v1)
    return np.int64(0)


@jit
def keep(ctx: int, type_code: int, v0: Any, v1: Any) -> None:
    """Reference the string of a value that is stored now. It must have been prepared; then this cannot fail."""
    if type_code == TYPE_STRING:
        count_string(ctx, v0, v1, 1)


@jit
def drop(ctx: int, type_code: int, v0: Any, v1: Any) -> None:
    """Release the string of a value that is no longer stored. It must have been prepared; then this cannot fail."""
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
