"""Maps keys to partitions by the murmur2 hash of their bytes, as Kafka's default partitioner does."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK, Column
from railgun.wire.long_text import longs_as_text
from railgun.wire.schema import WireKind
from reservoir.native.jit import address, bytes_address, jit, ld8, ldi64, sti64

NOT_SENT = -1

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)
_R = np.uint32(24)
_POSITIVE = np.uint32(0x7FFFFFFF)


@jit
def _word32(p: Any) -> Any:
    return (
        np.uint32(ld8(p))
        | np.uint32(np.uint32(ld8(p + 1)) << np.uint32(8))
        | np.uint32(np.uint32(ld8(p + 2)) << np.uint32(16))
        | np.uint32(np.uint32(ld8(p + 3)) << np.uint32(24))
    )


@jit
def murmur2(p: Any, n: Any) -> Any:
    """Return Kafka's murmur2 (uint32) of the n bytes at address p."""
    h = np.uint32(_SEED ^ np.uint32(n))
    for i in range(n >> 2):
        k = np.uint32(_word32(p + 4 * i) * _M)
        k = np.uint32(np.uint32(k ^ np.uint32(k >> _R)) * _M)
        h = np.uint32(np.uint32(h * _M) ^ k)
    rest, left = p + (n & ~3), n & 3
    if left >= 3:
        h = np.uint32(h ^ np.uint32(np.uint32(ld8(rest + 2)) << np.uint32(16)))
    if left >= 2:
        h = np.uint32(h ^ np.uint32(np.uint32(ld8(rest + 1)) << np.uint32(8)))
    if left >= 1:
        h = np.uint32(np.uint32(h ^ np.uint32(ld8(rest))) * _M)
    h = np.uint32(np.uint32(h ^ np.uint32(h >> np.uint32(13))) * _M)
    return np.uint32(h ^ np.uint32(h >> np.uint32(15)))


@jit
def _partition(p: Any, n: Any, partitions: Any) -> Any:
    return np.int64(murmur2(p, n) & _POSITIVE) % partitions


@jit
def _partitions(refs: Any, nulls: Any, heap: Any, n: Any, partitions: Any, out: Any) -> None:
    for row in range(n):
        if nulls != 0 and ld8(nulls + row) != np.uint8(0):
            sti64(out + 8 * row, np.int64(NOT_SENT))
            continue
        ref = ldi64(refs + 8 * row)
        key, length = heap + (ref >> REF_LENGTH_BITS), ref & REF_LENGTH_MASK
        sti64(out + 8 * row, _partition(key, length, partitions))


def partition_key(value: str | int) -> bytes:
    """Return the bytes that are hashed for a partitioner's value: its UTF-8, or the ASCII decimal of a long."""
    return str(value).encode()


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, for a number of partitions."""
    return int(_partition(bytes_address(key), len(key), partitions))


def partition_column(column: Column, partitions: int) -> NDArray[np.int64]:
    """Return the partition of each row of a string or long column: int64[n], NOT_SENT where the value is null."""
    keys = longs_as_text(column) if column.type.kind is WireKind.LONG else column
    assert keys.heap is not None
    nulls = 0 if keys.nulls is None else address(keys.nulls)
    out = np.empty(len(keys.words), np.int64)
    _partitions(address(keys.words), nulls, address(keys.heap), len(out), partitions, address(out))
    return out
