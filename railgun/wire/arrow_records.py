"""Converts records to the binary values of one Arrow array, and back."""

import numpy as np
import pyarrow as pa

from railgun.wire.records import Records


def array_of(records: Records) -> pa.Array:
    """Return an array with a large binary value for each record. It shares the buffer of the records."""
    places = pa.py_buffer(np.ascontiguousarray(records.offsets))
    return pa.Array.from_buffers(
        pa.large_binary(), len(records), [None, places, pa.py_buffer(records.buffer)]
    )


def records_of(column: pa.Array) -> Records:
    """Return the values of an array of binary or large binary as records. The bytes are not copied; the offsets are."""
    column = column.cast(pa.large_binary()) if not pa.types.is_large_binary(column.type) else column
    _, places, data = column.buffers()
    offsets = np.frombuffer(places, np.int64)[column.offset : column.offset + len(column) + 1]
    if data is None or not data.size:
        return Records(np.zeros(1, np.uint8), offsets.copy())
    return Records(np.frombuffer(data, np.uint8), offsets.copy())
