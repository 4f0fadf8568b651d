"""All metrics and derived metrics that a stream ever had, and from when to when each was there."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from railgun.language.derive import ResolvedDerived


@dataclass(frozen=True, slots=True)
class Registered:
    """A metric or a derived one, from its `add` to its drop. added, dropped: places; dropped: None: it is there.

    home: a partitioner; None of a derived one.  derived: what a derived one is; None of others.
    """

    name: str
    added: int
    home: str | None = None
    derived: ResolvedDerived | None = None
    dropped: int | None = None

    def is_in_force(self, place: int) -> bool:
        """Whether it is there for who has applied the changes up to a place."""
        return self.added <= place and (self.dropped is None or place < self.dropped)


@dataclass(slots=True)
class Registrations:
    """All that there ever were, in the order added: a reply that is read again names those of its time."""

    _all: list[Registered] = field(default_factory=list)
    # By name, the places in the list of those that are there, in the order added.
    _there: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._all)

    def copy(self) -> "Registrations":
        """One that later changes of this one do not reach."""
        return Registrations(list(self._all), dict(self._there))

    def add(self, registered: Registered) -> None:
        """One begins."""
        self._there[registered.name] = len(self._all)
        self._all.append(registered)

    def drop(self, name: str, place: int) -> None:
        """The one of a name that is there ends."""
        at = self._there.pop(name)
        self._all[at] = dataclasses.replace(self._all[at], dropped=place)

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that are there, in the order added."""
        return tuple(self._there)

    def find(self, name: str) -> Registered | None:
        """The one of a name that is there."""
        at = self._there.get(name)
        return None if at is None else self._all[at]

    @property
    def derived(self) -> dict[str, ResolvedDerived]:
        """The derived metrics that are there, by name, in the order added."""
        there = {name: self._all[at].derived for name, at in self._there.items()}
        return {name: derived for name, derived in there.items() if derived is not None}

    def readers(self, name: str) -> list[str]:
        """The derived metrics that are there and whose text names a field or a metric."""
        return [each for each, derived in self.derived.items() if name in derived.names]
