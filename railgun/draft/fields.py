"""The fields that a draft can have: each place of the sample with a name, a type and what is said of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from railgun.draft.naming import field_name, unused, words_of
from railgun.draft.observed import Place
from railgun.draft.types import Choice, fitting, share_text
from railgun.wire.path import HEADER, KEY, TIMESTAMP, Path

_OF_RECORD = {KEY: "record_key", TIMESTAMP: "record_time"}
_TEXT_MEAN_MAX = 64


@dataclass(frozen=True, slots=True)
class Candidate:
    """A field that could be.

    total: how many events the sample has.
    """

    name: str
    place: Place
    choice: Choice
    total: int

    @property
    def path(self) -> Path:
        return self.place.path

    @property
    def words(self) -> frozenset[str]:
        """The words of the last key of its path, or of a header's name."""
        keys = [step for step in self.path.steps if isinstance(step, str)]
        return frozenset(words_of(self.path.header or (keys[-1] if keys else self.name)))

    @property
    def count(self) -> int:
        """How many events have it, null apart."""
        return len(self.place.rows)

    @property
    def share(self) -> float:
        """The share of events that have it."""
        return self.count / self.total

    @property
    def is_complete(self) -> bool:
        """Whether all events have it."""
        return self.count == self.total

    @property
    def is_key(self) -> bool:
        """Whether events can be told apart, or divided, by it: short text or whole numbers, but no times."""
        if self.choice.is_near_time:
            return False
        if self.choice.type == "string":
            return sum(map(len, map(str, self.place.values))) <= _TEXT_MEAN_MAX * self.count
        return self.choice.type == "long"

    @property
    def is_beside(self) -> bool:
        """Whether it is beside the value of a record."""
        return bool(self.path.of_record)

    @property
    def may_be_active(self) -> bool:
        """Whether it is a field as long as nobody has chosen: not elements of arrays, and nothing beside a record."""
        return bool(self.choice.type) and not self.place.is_of_element and not self.is_beside

    @property
    def note(self) -> str:
        """What a draft says of it."""
        where = f"in {share_text(self.count, self.total)}"
        if not self.choice.type or not self.is_key:
            return f"{self.choice.why}; {where}"
        return f"{self.choice.why}; {where}; {self.place.distinct:,} different"


def candidates_of(places: Sequence[Place], beside: Iterable[Place], total: int) -> list[Candidate]:
    """Return the candidates: those of documents, then those beside them."""
    used: set[str] = set()
    names = {}
    # What is less deep has the first choice of names.
    for place in sorted(places, key=lambda each: len(each.path.steps)):
        names[place] = field_name(place.path.steps, used)
        used.add(names[place])
    found = [_candidate(names[place], place, total) for place in places]
    for place in beside:
        if place.rows:
            name = _name_beside(place.path, used)
            found.append(_candidate(name, place, total))
            used.add(name)
    return found


def _candidate(name: str, place: Place, total: int) -> Candidate:
    choice, own = fitting(place)
    return Candidate(name, own, choice, total)


def _name_beside(path: Path, used: set[str]) -> str:
    if path.of_record != HEADER:
        return unused(_OF_RECORD[path.of_record], used)
    return field_name(("header", path.header), used)
