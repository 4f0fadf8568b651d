"""Hashes of entities, by which an event's row in a group-by is found, and hashes of string arguments.

`Arrivals` (railgun/task/arrivals.py) has them made for each batch. An entity is identified by the SipHash-1-3-128 of
its group-by's tag and the canonical bytes of its key. The bytes of a field are a tag byte (0 null, 1 word, 2 string),
then the 8 bytes of the word, or the length (4 bytes) and the bytes of the string. The key of the hash is the stream's
secret (docs/decisions/0003).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reservoir.native.jit import address, copy_bytes, jit, ld8, ld64, ldi64, st8, st32, st64
from reservoir.siphash import siphash128, siphash128_bytes

_u = np.uint64

# The context: n, two words of the key, scratch, the number and table of hash columns, their sources, three heaps.
_N, _KEY0, _KEY1, _SCRATCH, _COLUMNS, _TABLE, _SOURCES, _HEAPS = range(8)
_CONTEXT_WORDS = _HEAPS + 3
# One row of the table of hash columns.
_IS_ENTITY, _TAG, _FIRST, _COUNT, _OUT_HI, _OUT_LO = range(6)
_COLUMN_WORDS = 6
# One row of the table of sources.
_WORDS, _NULLS, _IS_STRING = range(3)
_SOURCE_WORDS = 3

STRING_BYTES_MAX = 1 << 16
_STRING_ITEM = _u(1 << 63)


@jit
def string_at(heaps: Any, ref: Any) -> Any:
    """The address of the string of a reference, heap << 62 | offset << 24 | length."""
    heap = np.int64(ref >> _u(62))
    return ldi64(heaps + heap * 8) + np.int64((ref >> _u(24)) & _u((1 << 38) - 1))


@jit
def _key_bytes(ctx: Any, column: Any, i: Any, scratch: Any) -> Any:
    """Write the canonical key of row i at scratch, behind the 8 bytes of the tag. Returns the length of both."""
    heaps = ctx + _HEAPS * 8
    first, count = ldi64(column + _FIRST * 8), ldi64(column + _COUNT * 8)
    used: Any = 8
    for s in range(first, first + count):
        source = ldi64(ctx + _SOURCES * 8) + s * _SOURCE_WORDS * 8
        if ld8(ldi64(source + _NULLS * 8) + i) != 0:
            st8(scratch + used, np.uint8(0))
            used += 1
            continue
        word = ld64(ldi64(source + _WORDS * 8) + i * 8)
        if ldi64(source + _IS_STRING * 8) == 0:
            st8(scratch + used, np.uint8(1))
            st64(scratch + used + 1, word)
            used += 9
        else:
            length = np.int64(word & _u(0xFFFFFF))
            st8(scratch + used, np.uint8(2))
            st32(scratch + used + 1, np.uint32(length))
            copy_bytes(scratch + used + 5, string_at(heaps, word), length)
            used += 5 + length
    return used


@jit
def _hash_strings(ctx: Any, column: Any, n: Any, k0: Any, k1: Any) -> Any:
    """Write what identifies each string of a column in state: its hash with the top bit set, or (0, 0) for null."""
    heaps = ctx + _HEAPS * 8
    out_hi, out_lo = ldi64(column + _OUT_HI * 8), ldi64(column + _OUT_LO * 8)
    source = ldi64(ctx + _SOURCES * 8) + ldi64(column + _FIRST * 8) * _SOURCE_WORDS * 8
    words, nulls = ldi64(source + _WORDS * 8), ldi64(source + _NULLS * 8)
    for i in range(n):
        hi, lo = _u(0), _u(0)
        if ld8(nulls + i) == 0:
            word = ld64(words + i * 8)
            hi, lo = siphash128(string_at(heaps, word), np.int64(word & _u(0xFFFFFF)), k0, k1)
            hi |= _STRING_ITEM
        st64(out_hi + i * 8, hi)
        st64(out_lo + i * 8, lo)


@jit
def hash_columns(ctx: Any) -> Any:
    """Fill every hash column for the n rows of the batch."""
    n, scratch = ldi64(ctx + _N * 8), ldi64(ctx + _SCRATCH * 8)
    k0, k1 = ld64(ctx + _KEY0 * 8), ld64(ctx + _KEY1 * 8)
    for c in range(ldi64(ctx + _COLUMNS * 8)):
        column = ldi64(ctx + _TABLE * 8) + c * _COLUMN_WORDS * 8
        if ldi64(column + _IS_ENTITY * 8) == 0:
            _hash_strings(ctx, column, n, k0, k1)
            continue
        out_hi, out_lo = ldi64(column + _OUT_HI * 8), ldi64(column + _OUT_LO * 8)
        st64(scratch, ld64(column + _TAG * 8))
        for i in range(n):
            hi, lo = siphash128(scratch, _key_bytes(ctx, column, i, scratch), k0, k1)
            st64(out_hi + i * 8, hi)
            st64(out_lo + i * 8, lo)


@dataclass(frozen=True, slots=True)
class HashColumn:
    """One column of 128-bit hashes. sources: the indexes of the input columns that are hashed.

    An entity column has the tag of its group-by. A string column (tag None) hashes one string input.
    """

    tag: str | None
    sources: tuple[int, ...]


class EntityHasher:
    """Hashes the entities and string arguments of batches, into arrays that are reused between batches.

    key: the 16 secret bytes of the stream. The addresses of input columns and heaps are passed with each batch.
    """

    def __init__(self, columns: Sequence[HashColumn], is_string: Sequence[bool], key: bytes) -> None:
        k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
        self.columns = tuple(columns)
        self._context = np.zeros(_CONTEXT_WORDS, np.int64)
        self._context.view(np.uint64)[[_KEY0, _KEY1]] = [k0, k1]
        self._table = np.zeros((max(1, len(columns)), _COLUMN_WORDS), np.int64)
        total = sum(len(column.sources) for column in columns)
        self._sources = np.zeros((max(1, total), _SOURCE_WORDS), np.int64)
        self._inputs: list[int] = []
        for c, column in enumerate(columns):
            tag = 0 if column.tag is None else siphash128_bytes(column.tag.encode(), k0, k1)[0]
            self._table[c, [_IS_ENTITY, _FIRST, _COUNT]] = [
                column.tag is not None,
                len(self._inputs),
                len(column.sources),
            ]
            self._table.view(np.uint64)[c, _TAG] = tag
            self._inputs += column.sources
        self._sources[: len(self._inputs), _IS_STRING] = [is_string[source] for source in self._inputs]
        widest = max((len(column.sources) for column in columns), default=0)
        self._scratch = np.zeros(16 + widest * (STRING_BYTES_MAX + 16), np.uint8)
        self._context[[_SCRATCH, _COLUMNS, _TABLE, _SOURCES]] = [
            address(self._scratch), len(columns), address(self._table), address(self._sources),
        ]  # fmt: skip
        self._capacity = 0
        self._context_address = address(self._context)
        self._hold(256)

    def hash(
        self, n: int, words: npt.NDArray[np.int64], nulls: npt.NDArray[np.int64], heaps: Sequence[int]
    ) -> None:
        """Hash n rows. words, nulls: int64 arrays of the addresses of the input columns; heaps: three addresses."""
        if n > self._capacity:
            self._hold(max(n, 2 * self._capacity))
        self._context[_N] = n
        self._context[_HEAPS : _HEAPS + 3] = heaps
        self._sources[: len(self._inputs), _WORDS] = words[self._inputs]
        self._sources[: len(self._inputs), _NULLS] = nulls[self._inputs]
        hash_columns(self._context_address)

    def _hold(self, n: int) -> None:
        self._capacity = n
        self.hi = np.zeros((max(1, len(self.columns)), n), np.uint64)
        self.lo = np.zeros((max(1, len(self.columns)), n), np.uint64)
        step = np.arange(len(self.columns)) * n * 8
        self._table[: len(self.columns), _OUT_HI] = address(self.hi) + step
        self._table[: len(self.columns), _OUT_LO] = address(self.lo) + step
