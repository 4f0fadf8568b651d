"""The values of the fields of events, recorded and computed ones, as replies would have them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from railgun.catalog.model import StreamDefinition
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.replies import values_by_metric
from railgun.language.derive import field_as_derived
from railgun.wire.columns import EventColumns


class FieldValues:
    """Reads the fields of accepted events of one stream. Threads may share it."""

    def __init__(self, stream: StreamDefinition) -> None:
        self.stream = stream
        readable = stream.readable
        self._fields = DerivedMetrics(
            tuple(field_as_derived(name, readable, stream.name) for name in stream.types)
        )

    def of(self, accepted: AcceptedBatch, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the values of some accepted events by field, in the order of the fields."""
        events = accepted.events
        if isinstance(events, EventColumns):
            events = events.take(np.array(rows, np.int64))
        else:
            events = [events[row] for row in rows]
        found = self._fields.answers(events, accepted.schema, {})
        if found is None:
            return [{} for _ in rows]
        columns = values_by_metric(found.block(), None)
        return [{name: columns[name][place] for name in self.stream.types} for place in range(len(rows))]
