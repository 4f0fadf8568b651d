"""The catalogue kept in a topic of the log: changes, the streams' keys, and what is done of them. See FORMAT.md."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import (
    AddMetric,
    Change,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
    change_from_json,
    change_to_json,
)
from railgun.catalog.model import StreamDefinition
from railgun.engine.errors import FolderError, FolderVersionError
from railgun.messaging.transport import Transport

TOPIC = "railgun.catalog"
VERSION = 1
KEY_BYTES = 16

_READ_RECORDS, _READ_BYTES = 1_000, 1 << 20
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class CatalogLog:
    """The catalogue as its topic tells it. One change, or several that belong together, is made at a time:

    `begin` records it; then the tasks are told, `finish` records that they were. What began and did not finish is
    `pending` when the log is opened again: tasks are told again and skip what they know.
    """

    def __init__(self, log: Transport, place: str) -> None:
        self._log, self._place = log, place
        self.catalog = Catalog()
        self.keys: dict[str, bytes] = {}
        self.pending: list[Change] = []
        log.create_topic(TOPIC, 1)
        for offset, body in self._read():
            self._take(offset, body)

    def check(self, changes: Sequence[Change]) -> None:
        """Raise CatalogError where changes, one after another, do not fit the catalogue."""
        trial = Catalog(self.catalog.changes(), self.catalog.last_place)
        for change in changes:
            trial.apply(change)

    def begin(self, changes: Sequence[Change]) -> None:
        """Make changes that `check` has found right, and record them before any task is told."""
        entries: list[dict[str, Any]] = []
        for change in changes:
            entry: dict[str, Any] = {"version": VERSION, "change": change_to_json(change)}
            if isinstance(change, PutStream) and change.stream.name not in self.catalog.streams:
                key = os.urandom(KEY_BYTES)
                entry["key"] = key.hex()
                self.keys[change.stream.name] = key
            self.catalog.apply(change)
            entries.append(entry)
        self._log.append(TOPIC, 0, [_encode(entry) for entry in entries])
        self.pending += changes

    def finish(self) -> None:
        """Record that all tasks were told of all that is pending."""
        if self.pending:
            self._log.append(TOPIC, 0, [_encode({"version": VERSION, "done": self.pending[-1].place})])
            self.pending.clear()

    def _read(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        offset, end = self._log.start_offset(TOPIC, 0), self._log.end_offset(TOPIC, 0)
        while offset < end:
            fetched = self._log.read(TOPIC, 0, offset, _READ_RECORDS, _READ_BYTES)
            for place, value in zip(fetched.offsets.tolist(), fetched.values()):
                yield place, self._entry(place, value)
            offset = fetched.next_offset

    def _entry(self, offset: int, value: bytes) -> Mapping[str, Any]:
        try:
            entry = _decode(value)
            version = int(entry["version"])
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            reason = f"the catalogue's entry at offset {offset} cannot be read ({error})"
            raise FolderError(f"{self._place}: {reason}; restore the folder from a copy") from error
        if version > VERSION:
            raise FolderVersionError(
                f"{self._place}: the catalogue's entry at offset {offset} has version {version}, this program reads "
                f"up to {VERSION}; run the version that wrote it, or a newer one"
            )
        return entry

    def _take(self, offset: int, entry: Mapping[str, Any]) -> None:
        if "done" in entry:
            self.pending = [change for change in self.pending if change.place > entry["done"]]
            return
        streams: dict[str, StreamDefinition] = self.catalog.definitions
        change = change_from_json(entry["change"], streams)
        if isinstance(change, Warm):
            raise FolderError(
                f"{self._place}: offset {offset} of the catalogue holds what belongs into a task's log"
            )
        if "key" in entry:
            self.keys[change_stream(change)] = bytes.fromhex(entry["key"])
        self.catalog.apply(change)
        self.pending.append(change)


def change_stream(change: Change) -> str:
    """The name of the stream that a change is about."""
    match change:
        case PutStream():
            return change.stream.name
        case DropStream():
            return change.name
        case AddMetric():
            return change.metric.stream
        case DropMetric():
            return change.stream
