"""Events of a generator as the measuring takes them, and as the oracle needs them afterwards."""

from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from railgun.catalog.model import StreamDefinition
from railgun.engine.offline_tasks import SCHEMA_VERSION
from railgun.wire.columns import EventColumns
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles


class GeneratedEvents:
    """Events one after the other. position: how many were taken.

    blocks: yields them without an end, with a column for each recorded field.  kept_ms: those that were taken are kept
    for so long before those that were taken last.
    """

    def __init__(self, stream: StreamDefinition, blocks: Iterator[pa.RecordBatch], kept_ms: int) -> None:
        schema = stream.schema(SCHEMA_VERSION)
        self._validator = TableValidator(Roles(schema, stream.time, stream.id, stream.recorded_partitioners))
        self._names = [each.name for each in schema.fields]
        self._blocks, self._left = blocks, next(blocks)
        self._taken, self._kept_ms = deque[pa.RecordBatch](), kept_ms
        self.position = 0
        self.first_ms = _time_ms(self._left, 0)

    def take(self, n: int) -> EventColumns:
        """Return the next n events. Raises ValueError if one is refused."""
        parts: list[pa.RecordBatch] = []
        while n:
            if not self._left.num_rows:
                self._left = next(self._blocks)
            parts.append(self._left.slice(0, n))
            self._left = self._left.slice(parts[-1].num_rows)
            n -= parts[-1].num_rows
            self.position += parts[-1].num_rows
        self._taken += parts
        while _time_ms(self._taken[0], -1) < _time_ms(parts[0], 0) - self._kept_ms:
            self._taken.popleft()
        (batch,) = pa.Table.from_batches(parts).select(self._names).combine_chunks().to_batches()
        admitted = self._validator.admit(batch)
        if admitted.first_bad is not None:
            raise ValueError(str(admitted.first_bad))
        return admitted.events

    @property
    def taken(self) -> pa.Table:
        """The latest events that were taken."""
        return pa.Table.from_batches(self._taken)


def _time_ms(batch: pa.RecordBatch, row: int) -> int:
    return int(batch.column("ts")[row].as_py())
