"""Reads sealed chunks: from memory while they are on the way to disk, and from their segments afterwards.

The cache and the exports of a reservoir call it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reservoir.columns import ColumnData, ColumnMaker, HotColumn, StoredColumn
from reservoir.gather import gather_computed
from reservoir.native.jit import address, array_at
from reservoir.segments.chunk import HotRows, decode_hot, decode_ids, decode_payload
from reservoir.segments.format import SECTION_IDS, SECTION_PAYLOAD
from reservoir.segments.index import ChunkIndex, Place
from reservoir.segments.segment import SegmentReader
from reservoir.segments.writer import PendingChunk

# Returns the rows of a chunk that are in memory with other columns; None if there are none.
Held = Callable[[], HotRows | None]


@dataclass(frozen=True, slots=True)
class ScannedRows:
    """Rows in (time, seq) order: time, seq int64[n]; ids uint64[n][2]; payloads end to end; columns."""

    time: NDArray[np.int64]
    seq: NDArray[np.int64]
    ids: NDArray[np.uint64]
    payload: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    columns: tuple[StoredColumn, ...]


class ChunkSource:
    """Reads chunks by number. The functions that `decoder` returns may run on any thread, so several may call `maker`
    at once.

    pending: the chunks on the way to disk, by number. The owner adds and removes them.
    """

    def __init__(self, index: ChunkIndex, reader: SegmentReader, maker: ColumnMaker) -> None:
        self._index, self._reader, self.maker = index, reader, maker
        self.pending: dict[int, PendingChunk] = {}

    def decoder(
        self, chunk: int, columns: Sequence[HotColumn], held: Held | None = None
    ) -> Callable[[], HotRows]:
        """Return a function that reads the chunk's rows with these columns. It may run later, on another thread.

        held: returns rows of the chunk that are in memory with other columns, or None. Columns found there are reused.
        """
        pending = self.pending.get(chunk)
        if pending is not None:
            read = partial(self._from_memory, pending)
        else:
            read = partial(self._from_disk, self._index[chunk].place)
        return partial(read, columns) if held is None else partial(self._extended, held, columns, read)

    def ids(self, chunk: int) -> NDArray[np.uint64]:
        """uint64[n][2]: hi, lo of the ids of a chunk's rows."""
        pending = self.pending.get(chunk)
        if pending is not None:
            return pending.copy().ids
        return decode_ids(self._reader.section(self._index[chunk].place, SECTION_IDS))

    def seqs(self, chunk: int) -> NDArray[np.int64]:
        """int64[n]: log positions of a chunk's rows."""
        rows = self.decoder(chunk, [])()
        return array_at(rows.seq_at, rows.rows, np.int64).copy()

    def payloads(self, chunk: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Raw records of a chunk end to end, and offsets int64[n + 1]."""
        pending = self.pending.get(chunk)
        if pending is not None:
            rows = pending.copy()
            return rows.payload, rows.offsets
        return decode_payload(self._reader.section(self._index[chunk].place, SECTION_PAYLOAD))

    def scanned(self, chunk: int, columns: Sequence[HotColumn]) -> ScannedRows:
        """Read a whole chunk."""
        hot = self.decoder(chunk, columns)()
        time, seq = (array_at(where, hot.rows, np.int64).copy() for where in (hot.time_at, hot.seq_at))
        return ScannedRows(time, seq, self.ids(chunk), *self.payloads(chunk), hot.columns)

    def _from_memory(self, pending: PendingChunk, columns: Sequence[HotColumn]) -> HotRows:
        rows = pending.copy()
        n = len(rows.time)
        kept = pending.stored([column for column in columns if column in pending.columns])
        missing = [column for column in columns if column not in pending.columns]
        made = self.maker.from_columns(missing, n, pending.columns, pending.stored) if missing else []
        if made is None:
            made = self.maker.from_records(rows.payload, rows.offsets, missing)
        # Only these arrays are kept alive: with the payloads, the rows would hold far more memory than their size says.
        hot = HotRows(n, address(rows.time), address(rows.seq), kept, 16 * n, (rows.time, rows.seq))
        return _with(hot, missing, made)

    def _from_disk(self, place: Place, columns: Sequence[HotColumn]) -> HotRows:
        directory, section = self._reader.hot(place)
        hot = decode_hot(section, directory.columns, columns)
        missing = [column for column in columns if column not in directory.columns]
        if not missing:
            return hot
        made = self.maker.from_columns(
            missing,
            hot.rows,
            directory.columns,
            lambda sources: decode_hot(section, directory.columns, sources).columns,
        )
        if made is None:
            records = decode_payload(self._reader.section(place, SECTION_PAYLOAD))
            made = self.maker.from_records(*records, missing)
        return _with(hot, missing, made)

    def _extended(
        self, held: Held, columns: Sequence[HotColumn], read: Callable[[Sequence[HotColumn]], HotRows]
    ) -> HotRows:
        """Return rows with these columns. Those not in memory are computed from others in memory, or read."""
        hot = held()
        if hot is None:
            return read(columns)
        stored = {each.column: each for each in hot.columns}
        requested = frozenset(columns)
        kept = tuple([each for each in hot.columns if each.column in requested])
        missing = [column for column in columns if column not in stored]
        only = HotRows(hot.rows, hot.time_at, hot.seq_at, kept, 0, hot.keep)
        if not missing:
            return _with(only, (), ())
        made = self.maker.from_columns(
            missing, hot.rows, stored, lambda sources: [stored[source] for source in sources]
        )
        return _with(only, missing, made) if made is not None else _besides(only, read(missing).columns)


def _with(hot: HotRows, columns: Sequence[HotColumn], made: Sequence[ColumnData]) -> HotRows:
    """Return rows with additional columns, which were computed for them."""
    return _besides(
        hot, tuple(gather_computed(column, data, hot.rows) for column, data in zip(columns, made))
    )


def _besides(hot: HotRows, further: tuple[StoredColumn, ...]) -> HotRows:
    columns = hot.columns + further
    size = 16 * hot.rows + sum(column.size_bytes for column in columns)
    return HotRows(hot.rows, hot.time_at, hot.seq_at, columns, size, hot.keep)
