"""All metrics and derived metrics that a stream ever had, with the places of their addition and drop."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from railgun.language.derive import ResolvedDerived


@dataclass(frozen=True, slots=True)
class Registered:
    """A metric or derived metric, from its `add` to its drop.

    added, dropped: the places of these changes; dropped is None for a metric that was not dropped.
    home: a partitioner; None for a derived metric.  derived: the derived metric; None for others.
    """

    name: str
    added: int
    home: str | None = None
    derived: ResolvedDerived | None = None
    dropped: int | None = None

    def is_in_force(self, place: int) -> bool:
        """True if the metric exists after the changes up to this place."""
        return self.added <= place and (self.dropped is None or place < self.dropped)


@dataclass(slots=True)
class Registrations:
    """All present and dropped metrics of a stream, in the order added.

    Dropped ones are kept because a reply that is read again names the metrics of its time.
    """

    _all: list[Registered] = field(default_factory=list)
    # The indexes in `_all` of the present metrics by name, in the order added.
    _there: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Registered]:
        return iter(self._all)

    def copy(self) -> "Registrations":
        """Returns a copy that later changes of this object do not affect."""
        return Registrations(list(self._all), dict(self._there))

    def add(self, registered: Registered) -> None:
        """Adds a metric."""
        self._there[registered.name] = len(self._all)
        self._all.append(registered)

    def drop(self, name: str, place: int) -> None:
        """Ends the metric registered under this name."""
        at = self._there.pop(name)
        self._all[at] = dataclasses.replace(self._all[at], dropped=place)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the present metrics, in the order added."""
        return tuple(self._there)

    def find(self, name: str) -> Registered | None:
        """Returns the present metric of this name, or None."""
        at = self._there.get(name)
        return None if at is None else self._all[at]

    @property
    def derived(self) -> dict[str, ResolvedDerived]:
        """The present derived metrics by name, in the order added."""
        there = {name: self._all[at].derived for name, at in self._there.items()}
        return {name: derived for name, derived in there.items() if derived is not None}

    def readers(self, name: str) -> list[str]:
        """Returns the present derived metrics whose text names this field or metric."""
        return [each for each, derived in self.derived.items() if name in derived.names]
