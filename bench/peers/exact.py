"""The exact values of windows, by the oracle's arithmetic, and how a peer's results compare with them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from bench.distributions import Int64Array
from bench.peers.events import Events
from bench.peers.protocol import AGGREGATES
from tests.oracle.aggregates import Aggregate
from tests.oracle.types import DOUBLE

Values = tuple[float, ...]
"""The count, sum and average of each window in turn."""

TOLERANCE = 1e-9
_AGGREGATES = [Aggregate(name, DOUBLE) for name in AGGREGATES]


class Expected:
    """The exact values over windows (T - w, T] of the events of a card."""

    def __init__(self, events: Events, windows_ms: Sequence[int]) -> None:
        self._events, self._windows_ms = events, windows_ms
        self._clocks_ms = np.maximum.accumulate(events.times_ms)
        self._of_cards: dict[int, Int64Array] = {}

    def on_arrival(self, place: int) -> Values:
        """Return those right after an event has come: of the events up to it, with T the greatest time so far."""
        mine = self._of_card(place)
        return self._values(mine[mine <= place], int(self._clocks_ms[place]))

    def in_the_end(self, place: int) -> Values:
        """Return those of an event among all events, with T its own time, as a RANGE over a table has them."""
        return self._values(self._of_card(place), int(self._events.times_ms[place]))

    def _of_card(self, place: int) -> Int64Array:
        card = int(self._events.cards[place])
        if card not in self._of_cards:
            self._of_cards[card] = np.flatnonzero(self._events.cards == card)
        return self._of_cards[card]

    def _values(self, mine: Int64Array, now_ms: int) -> Values:
        times, found = self._events.times_ms[mine], list[float]()
        for window_ms in self._windows_ms:
            inside = mine[(times > now_ms - window_ms) & (times <= now_ms)]
            amounts = self._events.amounts[inside].tolist()
            for aggregate in _AGGREGATES:
                result = aggregate.result([aggregate.prepare(amount) for amount in amounts])
                found.append(math.nan if result is None else float(result))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How results compare with exact values.

    answered: of the events that were looked at, how many have a result.  right: within TOLERANCE, relatively, counts
    exactly.  exact: to the bit.  largest_error: relative, of those that are right.
    """

    events: int
    answered: int
    right: int
    exact: int
    largest_error: float


def compared(expected: Mapping[str, Values], got: Mapping[str, Values]) -> Comparison:
    """Compare results with exact values, by the ids of events."""
    errors = [_error(values, got[id_]) for id_, values in expected.items() if id_ in got]
    right = [error for error in errors if error <= TOLERANCE]
    return Comparison(len(expected), len(errors), len(right), right.count(0.0), max(right, default=0.0))


def _error(expected: Values, got: Values) -> float:
    """Return the largest relative error; infinity if a count differs."""
    if len(expected) != len(got) or expected[:: len(AGGREGATES)] != got[:: len(AGGREGATES)]:
        return math.inf
    errors = (abs(a - b) / max(abs(a), abs(b)) for a, b in zip(expected, got, strict=True) if a != b)
    largest = max(errors, default=0.0)
    return largest if largest == largest else math.inf


class _Reply(msgspec.Struct):
    id: str
    metrics: msgspec.Raw


def read_results(path: Path, ids: Iterable[str]) -> dict[str, Values]:
    """Return the results of some events from a peer's file. Raises ValueError if an event has two."""
    wanted, found, replies = set(ids), dict[str, Values](), msgspec.json.Decoder(_Reply)
    with path.open("rb") as file:
        for line in file:
            reply = replies.decode(line) if line.startswith(b"{") else None
            id_ = line.rstrip(b"\n").partition(b",")[0].decode() if reply is None else reply.id
            if id_ not in wanted:
                continue
            if id_ in found:
                raise ValueError(f"{path}: two results of event {id_}")
            found[id_] = _of_row(line) if reply is None else _of_metrics(reply.metrics)
    return found


def _of_row(line: bytes) -> Values:
    return tuple(float(value or "nan") for value in line.rstrip(b"\n").split(b",")[1:])


def _of_metrics(metrics: msgspec.Raw) -> Values:
    found = msgspec.json.decode(metrics, type=dict[str, float | None])
    return tuple(math.nan if value is None else value for value in found.values())
