"""The way in for events of one stream, under what the catalogue says of it now."""

from collections.abc import Sequence

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.model import ALL
from railgun.ingest.accepted import Taken
from railgun.ingest.ids import IdMaker, Ids
from railgun.ingest.intake import EventText, Intake
from railgun.ingest.routing import Router
from railgun.wire.door import Roles


class StreamDoor:
    """Not to be shared between threads. before: the one that it replaces: its ids and arrival times go on."""

    def __init__(self, entry: StreamEntry, before: "StreamDoor | None" = None) -> None:
        self.entry = entry
        stream, schema = entry.stream, entry.schema
        partitioners = tuple(name for name in stream.partitioners if name != ALL)
        roles = Roles(schema, stream.time, stream.id, partitioners)
        self._intake = Intake(stream, schema, roles, Router(stream))
        self._clock: _Clock = _Clock() if before is None else before._clock

    def take(self, texts: Sequence[EventText], now_ms: int, ids: Ids | None = None) -> Taken:
        """Check texts. now_ms: what `max_future` is read from, and when events without a time arrive.  ids: for a
        stream without an id field; None makes them up."""
        clock = self._clock
        clock.arrived_ms = max(clock.arrived_ms, now_ms)
        return self._intake.take(texts, clock.ids if ids is None else ids, now_ms, clock.arrived_ms)


class _Clock:
    """What outlives a change of the stream's definition."""

    def __init__(self) -> None:
        self.ids, self.arrived_ms = IdMaker(), 0
