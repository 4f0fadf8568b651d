"""The values of the fields of events, recorded and computed ones, as replies would have them."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from railgun.catalog.catalog import StreamEntry
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.ids import IdMaker
from railgun.ingest.intake import Intake
from railgun.ingest.replies import values_by_metric
from railgun.ingest.routing import Router
from railgun.language.derive import field_as_derived
from railgun.wire.columns import EventColumns
from railgun.wire.validator import Roles

# Clocks of machines differ, and events that were accepted once are to be read again.
_AHEAD_MS = 86_400_000
_INTAKES_MAX = 8


class EventFields:
    """Reads the fields of events of one stream, by one definition of it. Threads may share it."""

    def __init__(self, entry: StreamEntry) -> None:
        self.stream = entry.stream
        # The entry may change, but neither the definition nor an earlier mapping does.
        self._version = entry.schema.version
        self._mapped = {place: entry.mapped_at(place) for place in entry.mappings}
        readable = self.stream.readable
        self._fields = DerivedMetrics(
            tuple(field_as_derived(name, readable, self.stream.name) for name in self.stream.types)
        )
        # By the place of the mapping. Each has classes of its own, which take long to make; one thread uses it.
        self._intakes: dict[int, Intake] = {}
        self._lock = threading.Lock()

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

    def of_texts(self, texts: Sequence[bytes], mapped: int) -> list[dict[str, Any] | None]:
        """Return the values of events that came as texts and were accepted; None for one that cannot be read any more.

        mapped: the place of the mapping by which they are read.
        """
        values: list[dict[str, Any] | None] = [None] * len(texts)
        # An event may have come after a change that this definition is from before.
        if mapped in self._mapped:
            now_ms = time.time_ns() // 1_000_000 + _AHEAD_MS
            with self._lock:
                accepted = self._intake(mapped).take(texts, IdMaker(), now_ms, now_ms)
            places = range(len(texts)) if accepted.rows is None else accepted.rows.tolist()
            for place, each in zip(places, self.of(accepted, range(len(accepted)))):
                values[place] = each
        return values

    def _intake(self, mapped: int) -> Intake:
        found = self._intakes.get(mapped)
        if found is None:
            if len(self._intakes) == _INTAKES_MAX:
                self._intakes.clear()
            stream = self._mapped[mapped]
            incoming = stream.incoming(self._version)
            roles = Roles(incoming, stream.time, stream.id, stream.recorded_partitioners)
            found = self._intakes[mapped] = Intake(stream, roles, Router(stream))
        return found
