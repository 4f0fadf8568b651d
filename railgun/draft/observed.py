"""Observes what a sample's events have at which path."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from railgun.draft.envelopes import Envelope
from railgun.draft.kinds import Kind, kind_of
from railgun.draft.naming import is_value
from railgun.draft.sample import Sample
from railgun.wire.finding import NO_TIME_MS
from railgun.wire.path import (
    HEADER,
    KEY,
    STEPS_MAX,
    TEXT_MAX,
    TIMESTAMP,
    Path,
    Step,
    has_lone_surrogate,
    text_of,
)

# Paths beyond these are counted and passed over.
_PATHS_MAX, _HEADERS_MAX = 5_000, 20
# So many of a place's values may be of another kind than the rest: their events are taken for broken.
_MISFITS_SHARE = 0.05
# An object is a map, whose keys are values, if it has more keys than this and few of them at once.
_KEYS_MAX, _KEYS_SHARE = 50, 0.1


class Place:
    """What the events have at one path.

    rows: the indices of the events that have something there, null apart, in order.
    values: what they have there; nothing for objects.
    misfits: the indices of the events that have something of another kind there, or on the way.
    keys: how often each key was met in objects there. value_keys: how many keys that seem to be values were met.
    """

    __slots__ = ("keys", "kinds", "misfits", "path", "rows", "value_keys", "values")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kinds: Counter[Kind] = Counter()
        self.rows: list[int] = []
        self.values: list[Any] = []
        self.misfits: frozenset[int] = frozenset()
        self.keys: Counter[str] = Counter()
        self.value_keys = 0

    def add(self, row: int, value: Any, kind: Kind) -> None:
        """Note the value of an event."""
        self.kinds[kind] += 1
        self.rows.append(row)
        self.values.append(None if kind is Kind.OBJECT else value)

    def without_misfits(self, fits: Callable[[Any], bool]) -> "Place | None":
        """Return the place with the values that fit alone; None if too many, or all, do not."""
        found = Place(self.path)
        for row, value in zip(self.rows, self.values):
            if value is not None and fits(value):
                found.add(row, value, kind_of(value))
        if not found.rows or not _is_most(len(found.rows), len(self.rows)):
            return None
        found.misfits = self.misfits | (set(self.rows) - set(found.rows))
        return found

    @property
    def broken_rows(self) -> frozenset[int] | None:
        """The events that have neither an object nor an array there where most have one; None if most have not."""
        kind = max((Kind.OBJECT, Kind.ARRAY), key=lambda each: self.kinds[each])
        if not _is_most(self.kinds[kind], len(self.rows)):
            return None
        is_object = kind is Kind.OBJECT
        return frozenset(
            row
            for row, value in zip(self.rows, self.values)
            if (value is not None if is_object else not isinstance(value, list | tuple))
        )

    @property
    def is_object(self) -> bool:
        """Whether it is an object wherever it is there."""
        return set(self.kinds) == {Kind.OBJECT}

    @property
    def is_map(self) -> bool:
        """Whether the keys of its objects seem to be values."""
        objects = self.kinds[Kind.OBJECT]
        return len(self.keys) > _KEYS_MAX and self.keys.total() < _KEYS_SHARE * len(self.keys) * objects

    @property
    def is_of_element(self) -> bool:
        """Whether it is in an element of an array."""
        return any(isinstance(step, int) for step in self.path.steps)

    @property
    def distinct(self) -> int:
        """How many different values there are."""
        return len({str(value) for value in self.values})


class Observations:
    """All places of a sample, in the order in which they were met. omitted: how many paths are too deep or too many."""

    def __init__(self, sample: Sample, envelope: Envelope) -> None:
        self.total = len(sample.documents)
        self.omitted = 0
        self._keeps = envelope.keeps
        self._places: dict[tuple[Step, ...], Place] = {}
        self._omitted: set[tuple[Step, ...]] = set()
        self.root = Place(Path(""))
        for row, document in enumerate(sample.documents):
            self._within(row, self.root, (), document)
        self.of_records = list(_beside(sample))

    def places(self) -> list[Place]:
        """Return the places where a field may be, or why none is: not those within something that is not mostly an
        object or an array, or within a map.
        """
        closed: set[tuple[Step, ...]] = set()
        broken: dict[tuple[Step, ...], frozenset[int]] = {}
        found = []
        for steps, place in self._places.items():
            above = [steps[:length] for length in range(1, len(steps))]
            if any(each in closed for each in above):
                continue
            place.misfits = frozenset().union(*(broken[each] for each in above if each in broken))
            if len(place.kinds) > 1 and place.broken_rows is not None:
                broken[steps] = place.broken_rows
            elif place.is_map or len(place.kinds) > 1:
                closed.add(steps)
            if not place.is_object or place.is_map or place.value_keys:
                found.append(place)
        return found

    def _within(self, row: int, place: Place, steps: tuple[Step, ...], value: Mapping[str, Any]) -> None:
        for key, inner in value.items():
            if not isinstance(key, str) or is_value(key):
                place.value_keys += 1
                continue
            place.keys[key] += 1
            self._note(row, (*steps, key), inner)

    def _note(self, row: int, steps: tuple[Step, ...], value: Any) -> None:
        place = self._place(steps)
        if place is None or value is None:
            return
        kind = kind_of(value)
        place.add(row, value, kind)
        if kind is Kind.OBJECT:
            self._within(row, place, steps, value)
        elif kind is Kind.ARRAY and value:
            self._note(row, (*steps, 0), value[0])

    def _place(self, steps: tuple[Step, ...]) -> Place | None:
        found = self._places.get(steps)
        if found is not None or not self._keeps(steps):
            return found
        text = text_of(steps)
        is_sound = len(steps) <= STEPS_MAX and len(text) <= TEXT_MAX and not has_lone_surrogate(text)
        if not is_sound or len(self._places) >= _PATHS_MAX:
            self.omitted += 1
            return None
        return self._places.setdefault(steps, Place(Path(text, steps)))


def _is_most(count: int, total: int) -> bool:
    return count >= (1 - _MISFITS_SHARE) * total


def _beside(sample: Sample) -> Iterable[Place]:
    """Yield the places beside the values of records: the key, the time, headers."""
    records = sample.records
    names = dict.fromkeys(name for each in records for name in (each.headers or {}))
    yield _of_texts(Path(KEY, (), KEY), [each.key for each in records])
    time = Place(Path(TIMESTAMP, (), TIMESTAMP))
    for row, each in enumerate(records):
        if each.timestamp_ms != NO_TIME_MS:
            time.add(row, each.timestamp_ms, Kind.TIME)
    yield time
    for name in list(names)[:_HEADERS_MAX]:
        if name and not has_lone_surrogate(name) and not is_value(name):
            # Behind a key, as a header's name is behind the @header.
            text = HEADER + text_of(("k", name))[1:]
            yield _of_texts(
                Path(text, (), HEADER, name), [(each.headers or {}).get(name) for each in records]
            )


def _of_texts(path: Path, values: Sequence[bytes | None]) -> Place:
    place = Place(path)
    for row, data in enumerate(values):
        if data is None:
            continue
        try:
            place.add(row, data.decode(), Kind.TEXT)
        except UnicodeDecodeError:
            place.add(row, data, Kind.BYTES)
    return place
