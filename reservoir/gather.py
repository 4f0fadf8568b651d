"""Copies chosen rows of columns into new, dense arrays, the form in which a chunk is encoded and read.

The open region and `ChunkSource` call it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reservoir.columns import ColumnData, ColumnKind, HotColumn, StoredColumn
from reservoir.native.jit import address, copy_bytes, jit, ld8, ld32, ld64, ldi64, st8, st32, st64, sti64

_u = np.uint64
_LENGTH = np.uint64(0xFFFFFF)
_OFFSET = np.uint64((1 << 38) - 1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.uint32(0xFFFFFFFF)


@jit
def _words64(source: int, slots: int, n: int, target: int) -> None:
    for k in range(n):
        st64(target + k * 8, ld64(source + np.int64(ld32(slots + k * 4)) * 8))


@jit
def _words_nulls(words: int, nulls: int, slots: int, n: int, to_words: int, to_nulls: int) -> Any:
    """Copy the words (0 for a null) and the nulls of rows. Returns how many are null."""
    count: Any = 0
    for k in range(n):
        slot = np.int64(ld32(slots + k * 4))
        null = np.uint8(0) if nulls == 0 else ld8(nulls + slot)
        st8(to_nulls + k, null)
        st64(to_words + k * 8, _u(0) if null != 0 else ld64(words + slot * 8))
        count += np.int64(null != 0)
    return count


@jit
def _string_bytes(refs: int, nulls: int, slots: int, n: int) -> Any:
    """How many bytes the strings of the rows have together."""
    total: Any = 0
    for k in range(n):
        slot = np.int64(ld32(slots + k * 4))
        if nulls == 0 or ld8(nulls + slot) == 0:
            total += np.int64(ld64(refs + slot * 8) & _LENGTH)
    return total


@jit
def _strings(
    refs: int, nulls: int, heaps: int, slots: int, n: int, to_refs: int, to_nulls: int, heap: int
) -> Any:
    """Copy the strings of the rows to `heap` in order. Returns how many are null."""
    count: Any = 0
    place: Any = 0
    for k in range(n):
        slot = np.int64(ld32(slots + k * 4))
        null = np.uint8(0) if nulls == 0 else ld8(nulls + slot)
        ref = _u(0) if null != 0 else ld64(refs + slot * 8)
        length = np.int64(ref & _LENGTH)
        source = ldi64(heaps + np.int64(ref >> _u(62)) * 8) + np.int64((ref >> _u(24)) & _OFFSET)
        if length != 0:
            copy_bytes(heap + place, source, length)
        st64(to_refs + k * 8, (_u(place) << _u(24)) | _u(length))
        st8(to_nulls + k, null)
        place += length
        count += np.int64(null != 0)
    return count


@jit
def _pair_codes(pairs: int, slots: int, n: int, table: int, mask: int, codes: int, distinct: int) -> Any:
    """Number the distinct pairs of the rows in the order of their first occurrence. Returns how many there are.

    codes: gets the number of each row's pair, its code. distinct: gets the pair of each code.
    table: uint32[mask + 1], all ones.
    """
    count = 0
    for k in range(n):
        slot = np.int64(ld32(slots + k * 4))
        hi, lo = ld64(pairs + slot * 16), ld64(pairs + slot * 16 + 8)
        place = np.int64((lo * _MIX) >> _u(33)) & mask
        code = ld32(table + place * 4)
        while code != _EMPTY and (
            ld64(distinct + np.int64(code) * 16) != hi or ld64(distinct + np.int64(code) * 16 + 8) != lo
        ):
            place = (place + 1) & mask
            code = ld32(table + place * 4)
        if code == _EMPTY:
            code = np.uint32(count)
            st32(table + place * 4, code)
            st64(distinct + count * 16, hi)
            st64(distinct + count * 16 + 8, lo)
            count += 1
        st32(codes + k * 4, code)
    return count


@jit
def _payload_bytes(lengths: int, slots: int, n: int, offsets: int) -> Any:
    """Write the offsets int64[n + 1] that the rows' payloads have when laid end to end. Returns their total bytes."""
    total = 0
    sti64(offsets, 0)
    for k in range(n):
        total += ldi64(lengths + np.int64(ld32(slots + k * 4)) * 8)
        sti64(offsets + (k + 1) * 8, total)
    return total


@jit
def _payloads(arena: int, mask: int, places: int, slots: int, n: int, offsets: int, target: int) -> None:
    for k in range(n):
        place = ldi64(places + np.int64(ld32(slots + k * 4)) * 8) & mask
        begin, end = ldi64(offsets + k * 8), ldi64(offsets + k * 8 + 8)
        copy_bytes(target + begin, arena + place, end - begin)


@jit
def _pair_up(hi: int, lo: int, n: int, pairs: int) -> None:
    for k in range(n):
        st64(pairs + k * 16, ld64(hi + k * 8))
        st64(pairs + k * 16 + 8, ld64(lo + k * 8))


def gather_words(source: NDArray[Any], slots: NDArray[np.uint32]) -> NDArray[Any]:
    """Return source[slots] for a 64-bit array, without holding the interpreter lock."""
    target = np.empty(len(slots), source.dtype)
    _words64(address(source), address(slots), len(slots), address(target))
    return target


def gather_payloads(
    arena: NDArray[np.uint8], places: NDArray[np.int64], lengths: NDArray[np.int64], slots: NDArray[np.uint32]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the payloads of the slots end to end (uint8), and their offsets int64[n + 1]."""
    n = len(slots)
    offsets = np.empty(n + 1, np.int64)
    size = int(_payload_bytes(address(lengths), address(slots), n, address(offsets)))
    payload = np.empty(max(1, size), np.uint8)
    _payloads(
        address(arena), len(arena) - 1, address(places), address(slots), n, address(offsets), address(payload)
    )
    return payload[:size], offsets


def gather_word_column(column: HotColumn, words: int, nulls: int, slots: NDArray[np.uint32]) -> StoredColumn:
    """Copy rows of a WORD column. words, nulls: addresses (nulls 0: none is null)."""
    n = len(slots)
    to_words, to_nulls = np.empty(n, np.uint64), np.empty(n, np.uint8)
    count = _words_nulls(words, nulls, address(slots), n, address(to_words), address(to_nulls))
    nulls_at, keep = (address(to_nulls), (to_words, to_nulls)) if count else (0, (to_words,))
    return StoredColumn(column, address(to_words), nulls_at, 0, 0, 0, 0, 0, 9 * n, keep)


def gather_string_column(
    column: HotColumn, refs: int, nulls: int, heaps: tuple[int, ...], slots: NDArray[np.uint32]
) -> StoredColumn:
    """Copy rows of a STRING column, with their bytes end to end in one heap. refs, nulls, heaps: addresses."""
    n = len(slots)
    size = int(_string_bytes(refs, nulls, address(slots), n))
    to_refs, to_nulls, heap = np.empty(n, np.uint64), np.empty(n, np.uint8), np.empty(max(1, size), np.uint8)
    bases = np.zeros(4, np.int64)
    bases[: len(heaps)] = heaps
    count = _strings(
        refs, nulls, address(bases), address(slots), n, address(to_refs), address(to_nulls), address(heap)
    )
    nulls_at = address(to_nulls) if count else 0
    return StoredColumn(
        column,
        address(to_refs),
        nulls_at,
        address(heap),
        size,
        0,
        0,
        0,
        9 * n + size,
        (to_refs, to_nulls, heap),
    )


def gather_entity_column(column: HotColumn, pairs: int, slots: NDArray[np.uint32]) -> StoredColumn:
    """Copy rows of an ENTITY column, as codes and the distinct pairs. pairs: an address."""
    n = len(slots)
    size = 1 << max(4, (2 * n - 1).bit_length())
    table = np.full(size, _EMPTY, np.uint32)
    codes, distinct = np.empty(max(1, n), np.uint32), np.empty((max(1, n), 2), np.uint64)
    count = int(
        _pair_codes(pairs, address(slots), n, address(table), size - 1, address(codes), address(distinct))
    )
    distinct = distinct[: max(1, count)].copy()
    return StoredColumn(
        column, 0, 0, 0, 0, address(codes), address(distinct), count, 4 * n + 16 * count, (codes, distinct)
    )


def gather_computed(column: HotColumn, data: ColumnData, n: int) -> StoredColumn:
    """Bring a column that was computed for n rows into the form of a sealed chunk."""
    slots = np.arange(n, dtype=np.uint32)
    if column.kind is ColumnKind.ENTITY:
        assert data.hi is not None
        assert data.lo is not None
        pairs = pair_up(data.hi, data.lo)
        return gather_entity_column(column, address(pairs), slots)
    assert data.words is not None
    words = np.ascontiguousarray(data.words)
    nulls = None if data.nulls is None else np.ascontiguousarray(data.nulls)
    nulls_at = 0 if nulls is None else address(nulls)
    if column.kind is ColumnKind.STRING:
        heaps = tuple(address(heap) for heap in data.heaps)
        return gather_string_column(column, address(words), nulls_at, heaps, slots)
    return gather_word_column(column, address(words), nulls_at, slots)


def pair_up(hi: NDArray[np.uint64], lo: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Join two halves to uint64[n][2]."""
    pairs = np.empty((max(1, len(hi)), 2), np.uint64)
    hi, lo = np.ascontiguousarray(hi), np.ascontiguousarray(lo)
    _pair_up(address(hi), address(lo), len(hi), address(pairs))
    return pairs
