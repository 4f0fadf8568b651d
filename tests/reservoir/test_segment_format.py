"""Headers, frames and directories: what is packed is parsed again, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reservoir.columns import ColumnKind, HotColumn
from reservoir.errors import CorruptionError
from reservoir.segments.format import (
    FRAME_CHUNK,
    FRAME_HEAD_BYTES,
    FRAME_INDEX,
    HEADER_BYTES,
    INDEX_END_BYTES,
    SegmentHeader,
    checked_directory,
    pack_chunk,
    pack_header,
    pack_index,
    parse_chunk,
    parse_frame_head,
    parse_header,
    parse_index,
    parse_index_end,
)
from reservoir.segments.index import IndexedChunk, Place, Span

i64 = st.integers(-(1 << 63), (1 << 63) - 1)
u32 = st.integers(0, (1 << 32) - 1)
u63 = st.integers(0, (1 << 63) - 1)
spans = st.builds(Span, u32, i64, i64, i64, i64, i64, i64)
headers = st.builds(SegmentHeader, st.binary(min_size=16, max_size=16), u32, u63, u63, i64)
columns = st.lists(st.builds(HotColumn, st.text(max_size=20), st.sampled_from(list(ColumnKind))), max_size=5)


@given(headers)
def test_header(header: SegmentHeader) -> None:
    data = pack_header(header)
    assert len(data) == HEADER_BYTES
    assert parse_header(data + b"more", "file") == header


@given(u63, spans, columns, st.lists(st.binary(max_size=9), min_size=3, max_size=3))
def test_chunk_frame(number: int, span: Span, hot: list[HotColumn], sections: list[bytes]) -> None:
    data = pack_chunk(number, span, hot, sections)
    head = parse_frame_head(data, "file", 0)
    assert head.kind == FRAME_CHUNK
    assert head.size_bytes == len(data) + sum(map(len, sections))
    assert len(data) % 8 == 0
    chunk = parse_chunk(checked_directory(data, head, "file", 0))
    assert (chunk.number, chunk.span, list(chunk.columns)) == (number, span, hot)
    assert [section.size_bytes for section in chunk.sections] == [len(section) for section in sections]
    assert [section.offset for section in chunk.sections][2] == len(sections[0]) + len(sections[1])


@given(st.lists(st.tuples(spans, u63, u63, u63), max_size=6), u63)
def test_index_frame(entries: list[tuple[Span, int, int, int]], first: int) -> None:
    chunks = [
        IndexedChunk(first + k, span, Place(3, offset, size, hot))
        for k, (span, offset, size, hot) in enumerate(entries)
    ]
    data = pack_index(3, chunks)
    head = parse_frame_head(data, "file", 0)
    assert (head.kind, head.size_bytes) == (FRAME_INDEX, len(data))
    assert parse_index(checked_directory(data, head, "file", 0), 3, first) == chunks
    assert parse_index_end(data[-INDEX_END_BYTES:], "file") == len(data)


@pytest.mark.parametrize("size", [0, 5, FRAME_HEAD_BYTES - 1])
def test_a_short_head_is_told_with_its_place(size: int) -> None:
    data = pack_chunk(1, Span(1, 0, 0, 0, 0, 0, 0), [], [b"", b"", b""])
    with pytest.raises(CorruptionError, match=r"file, byte 77: a frame's head is cut short\. Restore"):
        parse_frame_head(data[:size], "file", 77)
