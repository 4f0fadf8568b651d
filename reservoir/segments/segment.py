"""Segment files of a reservoir: one writer appends to them, any thread reads them, and opening the reservoir scans
them. FORMAT.md describes the bytes.
"""

import re
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from reservoir.errors import CorruptionError, StorageFailedError
from reservoir.files import File, Files
from reservoir.segments.format import (
    FRAME_CHUNK,
    FRAME_HEAD_BYTES,
    FRAME_INDEX,
    HEADER_BYTES,
    INDEX_END_BYTES,
    SECTION_HOT,
    ChunkDirectory,
    FrameHead,
    SegmentHeader,
    checked_directory,
    frame_candidates,
    pack_header,
    pack_index,
    parse_chunk,
    parse_frame_head,
    parse_header,
    parse_index,
    parse_index_end,
)
from reservoir.segments.index import IndexedChunk, Place, Span

_NAME = re.compile(r"(\d{12})\.seg")
_PEEK_BYTES = 4096


@lru_cache(maxsize=64)
def segment_path(folder: Path, number: int) -> Path:
    """Return the file of a segment."""
    return folder / f"{number:012d}.seg"


def segment_numbers(files: Files, folder: Path) -> list[int]:
    """Return the numbers of the segments in a folder, ascending. Other files are ignored."""
    return [int(found[1]) for name in files.list(folder) if (found := _NAME.fullmatch(name))]


@dataclass(frozen=True, slots=True)
class TornTail:
    """Bytes at a segment's end that are no whole frame. A crash leaves such bytes."""

    file: str
    offset: int
    dropped_bytes: int
    reason: str


class SegmentWriter:
    """Appends to one segment. After any OSError the writer is not used again."""

    def __init__(
        self,
        files: Files,
        path: Path,
        header: SegmentHeader,
        handle: File,
        size_bytes: int,
        chunks: Sequence[IndexedChunk],
    ) -> None:
        """Continue a segment behind its first size_bytes bytes, in which these chunks lie."""
        self._files, self.path, self.header = files, path, header
        self._handle, self.size_bytes = handle, size_bytes
        self.chunks = list(chunks)

    @classmethod
    def create(cls, files: Files, folder: Path, header: SegmentHeader) -> "SegmentWriter":
        """Make a new segment, and write its header."""
        path = segment_path(folder, header.number)
        writer = cls(files, path, header, files.create(path), 0, [])
        writer._append([pack_header(header)])
        return writer

    def add(self, number: int, span: Span, pieces: Sequence[bytes | memoryview], hot_bytes: int) -> Place:
        """Append a chunk's frame."""
        size = sum(len(piece) for piece in pieces)
        place = Place(self.header.number, self.size_bytes, size, hot_bytes)
        self._append(pieces)
        self.chunks.append(IndexedChunk(number, span, place))
        return place

    def finish(self) -> None:
        """Append the index and make the segment durable.

        The file is not closed here, because another thread may be syncing it. It closes when nobody holds it any more.
        """
        self._append([pack_index(self.header.number, self.chunks)])
        self.sync()

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self._handle.sync()

    def close(self) -> None:
        """Close the handle."""
        self._handle.close()

    def _append(self, pieces: Sequence[bytes | memoryview]) -> None:
        for piece in pieces:
            rest = memoryview(piece).cast("B")
            while rest:
                rest = rest[self._handle.write(rest) :]
            self.size_bytes += len(piece)


class SegmentReader:
    """Reads chunks. Any thread may use it. It keeps a bounded number of files open."""

    def __init__(self, files: Files, folder: Path, handles_max: int = 64) -> None:
        self._files, self._folder, self._handles_max = files, folder, handles_max
        self._lock = threading.Lock()
        self._handles: OrderedDict[int, File] = OrderedDict()

    def hot(self, place: Place) -> tuple[ChunkDirectory, memoryview]:
        """Read and check a chunk's directory and its hot section. Raises CorruptionError, StorageFailedError."""
        data = self._read(place, place.offset, place.hot_bytes)
        directory, behind = self._directory(place, data)
        section = memoryview(data)[behind : behind + directory.sections[SECTION_HOT].size_bytes]
        return directory, self._checked(place, directory, SECTION_HOT, section)

    def section(self, place: Place, which: int) -> memoryview:
        """Read and check one section of a chunk. Raises CorruptionError, StorageFailedError."""
        head = self._read(place, place.offset, min(place.hot_bytes, _PEEK_BYTES))
        found = parse_frame_head(head, self._file(place), place.offset)
        if len(head) < FRAME_HEAD_BYTES + found.directory_bytes:
            head = self._read(place, place.offset, FRAME_HEAD_BYTES + found.directory_bytes)
        directory, behind = self._directory(place, head)
        section = directory.sections[which]
        data = self._read(place, place.offset + behind + section.offset, section.size_bytes)
        return self._checked(place, directory, which, memoryview(data))

    def forget(self, segment: int) -> None:
        """Close the file of a segment that is about to be deleted."""
        with self._lock:
            self._handles.pop(segment, None)

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._handles.clear()

    def _read(self, place: Place, offset: int, size_bytes: int) -> bytes:
        try:
            return self._handle(place.segment).read(offset, size_bytes)
        except OSError as error:
            raise StorageFailedError(self._file(place), f"reading at byte {offset}", error) from error

    def _handle(self, segment: int) -> File:
        with self._lock:
            handle = self._handles.pop(segment, None)
            if handle is None:
                handle = self._files.open_read(segment_path(self._folder, segment))
                if len(self._handles) >= self._handles_max:
                    self._handles.popitem(last=False)
            self._handles[segment] = handle
            return handle

    def _file(self, place: Place) -> str:
        return str(segment_path(self._folder, place.segment))

    def _directory(self, place: Place, data: bytes) -> tuple[ChunkDirectory, int]:
        file = self._file(place)
        head = parse_frame_head(data, file, place.offset)
        directory = checked_directory(data, head, file, place.offset)
        return parse_chunk(directory), FRAME_HEAD_BYTES + head.directory_bytes

    def _checked(self, place: Place, directory: ChunkDirectory, which: int, data: memoryview) -> memoryview:
        section = directory.sections[which]
        if len(data) < section.size_bytes or zlib.crc32(data) != section.crc:
            behind = place.size_bytes - sum(part.size_bytes for part in directory.sections) + section.offset
            what = ("hot columns", "ids", "payloads")[which]
            raise CorruptionError(
                self._file(place), place.offset + behind, f"the CRC of the {what} does not match"
            )
        return data


@dataclass(slots=True)
class SegmentScan:
    """The content of a segment: its header, its whole chunks, where they end, and what lies behind them."""

    header: SegmentHeader
    chunks: list[IndexedChunk]
    end_bytes: int
    finished: bool
    torn: TornTail | None


class SegmentScanner:
    """Scans one segment from its header on. Raises CorruptionError for damage that is not a torn tail."""

    def __init__(self, files: Files, folder: Path, number: int) -> None:
        self._number, self._file = number, str(segment_path(folder, number))
        self._handle = files.open_read(segment_path(folder, number))
        self._size = self._handle.size()

    @property
    def size_bytes(self) -> int:
        """Length of the file."""
        return self._size

    def header(self) -> SegmentHeader:
        """Read and check the header."""
        header = parse_header(self._handle.read(0, HEADER_BYTES), self._file)
        if header.number != self._number:
            raise CorruptionError(self._file, 0, f"the header is that of segment {header.number}")
        return header

    def scan(self, end_bytes: int | None = None, *, whole: bool) -> SegmentScan:
        """Scan the chunks up to end_bytes, or to the file's end if it is None.

        whole: check every byte of every frame; otherwise only heads and directories. A frame that is not whole is a
        torn tail if no whole frame follows it. If end_bytes is given, every frame before it must be whole.
        """
        header, end = self.header(), self._size if end_bytes is None else end_bytes
        if end > self._size:
            raise CorruptionError(
                self._file, self._size, f"the file ends here, but {end} bytes were made durable"
            )
        scan = SegmentScan(header, [], HEADER_BYTES, False, None)
        while scan.end_bytes < end:
            try:
                head, directory = self._frame(scan.end_bytes, end, whole=whole)
                self._take(scan, head, directory)
            except CorruptionError as error:
                if end_bytes is not None or self._whole_frame_behind(scan.end_bytes):
                    raise
                scan.torn = TornTail(self._file, scan.end_bytes, end - scan.end_bytes, error.reason)
                break
        return scan

    def listed(self) -> SegmentScan | None:
        """Read the chunks that the index at the end of a full segment lists; None if there is no whole index."""
        header = self.header()
        try:
            size = parse_index_end(
                self._handle.read(self._size - INDEX_END_BYTES, INDEX_END_BYTES), self._file
            )
            offset = self._size - size
            if offset < HEADER_BYTES:
                return None
            data = self._handle.read(offset, size)
            head = parse_frame_head(data, self._file, offset)
            directory = checked_directory(data, head, self._file, offset)
        except CorruptionError:
            return None
        if head.kind != FRAME_INDEX:
            return None
        chunks = parse_index(directory, self._number, header.first_chunk)
        return SegmentScan(header, chunks, self._size, True, None)

    def headless(self) -> bool:
        """Whether the header is broken and no whole frame follows it."""
        try:
            self.header()
        except CorruptionError:
            return not self._whole_frame_behind(0)
        return False

    def _frame(self, offset: int, end: int, *, whole: bool) -> tuple[FrameHead, bytes]:
        data = self._handle.read(offset, min(_PEEK_BYTES, end - offset))
        head = parse_frame_head(data, self._file, offset)
        if offset + head.size_bytes > end:
            raise CorruptionError(self._file, offset, "a frame is cut short")
        if whole or FRAME_HEAD_BYTES + head.directory_bytes > len(data):
            data = self._handle.read(
                offset, head.size_bytes if whole else FRAME_HEAD_BYTES + head.directory_bytes
            )
        directory = checked_directory(data, head, self._file, offset)
        if whole and head.kind == FRAME_CHUNK:
            self._check_sections(offset, head, parse_chunk(directory), memoryview(data))
        if whole and head.kind == FRAME_INDEX:
            parse_index_end(data[-INDEX_END_BYTES:], self._file)
        return head, directory

    def _check_sections(self, offset: int, head: FrameHead, chunk: ChunkDirectory, data: memoryview) -> None:
        body = FRAME_HEAD_BYTES + head.directory_bytes
        for section in chunk.sections:
            begin = body + section.offset
            if zlib.crc32(data[begin : begin + section.size_bytes]) != section.crc:
                raise CorruptionError(self._file, offset + begin, "a section's CRC does not match")

    def _take(self, scan: SegmentScan, head: FrameHead, directory: bytes) -> None:
        offset = scan.end_bytes
        if scan.finished:
            raise CorruptionError(self._file, offset, "a frame behind the segment's index")
        if head.kind == FRAME_CHUNK:
            chunk = parse_chunk(directory)
            if chunk.number != scan.header.first_chunk + len(scan.chunks):
                raise CorruptionError(self._file, offset, f"chunk {chunk.number} is out of place")
            hot = FRAME_HEAD_BYTES + head.directory_bytes + chunk.sections[SECTION_HOT].size_bytes
            place = Place(self._number, offset, head.size_bytes, hot)
            scan.chunks.append(IndexedChunk(chunk.number, chunk.span, place))
        elif head.kind == FRAME_INDEX:
            if parse_index(directory, self._number, scan.header.first_chunk) != scan.chunks:
                raise CorruptionError(self._file, offset, "the segment's index does not match its chunks")
            scan.finished = True
        else:
            raise CorruptionError(self._file, offset, f"a frame of unknown kind {head.kind}")
        scan.end_bytes = offset + head.size_bytes

    def _whole_frame_behind(self, offset: int) -> bool:
        """Whether a whole frame follows the broken one at offset. Frames are not aligned, so every byte is tried."""
        data = self._handle.read(offset + 1, max(0, self._size - offset - 1))
        for place in frame_candidates(data):
            begin = offset + 1 + place
            try:
                head = parse_frame_head(data[place : place + FRAME_HEAD_BYTES], self._file, begin)
                if begin + head.size_bytes <= self._size:
                    self._frame(begin, self._size, whole=True)
                    return True
            except CorruptionError:
                continue
        return False
