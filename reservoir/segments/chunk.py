"""Encodes the rows of a sealed chunk as Arrow data, and decodes any subset of its hot columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reservoir.columns import ColumnKind, HotColumn, StoredColumn
from reservoir.native.jit import address, jit, ld8, ld64, st8, st64
from reservoir.segments.format import pack_chunk
from reservoir.segments.index import Span

_u = np.uint64
_WRITE = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_HASH = pa.binary(16)


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """All rows of a chunk: time, seq int64[n]; ids uint64[n][2]; payloads end to end with offsets int64[n + 1]."""

    time: NDArray[np.int64]
    seq: NDArray[np.int64]
    ids: NDArray[np.uint64]
    payload: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    columns: tuple[StoredColumn, ...]


@dataclass(frozen=True, slots=True)
class HotRows:
    """Decoded rows, from which a frame is made: time, seq int64[n], and those requested columns that the chunk has."""

    rows: int
    time_at: int
    seq_at: int
    columns: tuple[StoredColumn, ...]
    size_bytes: int
    keep: tuple[Any, ...]


# The system's allocator is used, because Arrow's own pool keeps half as much memory again, which no limit counts.
_POOL = pa.system_memory_pool()


@jit
def _split_nulls(bitmap: int, offset: int, n: int, nulls: int) -> None:
    """Convert Arrow's validity bits to one byte per row, 1 = null."""
    for k in range(n):
        bit = offset + k
        st8(nulls + k, np.uint8(1) - ((ld8(bitmap + (bit >> 3)) >> np.uint8(bit & 7)) & np.uint8(1)))


@jit
def _references(offsets: int, n: int, refs: int) -> None:
    """Convert Arrow's int64 offsets to references offset << 24 | length."""
    for k in range(n):
        begin = ld64(offsets + k * 8)
        st64(refs + k * 8, (begin << _u(24)) | (ld64(offsets + k * 8 + 8) - begin))


def encode_chunk(number: int, span: Span, rows: ChunkRows) -> tuple[list[bytes | memoryview], int]:
    """Return the bytes of a chunk's frame in pieces, and how many of them head, directory and hot section have."""
    hot = _encode(
        ["time", "seq", *(stored.column.name for stored in rows.columns)],
        [
            _plain(pa.int64(), rows.time),
            _plain(pa.int64(), rows.seq),
            *(_arrow(stored, len(rows.time)) for stored in rows.columns),
        ],
    )
    n = len(rows.time)
    ids = _encode(["id"], [pa.FixedSizeBinaryArray.from_buffers(_HASH, n, [None, pa.py_buffer(rows.ids)])])
    buffers = [None, pa.py_buffer(rows.offsets), pa.py_buffer(rows.payload)]
    payload = _encode(["payload"], [pa.LargeBinaryArray.from_buffers(pa.large_binary(), n, buffers)])
    columns = [stored.column for stored in rows.columns]
    head = pack_chunk(number, span, columns, [hot, ids, payload])
    return [head, hot, ids, payload], len(head) + len(hot)


def decode_hot(
    section: bytes | memoryview, stored: Sequence[HotColumn], requested: Sequence[HotColumn]
) -> HotRows:
    """Decode time, seq and those requested columns that the chunk has. stored: all columns of the chunk, in order."""
    reading = _reading(tuple(stored), tuple(requested))
    reader = pa.ipc.open_stream(pa.BufferReader(section), options=reading.options, memory_pool=_POOL)
    batch = reader.read_next_batch()
    n = batch.num_rows
    time, seq = (_data(batch.column(k), np.int64, n) for k in (0, 1))
    columns = tuple([_stored(column, batch.column(place), n) for column, place in reading.columns])
    size = 16 * n + sum([column.size_bytes for column in columns])
    return HotRows(n, address(time), address(seq), columns, size, (time, seq))


class _Reading(NamedTuple):
    """How to read some columns of a chunk: Arrow's options, and the index of each column in the result."""

    options: Any
    columns: tuple[tuple[HotColumn, int], ...]


@lru_cache(maxsize=256)
def _reading(stored: tuple[HotColumn, ...], requested: tuple[HotColumn, ...]) -> _Reading:
    kept = [column for column in requested if column in stored]
    fields = [0, 1, *sorted(2 + stored.index(column) for column in kept)]
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    return _Reading(options, tuple((column, fields.index(2 + stored.index(column))) for column in kept))


def decode_ids(section: bytes | memoryview) -> NDArray[np.uint64]:
    """Decode the ids, uint64[n][2]: hi, lo."""
    array = _only_column(section)
    data = np.frombuffer(array.buffers()[1], np.uint64, 2 * len(array), offset=16 * array.offset)
    return data.reshape(-1, 2)


def decode_payload(section: bytes | memoryview) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Decode the raw records: end to end (uint8), and their offsets int64[n + 1]."""
    array = _only_column(section)
    offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, offset=8 * array.offset)
    data = array.buffers()[2]
    return (np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)), offsets


def _only_column(section: bytes | memoryview) -> Any:
    options = pa.ipc.IpcReadOptions(use_threads=False)
    return pa.ipc.open_stream(pa.BufferReader(section), options=options).read_next_batch().column(0)


def _encode(names: list[str], arrays: list[Any]) -> memoryview:
    batch = pa.RecordBatch.from_arrays(arrays, names=[f"{k}:{name}" for k, name in enumerate(names)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITE) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


def _plain(type_: pa.DataType, values: NDArray[Any]) -> Any:
    """Make an Arrow array of numbers. `pa.array` would import pandas if it is installed, which takes 0.3 s."""
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(values)])


def _arrow(stored: StoredColumn, n: int) -> Any:
    """Make an Arrow array of a column: uint64, binary, or a dictionary of 16-byte hashes."""
    if stored.column.kind is ColumnKind.ENTITY:
        codes, pairs = stored.keep
        values = pa.FixedSizeBinaryArray.from_buffers(_HASH, stored.count, [None, pa.py_buffer(pairs)])
        return pa.DictionaryArray.from_arrays(_plain(pa.uint32(), codes[:n]), values)
    validity, nulls = None, 0
    if stored.nulls_at:
        flags = stored.keep[1]
        nulls, validity = int(flags.sum()), pa.py_buffer(np.packbits(flags == 0, bitorder="little"))
    if stored.column.kind is ColumnKind.WORD:
        return pa.UInt64Array.from_buffers(pa.uint64(), n, [validity, pa.py_buffer(stored.keep[0])], nulls)
    refs, _, heap = stored.keep
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(refs & _u(0xFFFFFF), out=offsets[1:].view(np.uint64))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(heap[: stored.heap_bytes])]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), n, buffers, nulls)


def _stored(column: HotColumn, array: Any, n: int) -> StoredColumn:
    if column.kind is ColumnKind.ENTITY:
        count = len(array.dictionary)
        codes = _data(array.indices, np.uint32, n)
        pairs = _data(array.dictionary, np.uint64, 2 * count, 16)
        size = 4 * n + 16 * count
        return StoredColumn(
            column,
            0,
            0,
            0,
            0,
            address(codes),
            address(pairs),
            count,
            size,
            (codes, pairs),
        )
    nulls_at = 0
    keep: tuple[Any, ...] = ()
    if array.null_count:
        nulls, bitmap = np.empty(n, np.uint8), np.frombuffer(array.buffers()[0], np.uint8)
        _split_nulls(address(bitmap), array.offset, n, address(nulls))
        nulls_at, keep = address(nulls), (nulls,)
    size = 8 * n + (n if nulls_at else 0)
    if column.kind is ColumnKind.WORD:
        words = _data(array, np.uint64, n)
        return StoredColumn(column, address(words), nulls_at, 0, 0, 0, 0, 0, size, (*keep, words))
    refs = np.empty(n, np.uint64)
    offsets, buffer = _data(array, np.int64, n + 1), array.buffers()[2]
    _references(address(offsets), n, address(refs))
    heap = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
    return StoredColumn(
        column,
        address(refs),
        nulls_at,
        address(heap),
        len(heap),
        0,
        0,
        0,
        size + 8 * n + len(heap),
        (*keep, refs, heap),
    )


def _data(array: Any, dtype: type[np.generic], n: int, width_bytes: int | None = None) -> NDArray[Any]:
    """Return the first n items of an Arrow array's values (for strings: of their offsets), without copying them.

    width_bytes: bytes of a value; None if a value is one item.
    """
    width = np.dtype(dtype).itemsize if width_bytes is None else width_bytes
    return np.frombuffer(array.buffers()[1], dtype, n, offset=width * array.offset)
