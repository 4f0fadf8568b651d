"""The catalogue kept in a topic of the embedded log, which one process (an engine) writes. `EngineStreams` has one.

See FORMAT.md.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, PutStream
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.change_log import ChangeLog
from railgun.registry.entries import KEY_BYTES, CatalogState, begin_entry, change_stream, check, done_entry
from railgun.registry.origin import UNNAMED, Made, Origin
from railgun.registry.topics import Topics

TOPIC = Topics().catalog


class CatalogLog:
    """The catalogue as its topic tells it. It makes one change at a time, or several that belong together.

    `begin` records changes. Then the tasks are told of them, and `finish` records that they were told. Changes that
    began and did not finish are `pending` when the log is opened again: tasks are told again, and skip what they know.

    log: the embedded log, in which it makes the topic if that is missing.
    place: names the catalogue in errors.
    now: the clock for the times of changes, in seconds since 1970.
    Raises CatalogDamagedError, CatalogVersionError.
    """

    def __init__(self, log: Transport, place: str, now: Callable[[], float] = time.time) -> None:
        self._log, self._now = log, now
        self._state = CatalogState(place)
        log.create_topic(TOPIC, 1)
        read_on(log, TOPIC, log.start_offset(TOPIC, 0), self._state)

    @property
    def catalog(self) -> Catalog:
        """The catalogue with every change that began."""
        return self._state.catalog

    @property
    def keys(self) -> Mapping[str, bytes]:
        """The keys of the streams, by stream name."""
        return self._state.keys

    @property
    def pending(self) -> Sequence[Change]:
        """The changes that began and are not finished, in order."""
        return self._state.pending

    @property
    def log(self) -> ChangeLog:
        """The log of who changed what."""
        return self._state.log

    def check(self, changes: Sequence[Change]) -> None:
        """Raise CatalogError if changes, one after another, do not fit the catalogue."""
        check(self.catalog, changes)

    def begin(self, changes: Sequence[Change], origin: Origin = UNNAMED) -> None:
        """Record changes, which `check` has accepted, before any task is told of them."""
        known, made = self.catalog.definitions, Made(int(1000 * self._now()), origin)
        entries: list[bytes] = []
        for change in changes:
            before = known.get(change_stream(change))
            is_new = isinstance(change, PutStream) and before is None
            key = os.urandom(KEY_BYTES) if is_new else None
            entries.append(begin_entry(change, made, key, before=before))
        self._append(entries)

    def finish(self) -> None:
        """Record that all tasks were told of all pending changes."""
        if self.pending:
            self._append([done_entry(self.pending[-1].place)])

    def _append(self, entries: list[bytes]) -> None:
        first = self._log.append(TOPIC, 0, entries)
        for offset, entry in enumerate(entries, first):
            self._state.take(offset, entry)


def read_on(log: Transport, topic: str, offset: int, state: CatalogState) -> int:
    """Take a catalogue's topic into a state from an offset on. Returns the offset to go on from."""
    for fetched in read_to_the_end(log, TopicPartition(topic, 0), offset):
        for at, value in zip(fetched.offsets.tolist(), fetched.values()):
            state.take(at, value)
        offset = fetched.next_offset
    return offset
