"""The entries of the catalogue's log, and what they add up to. See FORMAT.md. Does no I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import (
    AddDerived,
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
    change_from_json,
    change_to_json,
)
from railgun.catalog.errors import CatalogError, DefinitionError
from railgun.catalog.field_reading import place_to_json, with_place
from railgun.catalog.input_reading import input_from_record, input_to_record
from railgun.catalog.mappings import is_mapped_otherwise
from railgun.catalog.model import StreamDefinition
from railgun.catalog.output_reading import output_from_table, output_to_json
from railgun.catalog.stream_reading import log_retention_from, log_retention_text
from railgun.catalog.tables import Table
from railgun.catalog.version import (
    CATALOG_VERSION,
    FIRST,
    WITH_COMPUTED,
    WITH_MAPPINGS,
    WITH_PLACES,
    WITH_TOPICS,
)
from railgun.registry.change_log import ChangeLog, logged
from railgun.registry.errors import CatalogDamagedError, CatalogVersionError
from railgun.registry.input_topics import InputTopic, topic_from_json, topic_to_json
from railgun.registry.origin import Made

KEY_BYTES = 16
# For how many requests the changes that they began are remembered. A writer that was interrupted looks for its own.
_AUTHORS = 256
_KEPT, _PLACES, _INPUT, _OUTPUT = "log_retention", "fields", "input", "output"
_TOPIC = "input_topic"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Removal:
    """A dropped stream whose topics still exist.

    place: that of its DropStream in the sequence of changes.
    due_ms: when the topics are deleted, in ms since 1970.
    """

    place: int
    stream: StreamDefinition
    due_ms: int


class CatalogState:
    """The state that the entries read so far add up to.

    catalog: the catalogue with every change that began.
    done: only with changes that all tasks were told of.
    keys: the keys of the streams, by name.
    pending: the changes that began and are not done.
    removals: dropped streams that still have topics.
    log: who changed what, for every change that began.
    topics: by the place of a stream's creation, the topics that were ever read for it, by id.

    log_name: what errors call the log of the catalogue.
    """

    def __init__(self, log_name: str) -> None:
        self._log_name = log_name
        self.catalog, self.done = Catalog(), Catalog()
        self.keys: dict[str, bytes] = {}
        self.pending: list[Change] = []
        self.removals: list[Removal] = []
        self.log = ChangeLog()
        self.topics: dict[int, dict[str, InputTopic]] = {}
        # The names of all streams there ever were, by the place of their creation.
        self._streams: dict[int, str] = {}
        self._made_by: dict[str, list[Change]] = {}

    def take(self, offset: int, value: bytes) -> None:
        """Take in an entry. Raises CatalogDamagedError, CatalogVersionError."""
        try:
            entry = _decode(value)
            version = int(entry["version"])
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            raise CatalogDamagedError(self._log_name, offset, str(error)) from error
        if version > CATALOG_VERSION:
            raise CatalogVersionError(self._log_name, offset, version, CATALOG_VERSION)
        try:
            self._take(entry)
        except (DefinitionError, CatalogError, KeyError, TypeError, ValueError) as error:
            raise CatalogDamagedError(self._log_name, offset, str(error)) from error

    def made_by(self, author: str) -> list[Change]:
        """Return the changes that a request has begun."""
        return self._made_by.get(author, [])

    def earlier_topics(self, created: int) -> set[str]:
        """Return the names of the topics that were read for dropped streams which had the name of a stream.

        created: the place of the stream's creation.
        """
        name = self._streams.get(created)
        earlier = [place for place in self.topics if place < created and self._streams.get(place) == name]
        return {topic.name for place in earlier for topic in self.topics[place].values()}

    def _take(self, entry: Mapping[str, Any]) -> None:
        if _TOPIC in entry:
            created, topic = topic_from_json(entry[_TOPIC])
            self.topics.setdefault(created, {})[topic.id] = topic
        elif "done" in entry:
            self._finish(entry["done"])
        elif "removed" in entry:
            self.removals = [each for each in self.removals if each.place != entry["removed"]]
        else:
            self._begin(entry)

    def _begin(self, entry: Mapping[str, Any]) -> None:
        change = change_from_json(entry["change"], self.catalog.definitions)
        if isinstance(change, Warm):
            raise CatalogError("it belongs into a task's log")
        if isinstance(change, PutStream):
            change = _with_places(self._with_log_retention(change, entry), entry)
            change = _with_output(_with_input(change, entry), entry)
        name = change_stream(change)
        if isinstance(change, PutStream) and name not in self.catalog.streams:
            self._streams[change.place] = name
        if "key" in entry:
            self.keys[name] = bytes.fromhex(entry["key"])
        if isinstance(change, DropStream) and "due_ms" in entry:
            self.removals.append(Removal(change.place, self.catalog.entry(name).stream, entry["due_ms"]))
        noted = logged(change, Made.from_json(entry), self.catalog)
        self.catalog.apply(change)
        self.log.note(noted)
        self.pending.append(change)
        if "by" in entry:
            self._made_by.setdefault(entry["by"], []).append(change)
            while len(self._made_by) > _AUTHORS:
                del self._made_by[next(iter(self._made_by))]

    def _with_log_retention(self, change: PutStream, entry: Mapping[str, Any]) -> PutStream:
        """Return a change with what its entry says beside it. An entry that says nothing leaves it as it was."""
        known = self.catalog.streams.get(change.stream.name)
        if _KEPT in entry or known is None:
            kept_ms = log_retention_from(Table({_KEPT: entry.get(_KEPT)}, (), (_KEPT,)))
        else:
            kept_ms = known.stream.log_retention_ms
        return replace(change, stream=replace(change.stream, log_retention_ms=kept_ms))

    def _finish(self, place: int) -> None:
        for change in self.pending:
            if change.place <= place:
                self.done.apply(change)
        self.pending = [change for change in self.pending if change.place > place]


def _with_places(change: PutStream, entry: Mapping[str, Any]) -> PutStream:
    """Return a change with what its entry says beside it of the places of fields. Raises DefinitionError."""
    said = Table(entry.get(_PLACES, {}), (_PLACES,), change.stream.types)
    fields = [
        with_place(field, said.get(field.name), said.at(field.name)) if said.has(field.name) else field
        for field in change.stream.fields
    ]
    return replace(change, stream=replace(change.stream, fields=tuple(fields)))


def _with_input(change: PutStream, entry: Mapping[str, Any]) -> PutStream:
    """Return a change with what its entry says beside it of input topics. Raises DefinitionError."""
    stream = change.stream
    said = input_from_record(entry.get(_INPUT), stream.recorded_types, stream.name)
    return replace(change, stream=replace(stream, input=said))


def _with_output(change: PutStream, entry: Mapping[str, Any]) -> PutStream:
    """Return a change with what its entry says beside it of the output. Raises DefinitionError."""
    output = output_from_table(entry.get(_OUTPUT), change.stream.types, (_OUTPUT,))
    return replace(change, stream=replace(change.stream, output=output))


def check(catalog: Catalog, changes: Sequence[Change]) -> None:
    """Raise CatalogError if changes, one after another, do not fit a catalogue."""
    trial = catalog.copy()
    for change in changes:
        trial.apply(change)


def begin_entry(
    change: Change,
    made: Made,
    key: bytes | None = None,
    author: str | None = None,
    due_ms: int | None = None,
    before: StreamDefinition | None = None,
) -> bytes:
    """Return the entry that begins a change.

    key: the key of a new stream.
    author: the request that the change belongs to.
    due_ms: see `Removal`.
    before: the stream as it is registered; None if it is new, or the change is not about its definition.
    """
    entry: dict[str, Any] = {"version": FIRST, "change": change_to_json(change), **made.to_json()}
    if isinstance(change, PutStream):
        places = {each.name: place_to_json(each) for each in change.stream.fields if each.says_where}
        if places:
            # A release that passed over it would take other values for the fields. So it has to refuse the entry.
            entry |= {"version": WITH_PLACES, _PLACES: places}
        if change.stream.computed:
            # They are in the definition. Every process has to know them, or it would refuse that.
            entry["version"] = WITH_COMPUTED
        # A front-end that passed over these would read other topics, or write to others.
        if said := input_to_record(change.stream.input):
            entry |= {"version": WITH_TOPICS, _INPUT: said}
        if said := output_to_json(change.stream.output):
            entry |= {"version": WITH_TOPICS, _OUTPUT: said}
        # Releases before refuse the change, or would read records from before it by the new mapping.
        if before is not None and is_mapped_otherwise(before, change.stream):
            entry["version"] = WITH_MAPPINGS
        # Not in the definition: releases that do not know it would refuse that, and pass over this.
        if change.stream.log_retention_ms is not None:
            entry[_KEPT] = log_retention_text(change.stream.log_retention_ms)
        elif before is not None and before.log_retention_ms is not None:
            entry[_KEPT] = None
    if key is not None:
        entry["key"] = key.hex()
    if author is not None:
        entry["by"] = author
    if due_ms is not None:
        entry["due_ms"] = due_ms
    return _encode(entry)


def done_entry(place: int) -> bytes:
    """Return the entry which says that all tasks were told of all changes up to a place."""
    return _encode({"version": FIRST, "done": place})


def removed_entry(place: int) -> bytes:
    """Return the entry which says that the topics of the stream dropped at a place are gone."""
    return _encode({"version": FIRST, "removed": place})


def topic_entry(created: int, topic: InputTopic) -> tuple[bytes, bytes]:
    """Return the key and the entry that say which number a topic has among those that are read for a stream.

    created: the place of the stream's creation.
    """
    # Releases that do not know it read that all tasks were told of all changes up to none.
    value = _encode({"version": FIRST, "done": 0, _TOPIC: topic_to_json(created, topic)})
    return f"{_TOPIC} {created} {topic.id}".encode(), value


def change_stream(change: Change) -> str:
    """Return the name of the stream that a change is about."""
    match change:
        case PutStream():
            return change.stream.name
        case DropStream():
            return change.name
        case AddMetric():
            return change.metric.stream
        case AddDerived() | DropMetric() | AddHistory() | BeginDeepening() | Deepen():
            return change.stream
