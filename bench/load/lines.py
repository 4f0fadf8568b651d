"""Made-up payments as lines of JSON, made before the clock runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench.payments import BLOCK_EVENTS, Payments, blocks


@dataclass(frozen=True, slots=True)
class Lines:
    """n lines of NDJSON. buffer: all bytes.  offsets int64[n + 1]: the beginning of each line, and the end."""

    buffer: bytes
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, buffer: bytes, lengths: Sequence[int]) -> Self:
        """Make lines of these lengths in bytes, one after another."""
        return cls(buffer, np.cumsum([0, *lengths], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1


def payment_lines(payments: Payments, first: int, events: int) -> Lines:
    """Return the events `first` to `first + events - 1` of the sequence that `payments` describes."""
    pieces: list[bytes] = []
    lengths: list[int] = []
    left = events
    block, skipped = divmod(first, BLOCK_EVENTS)
    for batch in blocks(payments, block):
        if left <= 0:
            break
        part = json_lines(batch.slice(skipped, left))
        pieces.append(part.buffer)
        lengths += np.diff(part.offsets).tolist()
        left, skipped = left - len(part), 0
    return Lines.of(b"".join(pieces), lengths)


def json_lines(batch: Any) -> Lines:
    """Return the rows of a record batch as lines. Its strings must need no escapes."""
    parts: list[Any] = []
    for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns)):
        parts.append(f'{"," if place else "{"}"{name}":')
        parts.append(_texts(column))
    if not len(batch):
        return Lines(b"", np.zeros(1, np.int64))
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    offsets = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :][: len(lines) + 1]
    text = lines.buffers()[2].to_pybytes()[int(offsets[0]) : int(offsets[-1])]
    return Lines(text, offsets.astype(np.int64) - int(offsets[0]))


def _texts(column: Any) -> Any:
    """Return a column's values as JSON texts."""
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    if pa.types.is_string(column.type):
        texts = pc.binary_join_element_wise('"', column, '"', "")
    elif pa.types.is_boolean(column.type):
        texts = pc.if_else(column, "true", "false")
    else:
        texts = column.cast(pa.string())
    return texts.fill_null("null")
