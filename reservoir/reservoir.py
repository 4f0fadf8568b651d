"""The reservoir of one task: its accepted events, sealed into chunks, met again by cursors. A thin facade."""

import weakref
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
from reservoir.open_region.region import OpenRegion
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
    """stream_key (16 bytes) is fixed when a folder is first written; the rest may change.

    chunk_events: of a new folder's chunks; a folder that has a segment goes on with chunks as large as its own.
    segment_bytes: a segment that has reached this takes no further chunk.  cache_bytes: decoded chunks held.
    changelog_entries: most entries that one advance gives.
    """

    stream_key: bytes = bytes(KEY_BYTES)
    chunk_events: int = 8192
    segment_bytes: int = 64 << 20
    cache_bytes: int = 256 << 20
    changelog_entries: int = 1 << 18


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures for monitoring. `cache` counts uses of chunks; sizes in bytes."""

    cache: CacheStats
    cache_bytes: int
    open_rows: int
    open_bytes: int
    chunks: int
    pending_chunks: int


class Reservoir:
    """Not safe for threads, but for `sync`, which may run on another one. After any error: close, open again.

    The way of a batch: write the IN_ words of `words`; `append`; `advance` until it returns the number of
    records, running the changelog each time; `seal` when the floor is known.  Entries, slots and frames stay
    valid until the next `append`, `advance`, `seal`, seek or fill.
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
        """See `open`."""
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
        # No part holds the whole strongly: the memory of a closed reservoir is free at once.
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
    ) -> "Reservoir":
        """Open a folder, cut back to a checkpoint's length (`Length()`: empty); None: all that is whole.

        compute_columns(payload uint8[], offsets int64[n + 1], columns) gives the columns of rows from their raw
        records; find_recipe(columns) how they are made of other columns, where they can be.  Both are called by the
        caller's thread and by a lane of the executor, by both at once too.
        Raises CorruptionError, FormatVersionError, ForeignSegmentError, StorageFailedError.
        """
        settings = settings or Settings()
        try:
            recovered = recover(files, folder, settings.stream_key, settings.chunk_events, length)
        except OSError as error:
            raise StorageFailedError(str(folder), "opening", error) from error
        return cls(folder, files, settings, recovered, ColumnMaker(compute_columns, find_recipe), executor)

    # --- a batch -----------------------------------------------------------------------------------

    def append(self) -> None:
        """Take the accepted records of the batch that the IN_ words describe; their slots are in OUT_SLOT.

        Raises RowOrderError (nothing was taken), StorageFailedError.
        """
        self._check()
        self._open.append(restoring=False)

    def restore(self) -> None:
        """As `append`, for reading the log again: records at or before the last sealed row are left out."""
        self._check()
        self._open.append(restoring=True)

    def advance(self, done: int, to: int, limit: int | None = None) -> int:
        """Move the edges over records [done, to) of the batch; the changelog says who crossed, and when.

        Returns for how many records the edges are complete, after at most `limit` entries.  Equal to `done`:
        a drain step: the entries are a part of those of record `done`, edges with the smaller delta first;
        apply them without giving results, and call again.  Raises CorruptionError, StorageFailedError.
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
        """Close the chunks whose rows all lie at or before the floor; returns how many.

        How often it is called, and where batches are cut, does not change the chunks.  Waits while the
        background writer is too far behind.  Raises StorageFailedError.
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
        """int32[n at least]: row in frame 0 of each record of the batch; -1 where it was not taken."""
        return self._open.slots

    # --- columns -----------------------------------------------------------------------------------

    def set_hot(self, columns: Sequence[HotColumn]) -> None:
        """The hot columns in force from now on; a column's place in this list is its number in frames.

        Rows in the open region get the new ones made.  Column sets are empty afterwards: set them; chunks in
        memory that hold what a set is given stay.  Seal with the floor in force before.
        """
        self._cache.set_hot(columns)
        self._open.set_columns(columns, self._source.maker)

    def set_columns(self, column_set: int, columns: Sequence[int]) -> None:
        """Which hot columns, by number, frames of a set (0 to 255) hold. What a chunk lacks is computed.

        What the cursors of the set meet next, and lacks one, is decoded anew, in the background.
        """
        assert 0 <= column_set < SETS_MAX
        self._cache.set_columns(column_set, [self._open.columns[column] for column in columns])
        self._prefetch_standing(column_set, self._index.base)

    # --- cursors -----------------------------------------------------------------------------------

    def add_edge(self, delta_ms: int, column_set: int = 0) -> int:
        """A new edge at T - delta_ms; seek it before the next advance. Its number indexes the changelog."""
        return self._edges.add(delta_ms, column_set)

    def remove_edge(self, edge: int) -> None:
        """The edge is gone; its number may be given again."""
        self._edges.remove(edge)

    def seek(self, edge: int, time_ms: int) -> None:
        """Put an edge where everything with time <= time_ms has been passed; INT64_MIN: nothing has."""
        self._edges.seek(edge, time_ms)

    def prefetch(self, column_set: int, time_ms: int) -> None:
        """An edge will be put behind this time soon: what it meets first is decoded in the background."""
        chunk = self._index.first_after(time_ms)
        if chunk < self._index.next:
            self._cache.prefetch(column_set, chunk)

    def prefetch_columns(
        self, column_set: int, columns: Sequence[HotColumn], hot: Sequence[HotColumn]
    ) -> list[Ahead]:
        """A set will get these columns besides its own, among these hot columns, which `compute_columns` knows
        already: what its edges are in, and meet next, is decoded with them in the background. Returns what may be
        waited for.
        """
        return self._cache.prefetch_columns(column_set, columns, hot)

    def fill_open(self, after_time: int, after_seq: int = at.INT64_MAX, column_set: int = 1) -> int:
        """A fill that gives every row after (after_time, after_seq), in that order; its number."""
        return self._fills.open(after_time, after_seq, column_set)

    def fill_next(self, fill: int, max_rows: int, up_to_time: int, *, ready_only: bool = False) -> FillSlice:
        """At most max_rows further rows with time <= up_to_time, as entries [0, count) of the changelog.

        ready_only: where there are some, none of a further chunk that is not decoded yet.
        """
        try:
            return self._fills.next(fill, max_rows, up_to_time, ready_only=ready_only)
        except ReservoirError as error:
            self._failure = error
            raise

    def fill_is_ready(self, fill: int) -> bool:
        """Is the chunk decoded that `fill_next` reads first? Else that is done in the background from now on; it may be
        forgotten again, where many are asked for.
        """
        return self._fills.is_ready(fill)

    def fill_position(self, fill: int) -> tuple[int, int]:
        """(time, seq) of the last row given. A row that joins before it is never given."""
        return self._fills.position(fill)

    def fill_close(self, fill: int) -> None:
        """The fill is gone; its number may be given again."""
        self._fills.close(fill)

    # --- durability --------------------------------------------------------------------------------

    @property
    def chunks(self) -> int:
        """Chunks sealed since the beginning: what `sync` takes."""
        return self._index.next

    @property
    def oldest_ms(self) -> int | None:
        """Time of the first row kept; None where there is none."""
        if self._index.base < self._index.next:
            return self._index[self._index.base].span.first_time
        return self._open.first_time()

    @property
    def last_sealed(self) -> tuple[int, int] | None:
        """(time, seq) of the last sealed row."""
        if self._index.next == 0:
            return None
        return self.words[at.OPEN_SEALED_TIME], self.words[at.OPEN_SEALED_SEQ]

    def least_open_seq(self) -> int | None:
        """Least log position among the rows that no chunk holds; None where there are none."""
        return self._open.least_seq()

    def sync(self, chunks: int) -> Length:
        """Wait until that many chunks are written, make them durable, and say how long that is.

        May be called from another thread. Raises StorageFailedError; then nothing is durable but what was.
        """
        return self._writer.sync(chunks)

    def drop_before(self, time_ms: int) -> int:
        """Let whole segments go whose last time <= time_ms and which no edge or fill needs; how many.

        They are deleted in the background.  The caller sees to it that the last durable checkpoint does not
        need them either.
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
        """A time such that the chunks with the `rows` latest sealed rows, by log position, begin later.

        INT64_MIN where there are not as many. Rows are sealed in order of time, not of position: what came last
        may lie in chunks far apart.
        """
        least_seq = self._least_latest(rows)
        if least_seq == at.INT64_MIN:
            return at.INT64_MIN
        first_times = self._index.each("first_time")[self._index.each("greatest_seq") >= least_seq]
        return max(at.INT64_MIN, int(first_times.min(initial=at.INT64_MAX)) - 1)

    @property
    def sealed_rows(self) -> int:
        """How many are kept in chunks."""
        return int(self._index.each("rows").sum())

    def recent_ids(self, rows: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64]]]:
        """(seq int64[m], ids uint64[m][2]) of sealed rows by seq, from first to last: the `rows` latest kept, and what
        lies in chunks with them. A chunk at a time; as many as overlap by seq where events came far out of order.
        """
        base, least_seqs = self._index.base, self._index.each("least_seq")
        chunks = np.flatnonzero(self._index.each("greatest_seq") >= self._least_latest(rows))
        chunks = chunks[np.argsort(least_seqs[chunks], kind="stable")]
        begins = least_seqs[chunks].tolist()
        seqs, ids = np.zeros(0, np.int64), np.zeros((0, 2), np.uint64)
        for number, chunk in enumerate((base + chunks).tolist(), 1):
            seqs = np.concatenate((seqs, self._source.seqs(chunk)))
            ids = np.concatenate((ids, self._source.ids(chunk)))
            if np.any(seqs[1:] < seqs[:-1]):  # as a rule not: events come about as their times do
                order = np.argsort(seqs, kind="stable")
                seqs, ids = seqs[order], ids[order]
            # What the chunks to come begin before waits for them.
            end = len(seqs)
            if number < len(chunks):
                end = int(np.searchsorted(seqs, begins[number]))
            yield seqs[:end], ids[:end]
            seqs, ids = seqs[end:], ids[end:]

    def scan(self, columns: Sequence[int] = ()) -> Iterator[ScannedRows]:
        """Every row kept, in (time, seq) order, chunk by chunk, the open region last. Slow."""
        requested = [self._open.columns[column] for column in columns]
        for chunk in range(self._index.base, self._index.next):
            yield self._source.scanned(chunk, requested)
        yield from self._open_rows(requested)

    def frozen(self, durable_chunks: int) -> Frozen:
        """What is kept now, to be read elsewhere while the reservoir goes on. Takes as long as there are segments.

        durable_chunks: those before no recovery will cut off any more.
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
        """Figures for monitoring."""
        return Stats(
            self._cache.stats,
            self._cache.bytes,
            self._open.rows,
            self._open.arena_bytes,
            self._index.next,
            len(self._source.pending),
        )

    def close(self) -> None:
        """Write what is sealed (nothing is synced), end the lanes, close the files."""
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

    def _least_latest(self, rows: int) -> int:
        """A seq such that as many rows in chunks have it or a greater one; INT64_MIN where there are not as many."""
        if rows == 0:
            return at.INT64_MAX
        least_seqs = self._index.each("least_seq")
        latest = np.argsort(least_seqs)[::-1]
        enough = int(np.searchsorted(np.cumsum(self._index.each("rows")[latest]), rows))
        return int(least_seqs[latest[enough]]) if enough < len(latest) else at.INT64_MIN

    def _check(self) -> None:
        """After a failure nothing is taken any more: a cursor may have lost its place."""
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
        """Have the sealed chunks from first_chunk on decoded that cursors (of a set, or all) are in or next to."""
        places = {(int(s), int(c) + ahead) for s, c in self._standing().tolist() for ahead in (0, 1)}
        for cursor_set, chunk in sorted(places):
            if first_chunk <= chunk < self._index.next and column_set in (None, cursor_set):
                self._cache.prefetch(cursor_set, chunk)

    def _collect(self) -> None:
        """Take note of what the background writer has done."""
        while (copied := self._writer.copied()) is not None:
            self._open.release(copied.open_rows)
        while (written := self._writer.written()) is not None:
            chunk, place = written
            self._index.written(chunk.number, place)
            self._source.pending.pop(chunk.number, None)

    def _drop_segment(self, segment: int, behind: int) -> None:
        self._cache.drop_before(behind)
        self._index.drop_before(behind)
        self._reader.forget(segment)
        self._writer.delete(segment_path(self._folder, segment))
