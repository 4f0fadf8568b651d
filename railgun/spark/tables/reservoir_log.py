"""Reads the reservoirs of a partitioner's tasks as a RecordLog: their sealed chunks, in order of time."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from railgun.spark.errors import OptionError, PlaceError
from railgun.spark.tables.record_log import Bounds, Piece, RawRecords
from railgun.wire.records import Records
from reservoir.errors import ReservoirError
from reservoir.files import DiskFiles
from reservoir.native.jit import array_at
from reservoir.segments.chunk import decode_hot, decode_payload
from reservoir.segments.format import SECTION_PAYLOAD
from reservoir.segments.index import IndexedChunk, Span
from reservoir.segments.segment import SegmentReader, SegmentScanner, segment_numbers


class ReservoirRecordLog:
    """A RecordLog over folders of segments. Tasks may run meanwhile.

    A task's newest events (its open chunk, a few thousand) are only in its log.
    folders: by partition, the folder of the task's segments.
    """

    def __init__(self, partitioner: str, folders: Mapping[int, Path]) -> None:
        self.partitioner = partitioner
        self._folders = dict(folders)
        self._files = DiskFiles()
        self._chunks: dict[int, list[IndexedChunk]] = {}

    def pieces(self, bounds: Bounds, piece_records: int) -> list[Piece]:
        found: list[Piece] = []
        for partition in self._folders:
            if not bounds.wants(partition):
                continue
            first, rows, before = -1, 0, -2
            for chunk in self._all(partition):
                if not _overlaps(chunk.span, partition, bounds):
                    continue
                if first < 0 or chunk.number != before + 1 or rows + chunk.span.rows > piece_records:
                    if first >= 0:
                        found.append(Piece(partition, first, before + 1))
                    first, rows = chunk.number, 0
                rows, before = rows + chunk.span.rows, chunk.number
            if first >= 0:
                found.append(Piece(partition, first, before + 1))
        return found

    def read(self, piece: Piece, bounds: Bounds, *, payloads: bool) -> Iterator[RawRecords]:
        reader = SegmentReader(self._files, self._folders[piece.partition])
        try:
            for chunk in self._all(piece.partition):
                if piece.first <= chunk.number < piece.end:
                    yield _rows(reader, chunk, payloads=payloads)
        except (ReservoirError, FileNotFoundError) as error:
            raise PlaceError(
                f"{error}; if the task is running and has let old segments go meanwhile, read again"
            ) from error
        finally:
            reader.close()

    def chunks(self, piece: Piece) -> int:
        """Return how many chunks of a piece exist."""
        return sum(piece.first <= chunk.number < piece.end for chunk in self._all(piece.partition))

    def rows(self, partition: int) -> int:
        """Return how many rows the chunks of a task have."""
        return sum(chunk.span.rows for chunk in self._all(partition))

    def end_offsets(self) -> dict[int, int]:
        raise OptionError(
            "a reservoir is in order of time and cannot be followed as a stream; read the log: option source=log"
        )

    def start_offsets(self) -> dict[int, int]:
        return self.end_offsets()

    def offsets_at(self, appended_ms: int) -> dict[int, int]:
        return self.end_offsets()

    def close(self) -> None:
        self._chunks.clear()

    def _all(self, partition: int) -> list[IndexedChunk]:
        """Return the chunks of a task. Raises PlaceError for damage that a crash does not explain."""
        known = self._chunks.get(partition)
        if known is not None:
            return known
        folder, found = self._folders[partition], list[IndexedChunk]()
        try:
            numbers = segment_numbers(self._files, folder)
            for number in numbers:
                scanner = SegmentScanner(self._files, folder, number)
                if number != numbers[-1]:
                    scan = scanner.listed() or scanner.scan(scanner.size_bytes, whole=False)
                elif scanner.headless():
                    continue
                else:
                    scan = scanner.scan(None, whole=False)
                found += scan.chunks
        except (ReservoirError, OSError) as error:
            raise PlaceError(f"{error}; railgun inspect {folder.parent} says more") from error
        self._chunks[partition] = found
        return found


def _overlaps(span: Span, partition: int, bounds: Bounds) -> bool:
    """Whether a chunk may hold a wanted row."""
    first, last = bounds.offsets(partition)
    return (
        span.last_time >= bounds.first_ms
        and span.first_time <= bounds.last_ms
        and span.greatest_seq >= first
        and span.least_seq <= last
    )


def _rows(reader: SegmentReader, chunk: IndexedChunk, *, payloads: bool) -> RawRecords:
    directory, section = reader.hot(chunk.place)
    hot = decode_hot(section, directory.columns, [])
    times = array_at(hot.time_at, hot.rows, np.int64).copy()
    offsets = array_at(hot.seq_at, hot.rows, np.int64).copy()
    if not payloads:
        return RawRecords(offsets, times, None)
    return RawRecords(offsets, times, Records(*decode_payload(reader.section(chunk.place, SECTION_PAYLOAD))))
