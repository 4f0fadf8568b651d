"""Makes raw internal records of made-up payments, block after block, as a front-end would publish them."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from railgun.catalog.model import StreamDefinition
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles


class RecordMaker:
    """The records of one stream of payments, in log order, in buffers: bytes objects for each would need 2 GB for
    ten million.

    blocks: of payments, as Arrow batches.
    """

    def __init__(self, blocks: Iterable[Any], stream: StreamDefinition) -> None:
        self._validator = TableValidator(Roles(stream.schema(1), stream.time, stream.id, ("card",)))
        self._blocks = self._encoded(blocks)
        self._left: Records | None = None

    def take(self, events: int) -> Iterator[Records]:
        """Yield the next records, in buffers of at most a block."""
        while events:
            block = self._left if self._left is not None else next(self._blocks)
            part = block.part(0, min(len(block), events))
            events -= len(part)
            self._left = block.part(len(part), len(block)) if len(part) < len(block) else None
            yield part

    def _encoded(self, blocks: Iterable[Any]) -> Iterator[Records]:
        sequence = 0
        for block in blocks:
            made = encode_columns(1, self._validator.admit(block).events, 0, 1, sequence)
            sequence += len(made)
            # It is copied, since the encoder's buffer has room for the worst case.
            yield Records(np.array(made.buffer), made.offsets)
