"""Computes the flights' results a second time, in plain Python over the rows. It shares nothing with the engine.

Each result is computed from all rows of its window, in whole numbers and fractions; only results are doubles. Rows are
in order of time. So the clock at row i is the row's time, and later rows have not happened yet.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Generic, TypeVar

from railgun.demo.flights import LATER_METRIC, Flight

Row = TypeVar("Row")
Result = int | float | str | None

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


class BruteForce:
    """Computes the results for single rows of `flights`, which are in order of time."""

    def __init__(self, flights: Sequence[Flight]) -> None:
        self._flights = flights
        times = [flight.scheduled for flight in flights]
        self._by_origin = Groups(flights, times, lambda f: f.origin)
        self._by_carrier = Groups(flights, times, lambda f: (f.origin, f.carrier))
        self._by_route = Groups(flights, times, lambda f: (f.origin, f.dest))
        self._by_airline_and_route = Groups(flights, times, lambda f: (f.origin, f.dest, f.carrier))
        self._by_plane = Groups(flights, times, lambda f: f.plane)

    def results(self, row: int) -> dict[str, Result]:
        """Return every metric of flights.toml in the reply to a row, and the metric that is added later."""
        now = self._flights[row].scheduled
        midnight = now - now % DAY_MS
        airport = self._by_origin
        last_2h = airport.rows(row, now - 2 * HOUR_MS, now)
        day_before = airport.rows(row, now - 2 * HOUR_MS - DAY_MS, now - DAY_MS)
        today = airport.rows(row, midnight - 1, now)
        return {
            "departures_1h": len(airport.rows(row, now - HOUR_MS, now)),
            "delay_2h": mean(delays(last_2h)),
            "worst_2h": max(delays(last_2h), default=None),
            "delay_day_before": mean(delays(day_before)),
            "cancelled_today": sum(flight.delay is None for flight in today),
            "destinations_30d": len({f.dest for f in self._by_carrier.rows(row, now - 30 * DAY_MS, now)}),
            "route_spread_30d": spread(delays(self._by_route.rows(row, now - 30 * DAY_MS, now))),
            LATER_METRIC: mean(delays(self._by_airline_and_route.rows(row, now - 180 * DAY_MS, now))),
            **self._plane(row, now),
        }

    def _plane(self, row: int, now: int) -> dict[str, Result]:
        if self._flights[row].plane is None:
            return dict.fromkeys(("flights_7d", "worst_7d", "miles", "flew_before"))
        week = self._by_plane.rows(row, now - 7 * DAY_MS, now)
        ever = self._by_plane.rows(row, None, now)
        return {
            "flights_7d": len(week),
            "worst_7d": max(delays(week), default=None),
            "miles": sum(flight.distance for flight in ever),
            "flew_before": ever[-2].dest if len(ever) > 1 else None,
        }


class Groups(Generic[Row]):
    """Rows grouped by a key, in order of time. times: the times of the rows, in ms."""

    def __init__(self, rows: Sequence[Row], times: Sequence[int], key: Callable[[Row], object]) -> None:
        self._rows, self._times, self._key = rows, times, key
        self._members: dict[object, list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            self._members[key(row)].append(number)

    def rows(self, number: int, after_ms: int | None, until_ms: int) -> list[Row]:
        """Return the rows of row `number`'s group up to this row, with times in (after_ms, until_ms].

        after_ms: None means from the beginning.
        """
        members, time = self._members[self._key(self._rows[number])], self._times.__getitem__
        first = 0 if after_ms is None else bisect_right(members, after_ms, key=time)
        last = bisect_right(members, until_ms, key=time)
        return [self._rows[each] for each in members[first : min(last, bisect_left(members, number + 1))]]


def delays(flights: Sequence[Flight]) -> list[int]:
    """Return the delays that are known."""
    return [flight.delay for flight in flights if flight.delay is not None]


def mean(values: Sequence[int]) -> float | None:
    """Return the sum as a double, divided by the count."""
    return float(sum(values)) / len(values) if values else None


def spread(values: Sequence[int]) -> float | None:
    """Return the standard deviation of a sample: the root of the exact variance, which is rounded once."""
    n = len(values)
    if n < 2:
        return None
    exact = Fraction(n * sum(v * v for v in values) - sum(values) ** 2, n * (n - 1))
    return math.sqrt(exact.numerator / exact.denominator)


def same(expected: Result, got: object) -> bool:
    """Whether two results are equal in type and in every bit."""
    return type(expected) is type(got) and expected == got
