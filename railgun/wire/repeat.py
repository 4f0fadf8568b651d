"""Copies one row of a reply record into a record of its own, for an input-topic record that is read again.

`InputMemory` calls it.
"""

import numpy as np
from numpy.typing import NDArray

from railgun.wire import reply_kernel as kernel
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK
from railgun.wire.reply import ReplyBatch, Shape, decode_reply, describe


def repeat_row(record: bytes, row: int, incarnation: int, sequence: int) -> bytes:
    """Return one row of a reply record as a new reply record with a new correlation id. All other values stay the same.

    Raises ReplyRecordError.
    """
    batch = decode_reply(record)
    described = describe(batch.source)
    partials = [[p.metric, p.bound_ms, 0, 1] for p in batch.partials if p.first_row <= row < p.after_row]
    id_bytes = _cut(batch.id_heap, int(batch.id_refs[row]))
    planes, heap = _values(batch, row)
    head = [
        kernel.REPLY, 1, len(batch.source.metrics), len(planes), len(described), len(id_bytes), len(heap),
        len(partials), batch.generation, batch.place,
    ]  # fmt: skip
    rows = [int(batch.schema[row]), incarnation, sequence, int(batch.time[row]), int(batch.offset[row])]
    bits = np.zeros((len(batch.source.metrics), 8), np.uint8)
    bits[:, 0] = batch.nulls[:, row]
    # The sections in the order of the reply format (reply_kernel).
    sections = (
        np.array(head, np.int64).tobytes(),
        described,
        np.array(partials, np.int64).tobytes(),
        np.array(rows, np.int64).tobytes(),
        bytes((int(batch.flags[row]),)),
        np.array([len(id_bytes)], np.int64).tobytes(),
        id_bytes,
        bits.tobytes(),
        planes.tobytes(),
        heap,
    )
    return b"".join(section + bytes(-len(section) % 8) for section in sections)


def _cut(heap: bytes, ref: int) -> bytes:
    start = ref >> REF_LENGTH_BITS
    return heap[start : start + (ref & REF_LENGTH_MASK)]


def _values(batch: ReplyBatch, row: int) -> tuple[NDArray[np.uint64], bytes]:
    """Return the words of one row. Its strings are moved to a heap of their own."""
    words, used = batch.planes[:, row].copy(), b""
    for metric, first in enumerate(batch.layout.low.tolist()):
        if batch.source.metrics[metric].shape is Shape.STRING and not batch.nulls[metric, row]:
            text = _cut(batch.heap.tobytes(), int(words[first]))
            words[first] = len(used) << REF_LENGTH_BITS | len(text)
            used += text
    return words, used
