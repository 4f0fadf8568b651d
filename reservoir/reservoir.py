"""The reservoir of one task, for `TaskProcessor`: it stores accepted events in sealed chunks, and cursors read them
again. It writes segments in the task's folder. This file is a thin facade.
"""

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reservoir import layout as at
from reservoir.columns import ColumnMaker, ComputeColumns, FindRecipe, HotColumn, no_recipe
from reservoir.cursors.cache import CacheStats, FrameCache
from reservoir.cursors.cursor import Changelog, Edges, Fills, FillSlice
from reservoir.cursors.held_frame import Ahead
from reservoir.errors import ReservoirError, StorageFailedError
from reservoir.executor import Executor
from reservoir.files import Files
from reservoir.frames import SETS_MAX
from reservoir.native.jit import address
from reservoir.open_region.region import OpenRegion, OpenRows
from reservoir.open_region.saved_rows import SavedRows, SavedRowsFiles, Saving
from reservoir.segments import latest
from reservoir.segments.committed import CommittedFiles, committed_files
from reservoir.segments.format import KEY_BYTES, SegmentHeader
from reservoir.segments.frozen import Frozen, FrozenSegment
from reservoir.segments.index import ChunkIndex, Span
from reservoir.segments.length import Length
from reservoir.segments.recovery import Recovered, recover
from reservoir.segments.segment import SegmentReader, segment_path
from reservoir.segments.source import ChunkSource, ScannedRows
from reservoir.segments.writer import ChunkWriter, PendingChunk


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a reservoir.

    stream_key: 16 bytes, fixed when a folder is first written. All other settings may change.
    chunk_events: rows in each chunk of a new folder. A folder that has a segment keeps the size of its chunks.
    segment_bytes: a segment that has reached this size takes no further chunk.
    cache_bytes: the most memory for decoded chunks.
    changelog_entries: the most entries (rows that cross edges) that one advance gives.
    """

    stream_key: bytes = bytes(KEY_BYTES)
    chunk_events: int = 8192
    segment_bytes: int = 64 << 20
    cache_bytes: int = 256 << 20
    changelog_entries: int = 1 << 18


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures for monitoring. `cache` counts uses of chunks. Sizes are in bytes."""

    cache: CacheStats
    cache_bytes: int
    open_rows: int
    open_bytes: int
    chunks: int
    pending_chunks: int


class Reservoir:
    """The reservoir of one task. One thread uses it, except for `sync`. After any error, close it and open it again.

    For each batch, write the IN_ words of `words` (reservoir.layout), and call `append`. Then call `advance` until it
    returns the number of records, and process the changelog each time. Call `seal` when the floor is known. Entries,
    slots and frames are valid until the next `append`, `advance`, `seal`, seek or fill.
    """

    def __init__(
        self,
        folder: Path,
        files: Files,
        settings: Settings,
        recovered: Recovered,
        maker: ColumnMaker,
        executor: Executor,
    ) -> None:
        """Make a reservoir of a folder that was recovered; `open` does that. maker: computes missing columns."""
        settings = replace(settings, chunk_events=recovered.chunk_events)
        self._folder, self._files, self.settings = folder, files, settings
        self.recovered = recovered.report
        self._failure: ReservoirError | None = None
        self._context = np.zeros(at.CONTEXT_WORDS, np.int64)
        self.words = self._context.data
        self.context_address = address(self._context)
        self.changelog = Changelog(self._context, settings.changelog_entries)
        self._index = ChunkIndex(self._context)
        self._reader = SegmentReader(files, folder)
        self._source = ChunkSource(self._index, self._reader, maker)
        frames_max = 4096 + (settings.cache_bytes + 64 * settings.changelog_entries) // (
            16 * settings.chunk_events
        )
        # Its parts hold the reservoir weakly, so that the memory of a closed one is freed at once.
        itself: Reservoir = weakref.proxy(self)
        self._cache = FrameCache(
            self._context,
            settings.cache_bytes,
            frames_max,
            self._source.decoder,
            lambda: itself._standing(),
            executor,
        )
        self._open = OpenRegion(self._context, self._cache.table[0], settings.chunk_events)
        self._edges = Edges(self._context, self._index, self._cache, self.changelog)
        self._fills = Fills(self._context, self._index, self._cache, self.changelog)
        self._take_over(recovered)
        start = (recovered.report.length, recovered.segment)
        header = partial(SegmentHeader, settings.stream_key, settings.chunk_events)
        self._writer = ChunkWriter(files, folder, header, settings.segment_bytes, start, executor)
        self._saved = SavedRowsFiles(files, folder, settings.stream_key, self._open, self._writer)
        # Rows that were copied to chunks. Their slots wait until no open rows are being written.
        self._copied: deque[OpenRows] = deque()

    @classmethod
    def open(
        cls,
        folder: Path,
        files: Files,
        *,
        compute_columns: ComputeColumns,
        executor: Executor,
        find_recipe: FindRecipe = no_recipe,
        settings: Settings | None = None,
        length: Length | None = None,
        saved_rows: Sequence[int] | None = None,
    ) -> "Reservoir":
        """Open a folder.

        compute_columns(payload uint8[], offsets int64[n + 1], columns): returns columns of rows from their raw records.
        find_recipe(columns): returns how to compute them from other columns, or None. The caller's thread and a lane
            of the executor call both functions, even at the same time.
        length: the folder is cut back to this length of a checkpoint (`Length()` is empty). With None all whole chunks
            stay.
        saved_rows: the files of open rows that the checkpoint names (`Saving.files`). With None it keeps no open rows,
            and the caller must append them from elsewhere. All other such files are deleted.
        Raises CorruptionError, FormatVersionError, ForeignSegmentError, StorageFailedError.
        """
        settings = settings or Settings()
        try:
            recovered = recover(files, folder, settings.stream_key, settings.chunk_events, length)
        except OSError as error:
            raise StorageFailedError(str(folder), "opening", error) from error
        maker = ColumnMaker(compute_columns, find_recipe)
        reservoir = cls(folder, files, settings, recovered, maker, executor)
        try:
            reservoir._saved.begin_with(saved_rows)
        except BaseException as error:
            reservoir.close()
            if isinstance(error, OSError):
                raise StorageFailedError(str(folder), "opening", error) from error
            raise
        return reservoir

    # --- a batch -----------------------------------------------------------------------------------

    def append(self) -> None:
        """Append the accepted records of the batch that the IN_ words describe. Their slots are then in OUT_SLOT.

        Raises RowOrderError, with nothing appended, and StorageFailedError.
        """
        self._check()
        self._open.append(restoring=False)

    def saved_rows(self) -> Iterator[SavedRows]:
        """Iterate over the rows in the files that the reservoir was opened with, in the order of seq.

        Give each part to `restore` before the next one is taken. Raises CorruptionError, FormatVersionError,
        ForeignSegmentError and StorageFailedError.
        """
        try:
            yield from self._saved.read()
        except OSError as error:
            raise StorageFailedError(str(self._folder), "reading open rows", error) from error

    def restore(self) -> None:
        """Append like `append`, after opening: rows at or before the last sealed one are left out."""
        self._check()
        self._open.append(restoring=True)

    def advance(self, done: int, to: int, limit: int | None = None) -> int:
        """Move the edges over records [done, to) of the batch. The changelog then lists the rows that crossed them.

        Gives at most `limit` entries, and returns for how many records the edges are complete. If that is `done`, the
        entries are only a part of those of record `done`, edges with smaller delta first. Apply them without
        computing results, and call again. Raises CorruptionError, StorageFailedError.
        """
        if done >= to:
            return done
        entries = self.changelog.limit if limit is None else min(limit, self.changelog.limit)
        try:
            return self._edges.advance(done, to, entries)
        except ReservoirError as error:
            self._failure = error
            raise

    def seal(self, floor_ms: int) -> int:
        """Seal the chunks whose rows all lie at or before the floor. Returns how many.

        The chunks do not depend on how often this is called, or on how records are cut into batches. Waits if the
        background writer is too far behind. Raises StorageFailedError.
        """
        if self.words[at.OPEN_DUE_TIME] > floor_ms:
            return 0
        sealed = 0
        while self.words[at.OPEN_DUE_TIME] <= floor_ms and self._open.rows >= self.settings.chunk_events:
            self._collect()
            self._seal_one()
            sealed += 1
        return sealed

    @property
    def slots(self) -> NDArray[np.int32]:
        """int32[at least n]: row in frame 0 of each record of the batch; -1 if it was not appended."""
        return self._open.slots

    # --- columns -----------------------------------------------------------------------------------

    def set_hot(self, columns: Sequence[HotColumn]) -> None:
        """Set the hot columns in force. The index of a column in this list is its number in frames.

        New columns are computed for rows in the open region. All column sets are empty afterwards, and the caller must
        set them again; chunks in memory that have the columns stay. The caller must have called `seal` with the floor
        in force before.
        """
        self._cache.set_hot(columns)
        self._open.set_columns(columns, self._source.maker)

    def set_columns(self, column_set: int, columns: Sequence[int]) -> None:
        """Set which hot columns, by number, the frames of a set (0 to 255) have.

        Columns that a chunk lacks are computed. Chunks that cursors of the set need next, and that lack a column, are
        decoded again in the background.
        """
        assert 0 <= column_set < SETS_MAX
        self._cache.set_columns(column_set, [self._open.columns[column] for column in columns])
        self._prefetch_standing(column_set, self._index.base)

    # --- cursors -----------------------------------------------------------------------------------

    def add_edge(self, delta_ms: int, column_set: int = 0) -> int:
        """Add an edge at T - delta_ms (T: the clock). Returns its number in the changelog. Seek it before `advance`."""
        return self._edges.add(delta_ms, column_set)

    def remove_edge(self, edge: int) -> None:
        """Remove an edge. Its number may be given again."""
        self._edges.remove(edge)

    def seek(self, edge: int, time_ms: int) -> None:
        """Move an edge to where it has passed every row with time <= time_ms. INT64_MIN: it has passed none."""
        self._edges.seek(edge, time_ms)

    def prefetch(self, column_set: int, time_ms: int) -> None:
        """Decode in the background what an edge needs first that will soon be put behind this time."""
        chunk = self._index.first_after(time_ms)
        if chunk < self._index.next:
            self._cache.prefetch(column_set, chunk)

    def prefetch_columns(
        self, column_set: int, columns: Sequence[HotColumn], hot: Sequence[HotColumn]
    ) -> list[Ahead]:
        """Decode in the background columns that a set will soon get besides its own.

        This is done for the chunks in which the set's edges stand, and for those that they need next. hot: the hot
        columns that will then be in force; `compute_columns` knows them already. Returns handles to wait for.
        """
        return self._cache.prefetch_columns(column_set, columns, hot)

    def fill_open(self, after_time: int, after_seq: int = at.INT64_MAX, column_set: int = 1) -> int:
        """Open a fill, which gives every row after (after_time, after_seq) in this order. Returns its number."""
        return self._fills.open(after_time, after_seq, column_set)

    def fill_next(self, fill: int, max_rows: int, up_to_time: int, *, ready_only: bool = False) -> FillSlice:
        """Give at most max_rows further rows with time <= up_to_time, as entries [0, count) of the changelog.

        ready_only: stop before a chunk that is not decoded yet, if there are rows before it.
        """
        try:
            return self._fills.next(fill, max_rows, up_to_time, ready_only=ready_only)
        except ReservoirError as error:
            self._failure = error
            raise

    def fill_is_ready(self, fill: int) -> bool:
        """Whether the chunk that `fill_next` reads first is decoded. If not, start to decode it in the background. It
        may be evicted again if many chunks are asked for.
        """
        return self._fills.is_ready(fill)

    def fill_position(self, fill: int) -> tuple[int, int]:
        """Return (time, seq) of the last row that a fill gave. A row that is appended before it is never given."""
        return self._fills.position(fill)

    def fill_close(self, fill: int) -> None:
        """Close a fill. Its number may be given again."""
        self._fills.close(fill)

    # --- durability --------------------------------------------------------------------------------

    @property
    def chunks(self) -> int:
        """How many chunks were sealed since the beginning. `sync` takes such a number."""
        return self._index.next

    @property
    def oldest_ms(self) -> int | None:
        """Time of the first row that is kept; None if there is none."""
        if self._index.base < self._index.next:
            return self._index[self._index.base].span.first_time
        return self._open.first_time()

    @property
    def last_sealed(self) -> tuple[int, int] | None:
        """(time, seq) of the last sealed row; None if there is none."""
        if self._index.next == 0:
            return None
        return self._open.last_sealed

    def least_open_seq(self) -> int | None:
        """Least log position among the rows of the open region; None if there are none."""
        return self._open.least_seq()

    def sync(self, chunks: int) -> Length:
        """Wait until that many chunks are written, make them durable, and return the length of the reservoir then.

        May be called from another thread. Raises StorageFailedError; then nothing more is durable than before.
        """
        return self._writer.sync(chunks)

    def save_open_rows(self) -> Saving:
        """Choose the files of open rows that a checkpoint of this moment needs; its `write` makes them durable.

        At most one checkpoint may be under way. Call `forget_saved_rows` when it is durable.
        """
        self._check()
        return self._saved.save()

    def forget_saved_rows(self) -> None:
        """Delete the files of open rows that the checkpoint now durable does not name, in the background."""
        self._saved.committed()

    def committed_files(self, length: Length, saved_rows: Sequence[int]) -> CommittedFiles:
        """Return the files that hold what the last durable checkpoint has, to be copied elsewhere.

        length, saved_rows: those of the checkpoint. As long as `drop_before` and `forget_saved_rows` are not called,
        none of these files is deleted.
        """
        self._check()
        self._collect()
        kept_from = self._index[self._index.base].place.segment if length.chunks else 0
        return committed_files(self._files, self._folder, kept_from, length, saved_rows)

    def drop_before(self, time_ms: int) -> int:
        """Delete whole segments whose last time <= time_ms and that no edge or fill needs. Returns how many.

        They are deleted in the background. The caller must make sure that the last durable checkpoint does not need
        them either.
        """
        self._check()
        self._collect()
        standing = self._standing()
        needed = int(standing[:, 1].min()) if len(standing) else self._index.next
        dropped = 0
        while self._index.base < self._index.next:
            segment = self._index[self._index.base].place.segment
            behind = self._index.first_behind(segment)
            if segment < 0 or behind >= self._index.next or behind > needed:
                break
            if self._index[behind].place.segment < 0 or self._index[behind - 1].span.last_time > time_ms:
                break
            self._drop_segment(segment, behind)
            dropped += 1
        return dropped

    def time_before_last(self, rows: int) -> int:
        """Return a time before all chunks that have any of the last sealed rows (`latest.time_before`)."""
        return latest.time_before(self._index, rows)

    @property
    def sealed_rows(self) -> int:
        """How many rows are kept in chunks."""
        return int(self._index.each("rows").sum())

    def recent_ids(self, rows: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """Iterate over (seq, ids) of the last sealed rows, by seq (`latest.ids`)."""
        return latest.ids(self._index, self._source, rows)

    def scan(self, columns: Sequence[int] = ()) -> Iterator[ScannedRows]:
        """Iterate over every row that is kept, in (time, seq) order: chunk by chunk, then the open region. Slow."""
        requested = [self._open.columns[column] for column in columns]
        for chunk in range(self._index.base, self._index.next):
            yield self._source.scanned(chunk, requested)
        yield from self._open_rows(requested)

    def frozen(self, durable_chunks: int) -> Frozen:
        """Return the present content, to be read elsewhere while the reservoir continues. Takes time for each segment.

        durable_chunks: chunks before this number will not be cut off by any recovery.
        """
        self._check()
        self._collect()
        index, chunk = self._index, self._index.base
        segments: list[FrozenSegment] = []
        fixed = index[durable_chunks - 1].place.segment if durable_chunks > chunk else -1
        while chunk < index.next and index[chunk].place.segment >= 0:
            place = index[chunk].place
            behind = index.first_behind(place.segment)
            last = index[behind - 1].place
            path = segment_path(self._folder, place.segment)
            segments.append(FrozenSegment(path, last.offset + last.size_bytes, place.segment < fixed))
            chunk = behind
        first_ms = index[index.base].span.first_time if index.base else None
        rows = [self._source.scanned(number, ()) for number in range(chunk, index.next)]
        return Frozen(segments, chunk - index.base, [*rows, *self._open_rows(())], first_ms)

    def stats(self) -> Stats:
        """Return figures for monitoring."""
        return Stats(
            self._cache.stats,
            self._cache.bytes,
            self._open.rows,
            self._open.arena_bytes,
            self._index.next,
            len(self._source.pending),
        )

    def close(self) -> None:
        """Write what is sealed, without syncing it, end the lanes and close the files."""
        self._writer.close()
        self._cache.close()
        self._reader.close()

    # --- inside ------------------------------------------------------------------------------------

    def _open_rows(self, columns: Sequence[HotColumn]) -> Iterator[ScannedRows]:
        rows = self._open.all_rows()
        if len(rows.slots):
            held = tuple(rows.column(column) for column in columns)
            yield ScannedRows(rows.words("time"), rows.words("seq"), rows.ids(), *rows.payloads(), held)

    def _take_over(self, recovered: Recovered) -> None:
        if recovered.chunks:
            self._index.begin_at(recovered.chunks[0].number)
            length = recovered.report.length
            self._open.sealed_up_to(length.last_time, length.last_seq)
        for chunk in recovered.chunks:
            self._index.add(chunk.span, chunk.place)

    def _check(self) -> None:
        """Refuse work after a failure, because a cursor may have lost its place."""
        self._writer.check()
        if self._failure is not None:
            raise self._failure

    def _standing(self) -> NDArray[np.int64]:
        return np.concatenate([self._edges.standing(), self._fills.standing()])

    def _seal_one(self) -> None:
        rows = self._open.peek_chunk()
        span = Span(*rows.span())
        chunk = PendingChunk(self._index.next, span, rows)
        self._writer.put(chunk)
        self._source.pending[chunk.number] = chunk
        self._index.add(span)
        near = self._edges.sealed(span.rows)
        self._open.take_chunk(rows)
        if near:
            self._prefetch_standing(None, chunk.number)

    def _prefetch_standing(self, column_set: int | None, first_chunk: int) -> None:
        """Decode the sealed chunks from first_chunk on in which cursors (of a set, or all) stand, and the next ones."""
        places = {(int(s), int(c) + ahead) for s, c in self._standing().tolist() for ahead in (0, 1)}
        for cursor_set, chunk in sorted(places):
            if first_chunk <= chunk < self._index.next and column_set in (None, cursor_set):
                self._cache.prefetch(cursor_set, chunk)

    def _collect(self) -> None:
        """Note what the background writer has done."""
        while (copied := self._writer.copied()) is not None:
            self._copied.append(copied.open_rows)
        while self._copied and not self._saved.is_writing:
            self._open.release(self._copied.popleft())
        while (written := self._writer.written()) is not None:
            chunk, place = written
            self._index.written(chunk.number, place)
            self._source.pending.pop(chunk.number, None)

    def _drop_segment(self, segment: int, behind: int) -> None:
        self._cache.drop_before(behind)
        self._index.drop_before(behind)
        self._reader.forget(segment)
        self._writer.delete(segment_path(self._folder, segment))
