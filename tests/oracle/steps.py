"""What can happen to a stream, step by step, as its clients and operators see it: plain data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Reply = dict[str, Any]


@dataclass(frozen=True)
class Score:
    """An event as JSON has it: decimals are strings, times integer ms or RFC 3339 text."""

    event: Mapping[str, Any]


@dataclass(frozen=True)
class AskValues:
    """A value query. names: only these metrics; None: all that the key determines."""

    key: Mapping[str, Any]
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class AddMetrics:
    """With `warm`, they are filled before the next step; else a WarmMetric may follow for each."""

    sql: str
    warm: bool = True


@dataclass(frozen=True)
class WarmMetric:
    """The `warm` record of the newest `add` of that name."""

    name: str


@dataclass(frozen=True)
class DropMetric:
    name: str


@dataclass(frozen=True)
class AddField:
    """`declared` is its type, or a table of type, from and unit, or of type and as, as definitions have them."""

    name: str
    declared: Any


@dataclass(frozen=True)
class PlaceField:
    """declared: a field that is there, with another `from` or `unit`. What is recorded stays as it is."""

    name: str
    declared: Any


@dataclass(frozen=True)
class DropField:
    """Only a computed field can be dropped."""

    name: str


@dataclass(frozen=True)
class SetLateness:
    duration: str


@dataclass(frozen=True)
class SetRetention:
    duration: str


@dataclass(frozen=True)
class SetClock:
    """The front-end's own clock stands at this time from here on."""

    clock_ms: int


Step = (
    Score
    | AskValues
    | AddMetrics
    | WarmMetric
    | DropMetric
    | AddField
    | PlaceField
    | DropField
    | SetLateness
    | SetRetention
    | SetClock
)


class Player(Protocol):
    """A stream that steps can be done to; each method raises its own error where the product refuses.

    `values` gives a reply without an id and a time, and with `as_of`: the clock of each partitioner's task.
    """

    def score(self, event: Mapping[str, Any]) -> Reply: ...
    def values(self, key: Mapping[str, Any], names: Sequence[str] | None = None) -> Reply: ...
    def add_metrics(self, sql: str, *, warm: bool = True) -> object: ...
    def warm(self, name: str) -> None: ...
    def drop_metric(self, name: str) -> None: ...
    def add_field(self, name: str, declared: Any) -> None: ...
    def place_field(self, name: str, declared: Any) -> None: ...
    def drop_field(self, name: str) -> None: ...
    def set_lateness(self, duration: str) -> None: ...
    def set_retention(self, duration: str) -> None: ...
    def set_clock(self, clock_ms: int) -> None: ...


def perform(player: Player, step: Step) -> Reply | None:
    """Do one step; an event or a value query gives its reply."""
    match step:
        case Score(event):
            return player.score(event)
        case AskValues(key, names):
            return player.values(key, names)
        case AddMetrics(sql, warm):
            player.add_metrics(sql, warm=warm)
        case WarmMetric(name):
            player.warm(name)
        case DropMetric(name):
            player.drop_metric(name)
        case AddField(name, declared):
            player.add_field(name, declared)
        case PlaceField(name, declared):
            player.place_field(name, declared)
        case DropField(name):
            player.drop_field(name)
        case SetLateness(duration):
            player.set_lateness(duration)
        case SetRetention(duration):
            player.set_retention(duration)
        case SetClock(clock_ms):
            player.set_clock(clock_ms)
    return None
