"""Cursors over the stored events (rows) of a reservoir: edges, by which windows move, and fills, which read old events.

An *edge* is one end of windows. It stays `delta_ms` behind the task's clock, and lists each row that it passes: the
head of a window adds the row, its tail removes it. A *fill* gives stored rows in slices, for metrics that were added
later. Both write into one `Changelog`, which the interpreter reads. `Reservoir` has all of them, and its methods call
these. A row is named by its *frame* (a chunk as decoded, or the open region) and its number in the frame.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.cursors.advance import advance_edges, edges_sealed
from reservoir.cursors.edges import (
    EDGE_BOUND,
    EDGE_CHUNK,
    EDGE_DELTA,
    EDGE_FRAME,
    EDGE_LIVE,
    EDGE_NEXT_TIME,
    EDGE_ROW,
    EDGE_SET,
    EDGE_WORDS,
    frame_passed,
    open_passed,
)
from reservoir.cursors.fill_rows import FILL_CHUNK, FILL_SEQ, FILL_SET, FILL_TIME, FILL_WORDS, fill_rows
from reservoir.native.jit import address
from reservoir.segments.index import ChunkIndex

# How many chunks kernels can ask to be decoded ahead, in one advance or fill.
_WANTS = 1024


class FrameSource(Protocol):
    """Gives cursors the frames of sealed chunks. `cache.FrameCache` is one."""

    def load(self, column_set: int, chunk: int) -> int:
        """Return the frame of a chunk; decode it now if needed. Raises CorruptionError, StorageFailedError."""

    def prefetch(self, column_set: int, chunk: int) -> None:
        """Decode a chunk in the background, if it is not in memory and there is room."""

    def is_ready(self, column_set: int, chunk: int) -> bool:
        """Whether `load` would have nothing to decode. If not, start to decode the chunk in the background."""


class Changelog:
    """The list of rows that the last advance or fill gave. The interpreter takes its entries one by one.

    at: int32[limit], for each entry the record of the batch at which the row crosses.
    frame, row: int32[limit], for each entry the frame of the row, and its number there.
    start, end: int64[edges]; the entries of an edge are those from `start` to `end` - 1.
    """

    def __init__(self, context: NDArray[np.int64], limit: int) -> None:
        self.at, self.frame, self.row = (np.zeros(limit, np.int32) for _ in range(3))
        context[at.ENTRY_AT], context[at.ENTRY_FRAME] = address(self.at), address(self.frame)
        context[at.ENTRY_ROW] = address(self.row)
        self.start, self.end = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._words, self._wants = context.data, np.zeros((_WANTS, 2), np.int64)
        context[at.WANTS], context[at.WANTS_CAPACITY] = address(self._wants), _WANTS

    @property
    def limit(self) -> int:
        """How many entries there is room for."""
        return len(self.at)

    def hold_edges(self, context: NDArray[np.int64], edges: int) -> None:
        """Make room for that many edges."""
        self.start, self.end = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
        context[at.EDGE_START], context[at.EDGE_END] = address(self.start), address(self.end)

    def prefetch(self, source: FrameSource) -> None:
        """Have the chunks decoded in the background that the next advance or fill will need."""
        for column_set, chunk in self._wants[: self._words[at.WANTS_COUNT]].tolist():
            source.prefetch(column_set, chunk)


class Edges:
    """The edges of a reservoir. Owns the EDGE_ and ADVANCE_ words of the context."""

    def __init__(
        self, context: NDArray[np.int64], index: ChunkIndex, source: FrameSource, changelog: Changelog
    ) -> None:
        self._context, self._words, self._address = context, context.data, address(context)
        self._index, self._source, self._changelog = index, source, changelog
        self._table = np.zeros((0, EDGE_WORDS), np.int64)
        self._hold(16)

    def add(self, delta_ms: int, column_set: int) -> int:
        """Add an edge that has passed nothing yet, and return its number, the least free one.

        The caller must seek it before the next advance.
        """
        assert delta_ms >= 0
        free = np.flatnonzero(self._table[:, EDGE_LIVE] == 0)
        if len(free) == 0:
            self._hold(2 * len(self._table))
            return self.add(delta_ms, column_set)
        edge = int(free[0])
        row = self._table[edge]
        row[[EDGE_DELTA, EDGE_SET, EDGE_LIVE]] = delta_ms, column_set, 1
        row[[EDGE_CHUNK, EDGE_ROW, EDGE_FRAME]] = self._index.base, 0, 0
        row[[EDGE_BOUND, EDGE_NEXT_TIME]] = at.INT64_MIN
        self._list()
        return edge

    def remove(self, edge: int) -> None:
        """Remove an edge. Its number may be given again."""
        self._table[edge, EDGE_LIVE] = 0
        self._changelog.start[edge] = self._changelog.end[edge] = 0
        self._list()

    def seek(self, edge: int, time_ms: int) -> None:
        """Move an edge to the place where it has passed every row with time <= time_ms."""
        row = self._table[edge]
        chunk = self._index.first_after(time_ms)
        row[[EDGE_CHUNK, EDGE_ROW]] = chunk, 0
        row[[EDGE_BOUND, EDGE_NEXT_TIME]] = time_ms, at.INT64_MIN
        if chunk == self._index.next:
            row[EDGE_ROW] = open_passed(self._address, time_ms)
        elif self._index[chunk].span.first_time <= time_ms:
            frame = self._source.load(int(row[EDGE_SET]), chunk)
            row[EDGE_FRAME] = frame
            row[EDGE_ROW] = frame_passed(self._address, frame, time_ms)
            if chunk + 1 < self._index.next:
                self._source.prefetch(int(row[EDGE_SET]), chunk + 1)

    def advance(self, done: int, to: int, limit: int) -> int:
        """Move the edges with the clock over records [done, to) of the batch, and list at most `limit` rows.

        Returns for how many records the list is complete; `done` if it ends within the next one. See Reservoir.advance.
        """
        status = advance_edges(self._address, done, to, limit, 0)
        words = self._words
        while status == at.LOAD:
            self._source.load(words[at.NEED_SET], words[at.NEED_CHUNK])
            status = advance_edges(self._address, done, to, limit, 1)
        if words[at.WANTS_COUNT]:
            self._changelog.prefetch(self._source)
        return words[at.ADVANCE_TO] if status == at.DONE else done

    def sealed(self, rows: int) -> bool:
        """Note that the first rows of the open region became the index's last chunk. True if an edge is near it."""
        return bool(edges_sealed(self._address, rows, self._index.next))

    def standing(self) -> NDArray[np.int64]:
        """Return where the live edges are: (column set, chunk) of each, int64[edges][2]."""
        live = self._table[self._table[:, EDGE_LIVE] == 1]
        standing: NDArray[np.int64] = live[:, [EDGE_SET, EDGE_CHUNK]]
        return standing

    def _hold(self, capacity: int) -> None:
        table = np.zeros((capacity, EDGE_WORDS), np.int64)
        table[: len(self._table)] = self._table
        self._table, self._saved = table, np.zeros((capacity, 3), np.int64)
        self._changelog.hold_edges(self._context, capacity)
        self._context[at.EDGES], self._context[at.EDGE_SAVED] = address(table), address(self._saved)
        self._list()

    def _list(self) -> None:
        """List the live edges by ascending delta, so that rows that a window adds come before those it removes."""
        live = np.flatnonzero(self._table[:, EDGE_LIVE] == 1)
        order = live[np.argsort(self._table[live, EDGE_DELTA], kind="stable")]
        self._order = np.zeros(len(self._table), np.int32)
        self._order[: len(order)] = order
        self._context[at.EDGE_ORDER], self._context[at.EDGE_COUNT] = address(self._order), len(order)


@dataclass(frozen=True, slots=True)
class FillSlice:
    """One slice of a fill: entries [0, count) of the changelog. done: whether no more rows lie up to the bound."""

    count: int
    done: bool


class Fills:
    """The cursors of fills, by number."""

    def __init__(
        self, context: NDArray[np.int64], index: ChunkIndex, source: FrameSource, changelog: Changelog
    ) -> None:
        self._words, self._address = context.data, address(context)
        self._index, self._source, self._changelog = index, source, changelog
        self._fills: dict[int, NDArray[np.int64]] = {}

    def open(self, after_time: int, after_seq: int, column_set: int) -> int:
        """Open a fill that gives the rows after (after_time, after_seq). Returns its number."""
        number = next(k for k in range(len(self._fills) + 1) if k not in self._fills)
        fill = np.zeros(FILL_WORDS, np.int64)
        fill[[FILL_SET, FILL_TIME, FILL_SEQ]] = column_set, after_time, after_seq
        fill[FILL_CHUNK] = self._index.first_after(
            after_time - 1 if after_time > at.INT64_MIN else after_time
        )
        self._fills[number] = fill
        return number

    def next(self, fill: int, max_rows: int, up_to_time: int, *, ready_only: bool) -> FillSlice:
        """List the next rows of a fill, at most `max_rows`, with time <= up_to_time.

        ready_only: stop before a chunk that is not decoded yet, if rows were found before it. See Reservoir.fill_next.
        """
        where, words = address(self._fills[fill]), self._words
        limit = min(max_rows, self._changelog.limit)
        status = fill_rows(self._address, where, limit, up_to_time, 0)
        while status == at.LOAD:
            requested = words[at.NEED_SET], words[at.NEED_CHUNK]
            if ready_only and words[at.ENTRY_COUNT] and not self._source.is_ready(*requested):
                break
            self._source.load(*requested)
            status = fill_rows(self._address, where, limit, up_to_time, 1)
        self._changelog.prefetch(self._source)
        return FillSlice(words[at.ENTRY_COUNT], status == at.DONE)

    def is_ready(self, fill: int) -> bool:
        """Whether the chunk that `next` reads first is decoded. If not, it is decoded in the background from now on."""
        column_set, chunk, *given = self._fills[fill].tolist()
        while chunk < self._index.next:
            span = self._index[chunk].span
            if [span.last_time, span.last_seq] > given:
                return self._source.is_ready(column_set, chunk)
            chunk += 1
        return True

    def position(self, fill: int) -> tuple[int, int]:
        """Return (time, seq) of the last row that a fill gave, or at which it was opened."""
        words = self._fills[fill]
        return int(words[FILL_TIME]), int(words[FILL_SEQ])

    def close(self, fill: int) -> None:
        """Remove a fill. Its number may be given again."""
        del self._fills[fill]

    def standing(self) -> NDArray[np.int64]:
        """Return where the fills are: (column set, chunk) of each, int64[fills][2]."""
        rows = [fill[[FILL_SET, FILL_CHUNK]] for fill in self._fills.values()]
        return np.array(rows, np.int64).reshape(-1, 2)
