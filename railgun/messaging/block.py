"""Encodes and decodes blocks: consecutive records of a partition under one key, at four bytes of overhead each.

FORMAT.md beside this file has the layout.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from railgun.wire.records import Records
from reservoir.native.jit import address, copy_bytes, jit, ld32, ldi64, sti64

BLOCK_LIMIT_BYTES = 256 * 1024
BLOCK_LIMIT_RECORDS = 4_096

_VERSION = 1
_HEAD = struct.Struct("<II")
_HEAD_BYTES = _HEAD.size


def make_blocks(appended: Sequence[Records]) -> Iterator[tuple[int, bytes]]:
    """Yield (how many records, the encoded block) for blocks that hold the records of several appends in order.

    A block has at most BLOCK_LIMIT_RECORDS records, and at most BLOCK_LIMIT_BYTES unless a single record is larger.
    """
    if len(appended) == 1 and len(appended[0]) == 1:
        record = appended[0].joined()
        yield 1, _HEAD.pack(_VERSION, 1) + len(record).to_bytes(4, "little") + record
        return
    payload = b"".join(each.joined() for each in appended)
    ends = np.cumsum(np.concatenate([np.diff(each.offsets) for each in appended]))
    first, base = 0, 0
    while first < len(ends):
        after = int(np.searchsorted(ends, base + BLOCK_LIMIT_BYTES, "right"))
        after = min(max(after, first + 1), first + BLOCK_LIMIT_RECORDS)
        end = int(ends[after - 1])
        table = (ends[first:after] - base).astype("<u4").tobytes()
        yield after - first, _HEAD.pack(_VERSION, after - first) + table + payload[base:end]
        first, base = after, end


def check_block(value: bytes) -> int:
    """Return how many records a block holds; 0 if the bytes are not a block of this version."""
    if len(value) < _HEAD_BYTES:
        return 0
    version, n = _HEAD.unpack_from(value)
    table_end = _HEAD_BYTES + 4 * n
    if version != _VERSION or n == 0 or len(value) < table_end:
        return 0
    payload = int.from_bytes(value[table_end - 4 : table_end], "little")
    return n if len(value) == table_end + payload else 0


def open_blocks(values: list[bytes], skip: int, max_records: int, max_bytes: int) -> Records:
    """Return the records of consecutive blocks.

    The first `skip` records are left out. There is at least one record, and as many as fit both limits.
    """
    if len(values) == 1:
        return _open_one(values[0], skip, max_records, max_bytes)
    joined = np.frombuffer(b"".join(values), np.uint8)
    starts = np.fromiter(accumulate(map(len, values), initial=0), np.int64, len(values) + 1)
    total = sum(_HEAD.unpack_from(value)[1] for value in values)
    out = np.empty(len(joined), np.uint8)
    bounds = np.empty(total + 1, np.int64)
    count = _gather(
        address(joined),
        address(starts),
        len(values),
        skip,
        max_records,
        max_bytes,
        address(out),
        address(bounds),
    )
    return Records(out, bounds[: count + 1])


def _open_one(value: bytes, skip: int, max_records: int, max_bytes: int) -> Records:
    n = _HEAD.unpack_from(value)[1]
    bounds = np.empty(n + 1, np.int64)
    bounds[0] = 0
    bounds[1:] = np.frombuffer(value, "<u4", n, _HEAD_BYTES)
    bounds += _HEAD_BYTES + 4 * n
    bounds = bounds[skip : skip + max_records + 1]
    if bounds[-1] - bounds[0] > max_bytes:
        fitting = int(np.searchsorted(bounds, bounds[0] + max_bytes, "right"))
        bounds = bounds[: max(fitting, 2)]
    return Records(np.frombuffer(value, np.uint8), bounds)


@jit
def _gather(
    joined: Any, starts: Any, blocks: Any, skip: Any, max_records: Any, max_bytes: Any, out: Any, bounds: Any
) -> Any:
    """Copy the records of several blocks into `out`, and their bounds. Returns how many records there are.

    All arguments but counts are addresses. starts: int64[blocks], where each block starts in `joined`.
    """
    count, used = np.int64(0), np.int64(0)
    sti64(bounds, np.int64(0))
    for b in range(blocks):
        block = joined + ldi64(starts + 8 * b)
        n = np.int64(ld32(block + 4))
        ends = block + _HEAD_BYTES
        payload = ends + 4 * n
        for i in range(skip, n):
            start = np.int64(ld32(ends + 4 * i - 4)) if i > 0 else np.int64(0)
            size = np.int64(ld32(ends + 4 * i)) - start
            if count > 0 and (count >= max_records or used + size > max_bytes):
                return count
            copy_bytes(out + used, payload + start, size)
            used += size
            count += 1
            sti64(bounds + 8 * count, used)
        skip = max(skip - n, 0)
    return count
