"""Takes some of many records, for each of the tasks that a batch goes to (`stream_tasks.py`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from railgun.wire.records import Records
from reservoir.native.jit import address, copy_bytes, jit, ldi64


def take_records(records: Records, rows: NDArray[np.int64] | None) -> Records:
    """Return some of many records, in the order of `rows`; None returns all of them."""
    if rows is None:
        return records
    lengths = np.diff(records.offsets)[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffer = np.empty(max(1, int(offsets[-1])), np.uint8)
    _gather(
        address(records.buffer),
        address(records.offsets),
        address(rows),
        len(rows),
        address(buffer),
        address(offsets),
    )
    return Records(buffer, offsets)


@jit
def _gather(source: Any, starts: Any, rows: Any, n: Any, target: Any, offsets: Any) -> None:
    """Copy record rows[i] to target + offsets[i], for n of them."""
    for i in range(n):
        row = ldi64(rows + 8 * i)
        start = ldi64(starts + 8 * row)
        copy_bytes(target + ldi64(offsets + 8 * i), source + start, ldi64(starts + 8 * row + 8) - start)
