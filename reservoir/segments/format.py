"""Encodes and decodes the headers, frames and chunk directories of segments. reservoir/FORMAT.md has the pictures.

A frame here is a piece of a segment's file: a chunk or an index.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reservoir.columns import ColumnKind, HotColumn
from reservoir.errors import CorruptionError, ForeignSegmentError, FormatVersionError
from reservoir.segments.index import IndexedChunk, Place, Span

MAGIC = b"RGSEG\r\n\x1a"
VERSION = 1
KEY_BYTES = 16

_PREAMBLE = struct.Struct("<8sHH")
_HEADER = struct.Struct("<I16sQQq")
PREAMBLE_BYTES = _PREAMBLE.size + 4
HEADER_BYTES = PREAMBLE_BYTES + _HEADER.size + 4

_FRAME = struct.Struct("<IQIB3xI")
FRAME_HEAD_BYTES = _FRAME.size
_KIND_AT = 16
FRAME_CHUNK, FRAME_TOMBSTONES, FRAME_INDEX = 1, 2, 3

_CHUNK = struct.Struct("<QIIqqqqqq")
_SECTION = struct.Struct("<QI")
_COLUMN = struct.Struct("<BBH")
_INDEX_HEAD = struct.Struct("<Q")
_INDEX_ENTRY = struct.Struct("<QQQIqqqqqq")
INDEX_END_BYTES = 12
SECTIONS = 3
SECTION_HOT, SECTION_IDS, SECTION_PAYLOAD = range(SECTIONS)


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """The first bytes of a segment. first_seq: the least log position in its first chunk."""

    stream_key: bytes
    chunk_events: int
    number: int
    first_chunk: int
    first_seq: int


@dataclass(frozen=True, slots=True)
class FrameHead:
    """The start of a frame: the sizes of directory and body in bytes, and the directory's CRC."""

    directory_bytes: int
    body_bytes: int
    directory_crc: int
    kind: int

    @property
    def size_bytes(self) -> int:
        """The bytes of the whole frame."""
        return FRAME_HEAD_BYTES + self.directory_bytes + self.body_bytes


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a chunk's body: its offset from the end of the directory, its size and its CRC."""

    offset: int
    size_bytes: int
    crc: int


@dataclass(frozen=True, slots=True)
class ChunkDirectory:
    """The directory of a chunk, which precedes its sections."""

    number: int
    span: Span
    sections: tuple[Section, ...]
    columns: tuple[HotColumn, ...]


def pack_header(header: SegmentHeader) -> bytes:
    """Encode the header of a segment, HEADER_BYTES bytes."""
    assert len(header.stream_key) == KEY_BYTES
    start = _PREAMBLE.pack(MAGIC, VERSION, 0)
    start += zlib.crc32(start).to_bytes(4, "little")
    numbers = header.number, header.first_chunk, header.first_seq
    body = start + _HEADER.pack(header.chunk_events, header.stream_key, *numbers)
    return body + zlib.crc32(body).to_bytes(4, "little")


def parse_header(data: bytes, file: str) -> SegmentHeader:
    """Decode a header. Raises CorruptionError, or FormatVersionError if a newer release wrote it.

    The first PREAMBLE_BYTES are the same in every version.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise CorruptionError(file, 0, "not a segment: the magic bytes are wrong")
    _checked(data, PREAMBLE_BYTES, file)
    _, version, _ = _PREAMBLE.unpack_from(data)
    if version > VERSION:
        raise FormatVersionError(file, version, VERSION)
    _checked(data, HEADER_BYTES, file)
    chunk_events, key, number, first_chunk, first_seq = _HEADER.unpack_from(data, PREAMBLE_BYTES)
    return SegmentHeader(key, chunk_events, number, first_chunk, first_seq)


def _checked(data: bytes, size_bytes: int, file: str) -> None:
    """Check that the last four of the first size_bytes bytes are the CRC of those before. Raises CorruptionError."""
    if len(data) < size_bytes:
        raise CorruptionError(file, len(data), "the header is cut short")
    if zlib.crc32(data[: size_bytes - 4]) != int.from_bytes(data[size_bytes - 4 : size_bytes], "little"):
        raise CorruptionError(file, 0, "the header's CRC does not match")


def check_header(header: SegmentHeader, file: str, stream_key: bytes, chunk_events: int) -> None:
    """Raise ForeignSegmentError if the segment is of another stream or chunk size."""
    if header.stream_key != stream_key:
        raise ForeignSegmentError(file, "stream key", header.stream_key.hex(), stream_key.hex())
    if header.chunk_events != chunk_events:
        raise ForeignSegmentError(file, "number of events per chunk", header.chunk_events, chunk_events)


def pack_frame(kind: int, directory: bytes, body_bytes: int) -> bytes:
    """Encode head and directory of a frame. The body must follow."""
    head = _FRAME.pack(len(directory), body_bytes, zlib.crc32(directory), kind, 0)[:-4]
    return head + zlib.crc32(head).to_bytes(4, "little") + directory


def parse_frame_head(data: bytes, file: str, offset: int) -> FrameHead:
    """Decode the head of a frame. data: at least FRAME_HEAD_BYTES bytes from offset on. Raises CorruptionError."""
    if len(data) < FRAME_HEAD_BYTES:
        raise CorruptionError(file, offset, "a frame's head is cut short")
    directory_bytes, body_bytes, directory_crc, kind, crc = _FRAME.unpack(data[:FRAME_HEAD_BYTES])
    if zlib.crc32(data[: FRAME_HEAD_BYTES - 4]) != crc:
        raise CorruptionError(file, offset, "the CRC of a frame's head does not match")
    return FrameHead(directory_bytes, body_bytes, directory_crc, kind)


def frame_candidates(data: bytes) -> list[int]:
    """Places in data where the head of a frame may begin: they have a known kind, and zeros in the unused bytes."""
    places = len(data) - FRAME_HEAD_BYTES + 1
    if places <= 0:
        return []
    found = np.frombuffer(data, np.uint8)
    fits = (found[_KIND_AT : _KIND_AT + places] >= FRAME_CHUNK) & (
        found[_KIND_AT : _KIND_AT + places] <= FRAME_INDEX
    )
    for k in (1, 2, 3):
        fits &= found[_KIND_AT + k : _KIND_AT + k + places] == 0
    return np.flatnonzero(fits).tolist()


def checked_directory(data: bytes, head: FrameHead, file: str, offset: int) -> bytes:
    """Return the directory of a frame from bytes that begin with its head. CorruptionError if its CRC is wrong."""
    directory = data[FRAME_HEAD_BYTES : FRAME_HEAD_BYTES + head.directory_bytes]
    if len(directory) < head.directory_bytes:
        raise CorruptionError(file, offset, "a frame's directory is cut short")
    if zlib.crc32(directory) != head.directory_crc:
        raise CorruptionError(file, offset, "the CRC of a frame's directory does not match")
    return directory


def pack_chunk(
    number: int, span: Span, columns: Sequence[HotColumn], sections: Sequence[bytes | memoryview]
) -> bytes:
    """Encode head and directory of a chunk's frame. The sections must follow in order.

    The directory is padded to 8 bytes, so that sections are aligned in a buffer that starts with the frame.
    """
    parts = [_CHUNK.pack(number, span.rows, len(columns), *span[1:])]
    parts += [_SECTION.pack(len(section), zlib.crc32(section)) for section in sections]
    for column in columns:
        name = column.name.encode()
        parts.append(_COLUMN.pack(column.kind, 0, len(name)) + name)
    directory = b"".join(parts)
    directory += bytes(-(FRAME_HEAD_BYTES + len(directory)) % 8)
    return pack_frame(FRAME_CHUNK, directory, sum(len(section) for section in sections))


def parse_chunk(directory: bytes) -> ChunkDirectory:
    """Decode the directory of a chunk. The caller must have checked its CRC."""
    number, rows, count, *times = _CHUNK.unpack_from(directory)
    place, offset, sections = _CHUNK.size, 0, []
    for _ in range(SECTIONS):
        size, crc = _SECTION.unpack_from(directory, place)
        sections.append(Section(offset, size, crc))
        place, offset = place + _SECTION.size, offset + size
    return ChunkDirectory(number, Span(rows, *times), tuple(sections), _columns(directory[place:], count))


@lru_cache(maxsize=64)
def _columns(packed: bytes, count: int) -> tuple[HotColumn, ...]:
    """Decode the columns of a chunk. Chunks with equal columns, as most have, share one tuple."""
    place, columns = 0, []
    for _ in range(count):
        kind, _, length = _COLUMN.unpack_from(packed, place)
        place += _COLUMN.size
        columns.append(HotColumn(packed[place : place + length].decode(), ColumnKind(kind)))
        place += length
    return tuple(columns)


def pack_index(segment: int, chunks: Sequence[IndexedChunk]) -> bytes:
    """Encode the index frame that ends a full segment. Its body is its own length, so that it is found from the end."""
    parts = [_INDEX_HEAD.pack(len(chunks))]
    for chunk in chunks:
        assert chunk.place.segment == segment
        parts.append(_INDEX_ENTRY.pack(*chunk.place[1:], *chunk.span))
    frame = pack_frame(FRAME_INDEX, b"".join(parts), INDEX_END_BYTES)
    size = (len(frame) + INDEX_END_BYTES).to_bytes(8, "little")
    return frame + size + zlib.crc32(size).to_bytes(4, "little")


def parse_index_end(data: bytes, file: str) -> int:
    """Decode the length in bytes of the index frame, from the last INDEX_END_BYTES bytes. Raises CorruptionError."""
    if len(data) < INDEX_END_BYTES or zlib.crc32(data[:8]) != int.from_bytes(data[8:], "little"):
        raise CorruptionError(file, 0, "the segment does not end with an index")
    return int.from_bytes(data[:8], "little")


def parse_index(directory: bytes, segment: int, first_chunk: int) -> list[IndexedChunk]:
    """Decode the chunks that an index frame lists. The caller must have checked its CRC."""
    (count,) = _INDEX_HEAD.unpack_from(directory)
    chunks = []
    for k in range(count):
        offset, size, hot, *span = _INDEX_ENTRY.unpack_from(
            directory, _INDEX_HEAD.size + k * _INDEX_ENTRY.size
        )
        chunks.append(IndexedChunk(first_chunk + k, Span(*span), Place(segment, offset, size, hot)))
    return chunks
