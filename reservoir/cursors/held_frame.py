"""A frame, a decoded chunk as kernels read it: column descriptors with addresses of memory that does not move.

`FrameCache` holds them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reservoir.columns import ColumnKind, HotColumn
from reservoir.executor import Job
from reservoir.frames import (
    COLUMN_CODES,
    COLUMN_COUNT,
    COLUMN_HEAP,
    COLUMN_KIND,
    COLUMN_NULLS,
    COLUMN_PAIRS,
    COLUMN_ROW_CACHE,
    COLUMN_WORDS,
    COLUMN_WORDS_AT,
)
from reservoir.native.jit import address
from reservoir.segments.chunk import HotRows

# Descriptors have room for this share of more columns, so that most new columns do not change existing frames.
_ROOM_SHARE = 1 / 4


@dataclass(frozen=True, slots=True)
class HeldFrame:
    """A decoded chunk that is ready for the frame table: its COLUMN_ descriptors, and the owners of its memory.

    rows: the decoded rows, which own the memory of the columns.
    hot: the hot columns, in whose order the descriptors are. Behind them there is room for some new columns.
    columns: the hot columns that its rows have.
    descriptors: int64[...], the COLUMN_ words of each hot column.
    caches: for each entity column, the memory in which the interpreter notes the addresses of entities' rows.
    size_bytes: all memory that it holds.
    """

    rows: HotRows
    hot: tuple[HotColumn, ...]
    columns: frozenset[HotColumn]
    descriptors: NDArray[np.int64]
    caches: tuple[NDArray[np.int64], ...]
    size_bytes: int

    def read(self) -> HotRows:
        """Return its rows."""
        return self.rows

    def has(self, columns: Sequence[HotColumn]) -> bool:
        """Whether all these columns were decoded."""
        return self.columns.issuperset(columns)

    def shows(self, hot: tuple[HotColumn, ...]) -> bool:
        """Whether the descriptors are in the order of these hot columns. They also are if new columns, which its rows
        lack, came behind the previous ones.
        """
        if self.hot is hot:
            return True
        known = len(self.hot)
        is_longer = len(hot) * COLUMN_WORDS <= len(self.descriptors) and hot[:known] == self.hot
        return is_longer and self.columns.isdisjoint(hot[known:])


# A chunk that is being decoded in the background.
Ahead: TypeAlias = Job[HeldFrame]


def held_frame(rows: HotRows, hot: tuple[HotColumn, ...]) -> HeldFrame:
    """Make the descriptors of decoded rows, one for each hot column. It takes long, so it is done in the background.

    Columns that are not hot any more are left out.
    """
    words = [0] * (COLUMN_WORDS * (len(hot) + int(_ROOM_SHARE * len(hot)) + 1))
    caches = []
    places = {column: place for place, column in enumerate(hot)}
    columns = [stored.column for stored in rows.columns]
    for stored, place in zip(rows.columns, map(places.get, columns)):
        if place is None:
            continue
        base = COLUMN_WORDS * place
        words[base + COLUMN_KIND] = int(stored.column.kind)
        words[base + COLUMN_WORDS_AT] = stored.words_at
        words[base + COLUMN_NULLS] = stored.nulls_at
        words[base + COLUMN_HEAP] = stored.heap_at
        if stored.column.kind is ColumnKind.ENTITY:
            cache = np.zeros((stored.count, 2), np.int64)
            words[base + COLUMN_CODES], words[base + COLUMN_PAIRS] = stored.codes_at, stored.pairs_at
            words[base + COLUMN_ROW_CACHE], words[base + COLUMN_COUNT] = address(cache), stored.count
            caches.append(cache)
    descriptors = np.array(words, np.int64)
    size = rows.size_bytes + descriptors.nbytes + sum(cache.nbytes for cache in caches)
    return HeldFrame(rows, hot, frozenset(columns), descriptors, tuple(caches), size)
