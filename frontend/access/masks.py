"""Decides what of a stream nobody is shown: masked fields, and all that would tell their values.

Whatever shows events, replies or values of them asks it: the last events, dead letters, histograms. It does no I/O but
a line of the log.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from railgun.catalog.catalog import StreamEntry
from railgun.language.computed import ComputedField
from railgun.language.typed import fields_of

_log = logging.getLogger("railgun.frontend")


@dataclass(frozen=True, slots=True)
class Mask:
    """What is not shown of one stream.

    fields: the masked fields, recorded and computed ones. If the id or the time of events is one, it is masked wherever
        it stands.
    metrics: the metrics that read or group by such a field, and the derived metrics that read one of these or a field.
    covers_id, covers_time: whether the id and the time of events are masked.
    shows_texts: whether texts may be shown that may quote an event: the details of problems, reasons and payloads of
        dead letters, keys of records, events that were refused. Only their kind and their place are shown otherwise.
    """

    fields: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()
    covers_id: bool = False
    covers_time: bool = False
    shows_texts: bool = True

    def __or__(self, other: "Mask") -> "Mask":
        """Return the mask that covers what either covers."""
        return Mask(
            self.fields | other.fields,
            self.metrics | other.metrics,
            self.covers_id or other.covers_id,
            self.covers_time or other.covers_time,
            self.shows_texts and other.shows_texts,
        )


UNMASKED = Mask()


class Masks:
    """The masks of all streams. Any thread may call it. named: the masked fields, as `STREAM.FIELD`."""

    def __init__(self, named: Iterable[str] = ()) -> None:
        self._named: dict[str, set[str]] = {}
        for each in named:
            stream, _, field = each.partition(".")
            self._named.setdefault(stream, set()).add(field)
        # By stream: what its mask was made of, and the mask.
        self._made: dict[str, tuple[Any, Mask]] = {}
        self._warned: set[tuple[str, str]] = set()

    def of(self, entry: StreamEntry) -> Mask:
        """Return the mask of a stream, as the catalogue has it now."""
        name = entry.stream.name
        named = self._named.get(name)
        if named is None:
            return UNMASKED
        state = (
            entry.stream,
            entry.created,
            # What is changed back is as it was, but not what was answered meanwhile.
            tuple(entry.mappings),
            tuple(entry.computed),
            tuple(each.added for each in entry.registered if each.dropped is None),
        )
        made = self._made.get(name)
        if made is None or made[0] != state:
            self._warn(name, named - entry.stream.types.keys() - {each.name for each in _computed(entry)})
            made = self._made[name] = (state, _mask(entry, named))
        return made[1]

    def _warn(self, stream: str, unknown: Iterable[str]) -> None:
        """Log once which masked fields a stream does not have, since a misspelt one is not masked."""
        for field in sorted(unknown):
            if (stream, field) not in self._warned:
                self._warned.add((stream, field))
                _log.warning("console.masks has %s.%s, but the stream has no such field", stream, field)


def _mask(entry: StreamEntry, named: Iterable[str]) -> Mask:
    stream, fields = entry.stream, _fields(entry, named)
    metrics = {name for name, add in entry.metrics.items() if fields & add.metric.resolved.fields}
    derived = {
        name
        for name, each in entry.derived.items()
        if fields & each.fields.keys() or metrics & each.operands.keys()
    }
    return Mask(
        frozenset(fields),
        frozenset(metrics | derived),
        covers_id=stream.id in fields,
        covers_time=stream.time in fields,
        # Events may have masked members that are no fields, or that the stream will have later.
        shows_texts=False,
    )


def _fields(entry: StreamEntry, named: Iterable[str]) -> set[str]:
    """Return all fields that tell the value of a named one.

    These are the recorded fields of which a named one is or was computed, fields that any mapping reads at a place
    where any mapping reads one of them, and the computed fields that read any of these. Records from before a change
    are read by the mapping of then, and metrics have values of events from before it.
    """
    stream, wanted = entry.stream, set(named)
    recorded = wanted | {
        name for each in _computed(entry) if each.name in wanted for name in fields_of(each.expression)
    }
    recorded &= stream.recorded_types.keys()
    read = [each for place in entry.mappings for each in entry.mapped_at(place).incoming(0).fields]
    places = {each.place for each in read if each.name in recorded}
    recorded |= {each.name for each in read if each.place in places}
    return recorded | {each.name for each in stream.computed if fields_of(each.expression) & recorded}


def _computed(entry: StreamEntry) -> Iterator[ComputedField]:
    """Yield the computed fields of all versions of a stream, with those that it does not have any more."""
    for each in entry.computed.values():
        yield from each
