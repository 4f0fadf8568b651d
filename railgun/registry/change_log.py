"""Words the catalogue's changes for people: who changed what, the newest first. Does no I/O."""

from collections.abc import Iterator
from itertools import islice

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
)
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import field_texts, shown_definition, value_text
from railgun.registry.origin import Made
from railgun.wording import counted


class LoggedChange(msgspec.Struct, frozen=True):
    """A change of the catalogue.

    place: the number of the change, which only grows.
    at_ms: when the change was made, in ms since 1970.
    who: the name of the token of whoever made it.
    from_: the address of the client.
    kind: the kind of the change, as in the catalogue's entries.
    name: the name of the metric; None if the stream itself is changed.
    what: the change in words; the SQL text of a metric that was added.
    at_ms, who and from_ are None if they are not known.
    """

    place: int
    at_ms: int | None
    who: str | None
    from_: str | None = msgspec.field(name="from")
    kind: str
    stream: str
    name: str | None
    what: str


class ChangeLog:
    """All changes of a catalogue. `CatalogState` notes each when it begins."""

    def __init__(self) -> None:
        self._changes: list[LoggedChange] = []

    def note(self, change: LoggedChange) -> None:
        """Add the newest change."""
        self._changes.append(change)

    def newest(self, limit: int, before: int | None = None) -> list[LoggedChange]:
        """Return the newest changes, at most `limit`, the newest first. before: only changes with a smaller place."""
        return list(islice(self._before(before), limit))

    def _before(self, place: int | None) -> Iterator[LoggedChange]:
        return (each for each in reversed(self._changes) if place is None or each.place < place)


def logged(change: Change, made: Made, before: Catalog) -> LoggedChange:
    """Return a change as the log shows it. before: the catalogue before the change."""
    stream, name, what = _described(change, before)
    who, address = made.origin.who, made.origin.address
    return LoggedChange(change.place, made.at_ms, who, address, change.kind, stream, name, what)


def _described(change: Change, before: Catalog) -> tuple[str, str | None, str]:
    """Return (stream, metric, change in words)."""
    match change:
        case PutStream():
            entry = before.streams.get(change.stream.name)
            what = _created(change.stream) if entry is None else _evolved(entry.stream, change.stream)
            return change.stream.name, None, what
        case DropStream():
            return change.name, None, "dropped, with its metrics and events"
        case AddMetric():
            return change.metric.stream, change.name, change.metric.sql
        case AddDerived():
            return change.stream, change.name, change.sql
        case DropMetric():
            return change.stream, change.name, "dropped"
        case AddHistory():
            return change.stream, None, f"history {change.history} put before its log"
        case BeginDeepening():
            return change.stream, None, f"deepening begun, history {change.history}"
        case Deepen():
            return change.stream, None, f"deepened, history {change.history}"


def _created(stream: StreamDefinition) -> str:
    return f"created with {counted(len(stream.types), 'field')}"


def _evolved(old: StreamDefinition, new: StreamDefinition) -> str:
    before, after = shown_definition(old), shown_definition(new)
    parts = [
        f"{key} {value_text(before.get(key), 'unset')} -> {value_text(after.get(key), 'unset')}"
        for key in dict.fromkeys((*before, *after))
        if key != "fields" and before.get(key) != after.get(key)
    ]
    known, present = field_texts(old), field_texts(new)
    parts += [
        f"field {name} {text} -> {present[name]}"
        for name, text in known.items()
        if present.get(name, text) != text
    ]
    added = [f"{name} {text}" for name, text in present.items() if name not in known]
    if added:
        parts.append(f"fields added: {', '.join(added)}")
    dropped = [name for name in known if name not in present]
    if dropped:
        parts.append(f"fields dropped: {', '.join(dropped)}")
    return "; ".join(parts) or "put again"
