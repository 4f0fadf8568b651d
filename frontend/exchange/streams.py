"""The streams that a front-end knows: it follows the catalogue and keeps a validator and a view of each stream.

HTTP requests and input topics check their events by it. It does no I/O.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from frontend.exchange.exchange import Exchange
from frontend.scoring.scoring import StreamView
from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.ids import IdMaker, Ids
from railgun.ingest.intake import EventText, Intake
from railgun.ingest.routing import Router
from railgun.ingest.time_unit import TimeUnit
from railgun.ingest.value_queries import QueryReader
from railgun.registry.follower import Snapshot
from railgun.wire.validator import Roles


class StreamIntake:
    """Checks the texts of events against one definition of a stream. Not to be shared between threads.

    incoming: the schema of what comes in, with the places of the fields.
    of_records_alone: why only records of the stream's input topic can be its events; None if others can.
    before: the intake that this one replaces. Its ids and arrival times go on, and what it has warned of.
    """

    def __init__(self, entry: StreamEntry, before: "StreamIntake | None" = None) -> None:
        self.entry = entry
        stream = entry.stream
        self.incoming = stream.incoming(entry.schema.version)
        self.of_records_alone = stream.of_records_alone
        roles = Roles(self.incoming, stream.time, stream.id, stream.recorded_partitioners)
        self._intake = Intake(stream, roles, Router(stream))
        self._clock: _Clock = _Clock() if before is None else before._clock
        self._time_unit: TimeUnit = TimeUnit(stream) if before is None else before._time_unit

    def take(self, texts: Sequence[EventText], now_ms: int, ids: Ids | None = None) -> AcceptedBatch:
        """Check texts and return the events that are accepted.

        now_ms: the time from which `max_future` counts, and at which events without a time arrive.
        ids: gives the ids of a stream without an id field; None makes them up.
        """
        clock = self._clock
        clock.arrived_ms = max(clock.arrived_ms, now_ms)
        accepted = self._intake.take(texts, clock.ids if ids is None else ids, now_ms, clock.arrived_ms)
        self._time_unit.look(accepted.times)
        return accepted


class _Clock:
    """The ids and the arrival time of a stream, which outlive a change of its definition."""

    def __init__(self) -> None:
        self.ids, self.arrived_ms = IdMaker(), 0


@dataclass(frozen=True, slots=True)
class Known:
    """The catalogue at one moment, and the objects that were made from it, by stream."""

    catalog: Catalog
    intakes: dict[str, StreamIntake]
    views: dict[str, StreamView]
    query_readers: dict[str, QueryReader] = field(default_factory=dict)

    def query_reader(self, stream: str) -> QueryReader:
        """Return the reader of a stream's value queries. It is made when it is first needed."""
        found = self.query_readers.get(stream)
        if found is None:
            entry = self.catalog.streams[stream]
            found = self.query_readers[stream] = QueryReader(entry, Router(entry.stream))
        return found


class StreamIntakes:
    """Follows the catalogue. Any thread may tell it of changes. `now` has the present state, replaced as a whole."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._changing = threading.Lock()
        self.now = Known(Catalog(), {}, {})

    def follow(self, snapshot: Snapshot) -> None:
        """Take over a snapshot of the catalogue. A snapshot that is older than the last one changes nothing."""
        with self._changing:
            catalog = snapshot.catalog
            self._exchange.read(snapshot.begun)
            if catalog.last_place <= self.now.catalog.last_place:
                return
            intakes = {name: self._intake_of(name, entry) for name, entry in catalog.streams.items()}
            views = {name: StreamView(entry.stream, entry.names) for name, entry in catalog.streams.items()}
            self._exchange.know(catalog)
            self.now = Known(catalog, intakes, views)

    def _intake_of(self, name: str, entry: StreamEntry) -> StreamIntake:
        before = self.now.intakes.get(name)
        if before is None or before.entry.created != entry.created:
            return StreamIntake(entry)
        return before if before.entry.stream == entry.stream else StreamIntake(entry, before)
