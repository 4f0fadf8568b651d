"""The words of the edge table, and kernels that find rows and chunks for edges and fills.

An edge is one end of windows, a fixed distance behind the clock. A fill reads stored rows for newer metrics. The
kernels in `advance.py` and `fill_rows.py` call these.
"""

from typing import Any

import numpy as np

from reservoir.frames import FRAME_ROWS, FRAME_STAMP, FRAME_TIME, frame_at
from reservoir.layout import (
    EDGE_COUNT,
    FRAME_KEYS,
    FRAMES,
    FRAMES_STAMP,
    FRAMES_USED,
    INDEX_BASE,
    INDEX_NEXT,
    INT64_MIN,
    OPEN_ORDER,
    OPEN_ORDER_END,
    OPEN_ORDER_START,
    OPEN_TIME,
    WANTS,
    WANTS_CAPACITY,
    WANTS_COUNT,
)
from reservoir.native.jit import jit, ld32, ldi64, sti64
from reservoir.open_region.ring import upper_bound

# Two chunks are read ahead if there are at most this many edges, so that a slow read delays none of them.
_EDGES_TWO_AHEAD = 8

EDGE_WORDS = 8
(
    EDGE_DELTA,  # ms behind the clock
    EDGE_SET,  # column set with which its frames are decoded
    EDGE_CHUNK,  # number of the chunk in which it stands; INDEX_NEXT is the open region
    EDGE_ROW,  # first row of that chunk not passed; open region: place behind OPEN_ORDER_START
    EDGE_BOUND,  # every row with time <= bound is passed; INT64_MIN: none
    EDGE_FRAME,  # frame in which its chunk was last seen
    EDGE_NEXT_TIME,  # no row that it has not passed is earlier than this; INT64_MIN: not known
    EDGE_LIVE,
) = range(8)


@jit
def word(ctx: int, index: int) -> Any:
    """A word of the context."""
    return ldi64(ctx + index * 8)


@jit
def index_word(ctx: int, array: int, chunk: int) -> Any:
    """An entry of an index array for a chunk number."""
    return ldi64(word(ctx, array) + (chunk - word(ctx, INDEX_BASE)) * 8)


@jit
def bound_of(clock: int, delta: int) -> Any:
    """clock - delta, held at INT64_MIN; delta >= 0."""
    if clock < INT64_MIN + delta:
        return INT64_MIN
    return clock - delta


@jit
def find_frame(ctx: int, column_set: int, chunk: int, guess: int) -> Any:
    """Frame that holds a chunk for a column set, or 0. guess: the frame to look at first."""
    key, keys, used = chunk * 256 + column_set, word(ctx, FRAME_KEYS), word(ctx, FRAMES_USED)
    if guess < used and ldi64(keys + guess * 8) == key:
        return guess
    found = 0
    for frame in range(used):
        found = frame if ldi64(keys + frame * 8) == key else found
    return found


@jit
def use_frame(ctx: int, frame: int) -> None:
    """Mark a frame as used, so that it stays in memory until the next advance."""
    sti64(frame_at(word(ctx, FRAMES), frame) + FRAME_STAMP * 8, word(ctx, FRAMES_STAMP))


@jit
def want(ctx: int, column_set: int, chunk: int) -> None:
    """List a sealed chunk in WANTS, to be decoded ahead of its use, unless it is in memory."""
    count = word(ctx, WANTS_COUNT)
    if chunk >= word(ctx, INDEX_NEXT) or count >= word(ctx, WANTS_CAPACITY):
        return
    if find_frame(ctx, column_set, chunk, 0) == 0:
        sti64(word(ctx, WANTS) + count * 16, column_set)
        sti64(word(ctx, WANTS) + count * 16 + 8, chunk)
        sti64(ctx + WANTS_COUNT * 8, count + 1)


@jit
def want_behind(ctx: int, column_set: int, chunk: int) -> None:
    """Ask for the chunks that a cursor reaches after this one: two, or one if many cursors share the memory."""
    want(ctx, column_set, chunk + 1)
    if word(ctx, EDGE_COUNT) <= _EDGES_TWO_AHEAD:
        want(ctx, column_set, chunk + 2)


@jit
def open_rows(ctx: int) -> Any:
    """Rows in the open region."""
    return word(ctx, OPEN_ORDER_END) - word(ctx, OPEN_ORDER_START)


@jit
def open_slot(ctx: int, row: int) -> Any:
    """Arrival slot of the row at a place of the open order."""
    return np.int64(ld32(word(ctx, OPEN_ORDER) + (word(ctx, OPEN_ORDER_START) + row) * 4))


@jit
def open_passed(ctx: int, time: int) -> Any:
    """How many open rows have a time <= time."""
    start = word(ctx, OPEN_ORDER_START)
    order, end = word(ctx, OPEN_ORDER), word(ctx, OPEN_ORDER_END)
    return upper_bound(word(ctx, OPEN_TIME), order, start, end, time) - start


@jit
def frame_passed(ctx: int, frame: int, time: int) -> Any:
    """How many rows of a sealed frame have a time <= time."""
    head = frame_at(word(ctx, FRAMES), frame)
    times, low, high = ldi64(head + FRAME_TIME * 8), 0, ldi64(head + FRAME_ROWS * 8)
    while low < high:
        middle = (low + high) >> 1
        if ldi64(times + middle * 8) <= time:
            low = middle + 1
        else:
            high = middle
    return low
