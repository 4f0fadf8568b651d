"""What a front-end knows of streams: followed from the catalogue, each stream's door and view as they are now."""

import threading
from dataclasses import dataclass

from frontend.exchange.exchange import Exchange
from frontend.exchange.stream_intake import StreamDoor
from frontend.scoring.backend import StreamView
from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.registry.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Known:
    """The catalogue at one moment, and what was made of it."""

    catalog: Catalog
    doors: dict[str, StreamDoor]
    views: dict[str, StreamView]


class Doors:
    """Told of changes by any thread; `now` is replaced as a whole."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._changing = threading.Lock()
        self.now = Known(Catalog(), {}, {})

    def follow(self, snapshot: Snapshot) -> None:
        """Take over what is done; an older snapshot than the last changes nothing."""
        with self._changing:
            catalog = snapshot.catalog
            if catalog.last_place <= self.now.catalog.last_place:
                return
            doors = {name: self._door(name, entry) for name, entry in catalog.streams.items()}
            views = {
                name: StreamView(entry.stream, tuple(entry.metrics))
                for name, entry in catalog.streams.items()
            }
            self._exchange.know(catalog.streams)
            self.now = Known(catalog, doors, views)

    def _door(self, name: str, entry: StreamEntry) -> StreamDoor:
        before = self.now.doors.get(name)
        if before is None or before.entry.created != entry.created:
            return StreamDoor(entry)
        return before if before.entry.stream == entry.stream else StreamDoor(entry, before)
