"""Reads the results of keys from the present state, for `railgun/task/value_reader.py`, which answers value queries. It
changes nothing.
"""

from typing import Any

import numpy as np

from railgun.interpreter import layout as at
from railgun.interpreter.results import bucket_at, write_results
from reservoir.native.jit import jit, ldi64, sti64

_BEFORE, _RESULTS = range(2)


@jit
def read(ctx: Any) -> Any:
    """Write the results of every node for keys 0 to RUN_LIMIT; 0, or a status with the place to continue from stored.

    RUN_ROWS has the row of each key, by group; it may be a row of zeros, which an empty group has. RUN_EMPTY is such a
    row, wide enough for every group: it stands in for the row of a tumbling node whose bucket is past. RUN_CLOCK has
    one clock.  The caller must set the RUN_AT_ words to 0 before the first call.
    """
    clock, limit = ldi64(ldi64(ctx + at.RUN_CLOCK * 8)), ldi64(ctx + at.RUN_LIMIT * 8)
    stride = ldi64(ctx + at.RUN_STRIDE * 8)
    record, stage = ldi64(ctx + at.RUN_AT_RECORD * 8), ldi64(ctx + at.RUN_AT_STAGE * 8)
    for n in range(ldi64(ctx + at.RUN_AT_NODE * 8), ldi64(ctx + at.RUN_NODE_LAST * 8)):
        node = ldi64(ctx + at.RUN_NODES * 8) + n * (at.NODE_WORDS * 8)
        rows = ldi64(ctx + at.RUN_ROWS * 8) + ldi64(node + at.NODE_GROUP * 8) * stride * 8
        is_tumbling = ldi64(node + at.NODE_KIND * 8) == at.TUMBLING
        for i in range(record, limit):
            entity = ldi64(rows + i * 8)
            if is_tumbling and ldi64(entity + ldi64(node + at.NODE_BUCKET * 8)) != bucket_at(node, clock):
                entity = ldi64(ctx + at.RUN_EMPTY * 8)
            status = np.int64(0)
            if stage == _BEFORE:
                begin, end = ldi64(node + at.NODE_BEFORE * 8), ldi64(node + at.NODE_BEFORE_END * 8)
                status = write_results(ctx, i, entity, begin, end)
                stage = np.int64(_BEFORE if status != 0 else _RESULTS)
            if stage == _RESULTS:
                begin, end = ldi64(node + at.NODE_RESULTS * 8), ldi64(node + at.NODE_RESULTS_END * 8)
                status = write_results(ctx, i, entity, begin, end)
            if status != 0:
                sti64(ctx + at.RUN_AT_NODE * 8, n)
                sti64(ctx + at.RUN_AT_RECORD * 8, i)
                sti64(ctx + at.RUN_AT_STAGE * 8, stage)
                return status
            stage = np.int64(_BEFORE)
        record = np.int64(0)
    return np.int64(0)
