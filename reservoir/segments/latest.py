"""Finds the sealed rows with the greatest log positions, for `Reservoir`.

Rows are sealed in the order of time, so these may lie in chunks far apart.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.segments.index import ChunkIndex
from reservoir.segments.source import ChunkSource


def time_before(index: ChunkIndex, rows: int) -> int:
    """Return a time before the beginning of all chunks that have any of the `rows` last sealed rows, by log position;
    INT64_MIN if there are not as many rows.
    """
    least_seq = _least_seq(index, rows)
    if least_seq == at.INT64_MIN:
        return at.INT64_MIN
    first_times = index.each("first_time")[index.each("greatest_seq") >= least_seq]
    return max(at.INT64_MIN, int(first_times.min(initial=at.INT64_MAX)) - 1)


def ids(
    index: ChunkIndex, source: ChunkSource, rows: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
    """Iterate over (seq int64[m], ids uint64[m][2]) of sealed rows in the order of seq.

    These are the `rows` latest rows that are kept, and the others of their chunks. One chunk is read at a time, or as
    many as overlap by seq if events came far out of order.
    """
    least_seqs = index.each("least_seq")
    chunks = np.flatnonzero(index.each("greatest_seq") >= _least_seq(index, rows))
    chunks = chunks[np.argsort(least_seqs[chunks], kind="stable")]
    begins = least_seqs[chunks].tolist()
    seqs, found = np.zeros(0, np.int64), np.zeros((0, 2), np.uint64)
    for number, chunk in enumerate((index.base + chunks).tolist(), 1):
        seqs = np.concatenate((seqs, source.seqs(chunk)))
        found = np.concatenate((found, source.ids(chunk)))
        if np.any(seqs[1:] < seqs[:-1]):  # rare: events mostly come in the order of their times
            order = np.argsort(seqs, kind="stable")
            seqs, found = seqs[order], found[order]
        # Rows behind the beginning of a chunk still to come wait for that chunk.
        end = len(seqs)
        if number < len(chunks):
            end = int(np.searchsorted(seqs, begins[number]))
        yield seqs[:end], found[:end]
        seqs, found = seqs[end:], found[end:]


def _least_seq(index: ChunkIndex, rows: int) -> int:
    """Return a seq that at least `rows` rows in chunks have or exceed; INT64_MIN if there are too few rows."""
    if rows == 0:
        return at.INT64_MAX
    least_seqs = index.each("least_seq")
    newest_first = np.argsort(least_seqs)[::-1]
    enough = int(np.searchsorted(np.cumsum(index.each("rows")[newest_first]), rows))
    return int(least_seqs[newest_first[enough]]) if enough < len(newest_first) else at.INT64_MIN
