"""Writes sealed chunks to disk for `Reservoir`: encodes them in the background, appends them to segments in order."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from reservoir.columns import HotColumn, StoredColumn
from reservoir.errors import StorageFailedError
from reservoir.executor import Executor, Job
from reservoir.files import Files
from reservoir.open_region.region import OpenRows
from reservoir.segments.chunk import ChunkRows, encode_chunk
from reservoir.segments.format import SegmentHeader
from reservoir.segments.index import Place, Span
from reservoir.segments.length import Length
from reservoir.segments.segment import SegmentWriter

QUEUE_CHUNKS = 8


class PendingChunk:
    """A sealed chunk on its way to disk. Until then, the task's thread and the writer's read it from memory."""

    def __init__(self, number: int, span: Span, rows: OpenRows) -> None:
        self.number, self.span, self._rows = number, span, rows
        self._lock = threading.Lock()
        self._all: ChunkRows | None = None

    @property
    def columns(self) -> tuple[HotColumn, ...]:
        """The hot columns with which it will be stored."""
        return self._rows.columns

    @property
    def open_rows(self) -> OpenRows:
        """Its rows in the open region, where they lie until they are copied."""
        return self._rows

    def copy(self) -> ChunkRows:
        """Return all its rows. The first call copies them out of the open region."""
        with self._lock:
            if self._all is None:
                rows = self._rows
                payload, offsets = rows.payloads()
                columns = tuple(rows.column(column) for column in rows.columns)
                self._all = ChunkRows(
                    rows.words("time"), rows.words("seq"), rows.ids(), payload, offsets, columns
                )
            return self._all

    def stored(self, columns: Sequence[HotColumn]) -> tuple[StoredColumn, ...]:
        """Return some of its hot columns."""
        rows = self.copy()
        return tuple(rows.columns[self._rows.columns.index(column)] for column in columns)


class ChunkWriter:
    """Takes chunks in order and writes them in a lane. After a failure nothing is written any more.

    The task's thread polls `copied` and `written`; the lane does not call them.
    """

    def __init__(
        self,
        files: Files,
        folder: Path,
        header: Callable[[int, int, int], SegmentHeader],
        segment_bytes: int,
        start: tuple[Length, SegmentWriter | None],
        executor: Executor,
    ) -> None:
        """header(segment number, first chunk, first seq): makes a segment's header.
        start: the length so far, and the segment in which to continue.
        """
        self._files, self._folder, self._header = files, folder, header
        self._segment_bytes = segment_bytes
        self._length, self._segment = start
        self._lengths: deque[Length] = deque([self._length])
        self._lock = threading.Lock()
        # Jobs that may not have ended, each with the number of chunks that are written after it (0: a deletion).
        self._jobs: deque[tuple[int, Job[None]]] = deque()
        self._copied: deque[PendingChunk] = deque()
        self._written: deque[tuple[PendingChunk, Place]] = deque()
        self._unsynced_folder = self._has_deleted = False
        self.failure: StorageFailedError | None = None
        self._lane = executor.lane("chunk-writer")

    def delete(self, path: Path) -> None:
        """Delete a file that nothing reads any more."""
        self._submit(0, "delete", partial(self._delete, path))

    def _delete(self, path: Path) -> None:
        # After a loss of power some of the deletions may be undone. If an older segment came back and a newer one did
        # not, one between others would be missing.
        if self._has_deleted:
            self._files.sync_folder(self._folder)
        self._files.delete(path)
        self._has_deleted = True

    def put(self, chunk: PendingChunk) -> None:
        """Take the next chunk. Waits while too many are on their way. Raises StorageFailedError."""
        while (job := self._oldest_of_too_many()) is not None:
            job.result()
        self.check()
        self._submit(chunk.number + 1, "write", partial(self._write, chunk))

    def check(self) -> None:
        """Raise the StorageFailedError of an earlier write, if there is one."""
        if self.failure is not None:
            raise self.failure

    def fail(self, action: str, error: BaseException) -> StorageFailedError:
        """Note a failure, after which nothing is written. Returns the error to raise: that of the first failure."""
        with self._lock:
            if self.failure is None:
                self.failure = StorageFailedError(str(self._folder), action, error)
                self.failure.__cause__ = error
            return self.failure

    def copied(self) -> PendingChunk | None:
        """Return the next chunk that has been copied out of the open region; None if there is none."""
        return self._copied.popleft() if self._copied else None

    def written(self) -> tuple[PendingChunk, Place] | None:
        """Return the next chunk that has been written to its file, but not synced; None if there is none."""
        return self._written.popleft() if self._written else None

    def sync(self, chunks: int) -> Length:
        """Wait until that many chunks are written and make them durable. Raises StorageFailedError."""
        with self._lock:
            job = next((job for after, job in self._jobs if after == chunks), None)
        if job is not None:
            job.result()
        self.check()
        with self._lock:
            segment, folder_too = self._segment, self._unsynced_folder
            self._unsynced_folder = False
            while self._lengths[0].chunks < chunks:
                self._lengths.popleft()
            length = self._lengths[0]
        try:
            if segment is not None and segment.header.number == length.segment:
                segment.sync()
            if folder_too:
                self._files.sync_folder(self._folder)
        except OSError as error:
            raise self.fail("fsync", error) from error
        return length

    def close(self) -> None:
        """Write all chunks taken, unless writing has failed, and end the lane. Nothing is synced."""
        with self._lock:
            jobs = [job for _, job in self._jobs]
        for job in jobs:
            job.result()
        self._lane.close()
        if self._segment is not None:
            self._segment.close()

    def _oldest_of_too_many(self) -> Job[None] | None:
        """Return the job that has to end before another chunk is taken; None if there is room."""
        with self._lock:
            while self._jobs and self._jobs[0][1].done():
                self._jobs.popleft()
            return self._jobs[0][1] if len(self._jobs) >= QUEUE_CHUNKS else None

    def _submit(self, after: int, action: str, work: Callable[[], None]) -> None:
        job = self._lane.submit(partial(self._guarded, action, work))
        with self._lock:
            self._jobs.append((after, job))

    def _guarded(self, action: str, work: Callable[[], None]) -> None:
        """Do the work, unless something failed before. `check` raises a failure when the next chunk is taken."""
        if self.failure is not None:
            return
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - see `check`
            self.fail(action, error)

    def _write(self, chunk: PendingChunk) -> None:
        rows = chunk.copy()
        self._copied.append(chunk)
        pieces, hot_bytes = encode_chunk(chunk.number, chunk.span, rows)
        segment = self._segment_for(chunk)
        place = segment.add(chunk.number, chunk.span, pieces, hot_bytes)
        before, span = self._length, chunk.span
        length = Length(
            place.segment,
            segment.size_bytes,
            before.chunks + 1,
            before.rows + span.rows,
            span.last_time,
            span.last_seq,
        )
        self._written.append((chunk, place))
        with self._lock:
            self._length = length
            self._lengths.append(length)

    def _segment_for(self, chunk: PendingChunk) -> SegmentWriter:
        """Return the segment that takes this chunk: the last one, or a new one if the last is full."""
        segment = self._segment
        if segment is not None and segment.size_bytes < self._segment_bytes:
            return segment
        number = 1 if segment is None else segment.header.number + 1
        if segment is not None:
            segment.finish()
        header = self._header(number, chunk.number, chunk.span.least_seq)
        made = SegmentWriter.create(self._files, self._folder, header)
        with self._lock:
            self._segment, self._unsynced_folder = made, True
        return made
