"""The index of chunks: the times that each chunk covers, and where it lies on disk. Cursors find their chunks by it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.native.jit import address


class Span(NamedTuple):
    """The extent of a chunk: its rows, its first and last (time, seq), and the least and greatest seq in it."""

    rows: int
    first_time: int
    first_seq: int
    last_time: int
    last_seq: int
    least_seq: int
    greatest_seq: int


class Place(NamedTuple):
    """The place of a chunk's frame: segment number, byte offset, bytes, and bytes to the end of its hot section."""

    segment: int
    offset: int
    size_bytes: int
    hot_bytes: int


UNWRITTEN = Place(-1, -1, 0, 0)


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """An entry of the index. `number` counts chunks from the reservoir's beginning."""

    number: int
    span: Span
    place: Place


class ChunkIndex:
    """Chunks by number, from the oldest that is kept. Owns the INDEX_ words of the context."""

    def __init__(self, context: NDArray[np.int64]) -> None:
        self._context = context
        self._rows = np.zeros((16, len(Span._fields) + len(Place._fields)), np.int64)
        self._columns = {
            name: np.zeros(16, np.int64) for name in ("rows", "first_time", "last_time", "last_seq")
        }
        self.base = 0
        self.next = 0
        self._publish()

    def begin_at(self, number: int) -> None:
        """Set the number of the oldest chunk. To be called while the index is empty."""
        assert self.base == self.next
        self.base = self.next = number
        self._publish()

    def add(self, span: Span, place: Place = UNWRITTEN) -> int:
        """Add the next chunk. Returns its number."""
        k = self.next - self.base
        if k == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate([column, np.zeros_like(column)])
        self._rows[k] = (*span, *place)
        for name, column in self._columns.items():
            column[k] = getattr(span, name)
        self.next += 1
        self._publish()
        return self.next - 1

    def written(self, number: int, place: Place) -> None:
        """Set the place of a chunk that has been written to disk."""
        self._rows[number - self.base, len(Span._fields) :] = place

    def __getitem__(self, number: int) -> IndexedChunk:
        assert self.base <= number < self.next
        row = self._rows[number - self.base].tolist()
        return IndexedChunk(number, Span(*row[: len(Span._fields)]), Place(*row[len(Span._fields) :]))

    def each(self, name: str) -> NDArray[np.int64]:
        """One field of the spans of all chunks, int64[chunks], the oldest first. The array must not be changed."""
        return self._rows[: self.next - self.base, Span._fields.index(name)]

    def first_after(self, time_ms: int) -> int:
        """Number of the first chunk with a row later than time_ms; `next` if there is none."""
        last = self._columns["last_time"][: self.next - self.base]
        return self.base + int(np.searchsorted(last, time_ms, side="right"))

    def first_behind(self, segment: int) -> int:
        """Number of the first chunk that lies in a later segment than this one, or is not written yet."""
        segments = self._rows[: self.next - self.base, len(Span._fields)]
        behind = np.flatnonzero((segments > segment) | (segments < 0))
        return self.base + int(behind[0]) if len(behind) else self.next

    def drop_before(self, number: int) -> None:
        """Forget the chunks before this one."""
        k = number - self.base
        self._rows = np.concatenate([self._rows[k:], np.zeros_like(self._rows[:k])])
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate([column[k:], np.zeros_like(column[:k])])
        self.base = number
        self._publish()

    def _publish(self) -> None:
        context = self._context
        context[at.INDEX_BASE], context[at.INDEX_NEXT] = self.base, self.next
        context[at.INDEX_ROWS] = address(self._columns["rows"])
        context[at.INDEX_FIRST_TIME] = address(self._columns["first_time"])
        context[at.INDEX_LAST_TIME] = address(self._columns["last_time"])
        context[at.INDEX_LAST_SEQ] = address(self._columns["last_seq"])
