"""The names of metrics in a reply, by the places of the catalogue that the answering tasks have come to.

It does no I/O. `Exchange` keeps one for each stream. A place is the number of a change of the catalogue.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.registrations import Registered
from railgun.ingest.derived import DerivedMetrics
from railgun.plan.result_block import ResultForm
from railgun.wire.schema import Schema

_KNOWN_MAX = 1_024


@dataclass(frozen=True, slots=True)
class Answered:
    """How a partitioner's task stood when it answered an event.

    form: the metrics that it answered.
    place: that of the newest change that was in force at the task; None if the event was not sent to the partitioner.
    """

    form: ResultForm
    place: int | None


@dataclass(frozen=True, slots=True)
class Named:
    """The names of metrics in a reply, in the order in which they were added, and the derived metrics among them."""

    names: tuple[str, ...]
    derived: DerivedMetrics


@dataclass(slots=True)
class _Read:
    """The catalogue's entry of the stream as it was read last. known, derived: keep what was found from it."""

    place: int
    registered: Sequence[Registered]
    schemas: Mapping[int, Schema]
    known: dict[tuple[object, ...], Named] = field(default_factory=dict)
    derived: dict[tuple[int, ...], DerivedMetrics] = field(default_factory=dict)

    def is_of(self, entry: StreamEntry) -> bool:
        """Whether an entry says what this one said."""
        return self.registered == list(entry.registered) and self.schemas == entry.schemas


class Timeline:
    """The metrics of a stream through time. One thread at a time updates it; others may read meanwhile."""

    def __init__(self, entry: StreamEntry, place: int) -> None:
        self._read = _Read(place, list(entry.registered), dict(entry.schemas))

    def update(self, entry: StreamEntry, place: int) -> None:
        """Take over the entry of a catalogue that was read up to a place, with changes that began and are not done."""
        if self._read.is_of(entry):
            # Another stream has changed. The names that were found and the derived metrics stay right.
            self._read.place = place
            return
        self._read = _Read(place, list(entry.registered), dict(entry.schemas))

    @property
    def place(self) -> int:
        """The place up to which the catalogue was read. Replies of a later place may name metrics not known yet."""
        return self._read.place

    @property
    def schemas(self) -> Mapping[int, Schema]:
        """The stream's schemas by version."""
        return self._read.schemas

    def unchanged(self, place: int, places: Iterable[int]) -> frozenset[str]:
        """Return the names that stand for the same metrics at one place and at several others."""
        names: dict[str, int] | None = None
        for at in (place, *places):
            in_force = {each.name: each.added for each in self._read.registered if each.is_in_force(at)}
            if names is None:
                names = in_force
            names = {name: added for name, added in names.items() if in_force.get(name) == added}
        return frozenset(names or ())

    def named(self, answered: Sequence[Answered], missing: Sequence[str], place: int) -> Named:
        """Return what a reply names.

        missing: the partitioners that have not answered.
        place: the place that counts for a partitioner to which the event was not sent.
        """
        read = self._read
        key = (*answered, *missing, place)
        found = read.known.get(key)
        if found is None:
            if len(read.known) >= _KNOWN_MAX:
                read.known.clear()
            found = read.known[key] = _named(read, answered, missing, place)
        return found


def _named(read: _Read, answered: Sequence[Answered], missing: Sequence[str], place: int) -> Named:
    places = [each.place for each in answered if each.place is not None]
    if not places and not missing:
        places = [place]
    added: dict[str, int] = {}
    for each in answered:
        at = place if each.place is None else each.place
        in_force = {there.name: there.added for there in read.registered if there.is_in_force(at)}
        for name in each.form.names:
            # A task of an earlier release does not say its place.
            added[name] = in_force.get(name, read.place)
    derived = [
        there
        for there in read.registered
        if there.derived is not None
        and all(there.is_in_force(at) for at in places)
        and not _lacks(there, read.registered, missing)
    ]
    added |= {there.name: there.added for there in derived}
    names = tuple(sorted(added, key=added.__getitem__))
    which = tuple(there.added for there in derived)
    found = read.derived.get(which)
    if found is None:
        if len(read.derived) >= _KNOWN_MAX:
            read.derived.clear()
        found = DerivedMetrics(there.derived for there in derived if there.derived is not None)
        read.derived[which] = found
    return Named(names, found)


def _lacks(derived: Registered, registered: Iterable[Registered], missing: Sequence[str]) -> bool:
    """Whether a derived metric reads a metric of a partitioner that has not answered."""
    assert derived.derived is not None
    operands = derived.derived.operands
    return bool(missing) and any(
        each.home in missing and each.name in operands and each.is_in_force(derived.added)
        for each in registered
    )
