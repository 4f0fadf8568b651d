"""Rates, counts and quantiles of latency over the last seconds, from counts that only grow.

What counts (`railgun/telemetry/recording.py`) knows nothing of this: a copy of the counts is kept at each tick, and a
window is the difference of two copies.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from railgun.telemetry.recording import LATENCY_BOUNDS, TOTAL, StreamRecord

WINDOWS_S = (10, 60)
"""How long the windows are."""
_QUANTILES_PER_MILLE = np.array([500, 990, 999], np.int64)
# A tick may come a little early or late.
_SLACK_S = 0.5

Source = tuple[str, str]
"""A stream, and the way that its events came."""
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Latency:
    """Quantiles of latency in milliseconds: at most 10 % above the value that they are of.

    count: how many latencies they are of; without any they are None.
    """

    count: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    p999_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """What was counted in the last seconds.

    seconds: how long the window was; shorter at the start of the process.
    events: how many events were taken and answered.
    late, duplicate: how many events were late or duplicate, by partitioner.
    refused: how many events were refused, by reason.
    """

    seconds: float
    events: int
    events_per_s: float
    late: Mapping[str, int]
    duplicate: Mapping[str, int]
    refused: Mapping[str, int]
    latency: Latency


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts of a record at a tick. latencies: as `Buckets.counts` gives them."""

    events: int
    late: Mapping[tuple[str, str], int]
    duplicate: Mapping[str, int]
    refused: Mapping[str, int]
    latencies: bytes

    @classmethod
    def of(cls, record: StreamRecord) -> "_Counts":
        # Each copy is made at once, so whoever counts need not wait.
        return cls(
            record.events,
            dict(record.late),
            dict(record.duplicates),
            dict(record.refused),
            record.stages[TOTAL].counts(),
        )


_NOTHING = _Counts.of(StreamRecord())


class _Source:
    """The copies of a record's counts through the last minute. Equal ones that follow each other are kept once."""

    def __init__(self, record: StreamRecord) -> None:
        self.record = record
        self._kept: deque[tuple[float, _Counts]] = deque()

    def note(self, at_s: float) -> None:
        """Keep the present counts, and drop those that no window needs any more."""
        counts = _Counts.of(self.record)
        if not self._kept or self._kept[-1][1] != counts:
            self._kept.append((at_s, counts))
        while len(self._kept) > 1 and self._kept[1][0] < at_s - WINDOWS_S[-1] - 2 * _SLACK_S:
            self._kept.popleft()

    def at(self, at_s: float) -> _Counts:
        """Return the counts at a tick. A record begins with nothing counted."""
        return next((counts for since_s, counts in reversed(self._kept) if since_s <= at_s), _NOTHING)


class Traffic:
    """What was counted of all streams, tick by tick, through the last minute. Used in one thread."""

    def __init__(self) -> None:
        self._ticks: deque[float] = deque()
        self._sources: dict[Source, _Source] = {}

    def tick(self, records: Iterable[tuple[str, str, StreamRecord]], now_s: float) -> None:
        """Keep the present counts. To be called about once a second.

        A record that has taken another one's place, as when a stream was dropped and made anew, begins with nothing.
        """
        self._ticks.append(now_s)
        while len(self._ticks) > 1 and self._ticks[1] < now_s - WINDOWS_S[-1] - 2 * _SLACK_S:
            self._ticks.popleft()
        before, self._sources = self._sources, {}
        for stream, way, record in records:
            known = before.get((stream, way))
            source = known if known is not None and known.record is record else _Source(record)
            source.note(now_s)
            self._sources[stream, way] = source

    def windows(self, stream: str, way: str) -> dict[str, Window]:
        """Return the windows of a stream's events that came by one way, as `last_10_s` and `last_60_s`."""
        source = self._sources.get((stream, way))
        now_s = self._ticks[-1] if self._ticks else 0.0
        found = {}
        for window_s in WINDOWS_S:
            since_s = self._tick_before(now_s - window_s)
            now, then = (_NOTHING, _NOTHING) if source is None else (source.at(now_s), source.at(since_s))
            found[f"last_{window_s}_s"] = _window(now, then, now_s - since_s)
        return found

    def _tick_before(self, at_s: float) -> float:
        """Return the last tick up to about that time; the first one if there is none."""
        ticks = (each for each in reversed(self._ticks) if each <= at_s + _SLACK_S)
        return next(ticks, self._ticks[0] if self._ticks else 0.0)


def _window(now: _Counts, then: _Counts, seconds: float) -> Window:
    events = now.events - then.events
    late: Counter[str] = Counter()
    for (partitioner, _), count in _grown(now.late, then.late).items():
        late[partitioner] += count
    return Window(
        seconds=round(seconds, 3),
        events=events,
        events_per_s=round(events / seconds, 3) if seconds > 0 else 0.0,
        late=dict(late),
        duplicate=_grown(now.duplicate, then.duplicate),
        refused=_grown(now.refused, then.refused),
        latency=_latency(now.latencies, then.latencies),
    )


def _grown(now: Mapping[_Key, int], then: Mapping[_Key, int]) -> dict[_Key, int]:
    """Return by how much counts have grown; those that have not are left out."""
    grown = {key: count - then.get(key, 0) for key, count in now.items()}
    return {key: count for key, count in grown.items() if count}


def _latency(now: bytes, then: bytes) -> Latency:
    if now == then:
        return Latency(0)
    counts = np.frombuffer(now, np.int64) - np.frombuffer(then, np.int64)
    p50_s, p99_s, p999_s = quantiles(counts)
    return Latency(int(counts.sum()), _ms(p50_s), _ms(p99_s), _ms(p999_s))


def quantiles(counts: NDArray[np.int64]) -> list[float]:
    """Return p50, p99 and p99.9 of latencies in seconds, by their counts in the buckets of `LATENCY_BOUNDS`.

    Each is the upper bound of the bucket with the least latency that so many are at or below. It is the greatest bound
    if that latency is above all of them.
    """
    ends = np.cumsum(counts)
    ranks = (ends[-1] * _QUANTILES_PER_MILLE + 999) // 1_000
    places = np.searchsorted(ends, ranks)
    return [LATENCY_BOUNDS[min(place, len(LATENCY_BOUNDS) - 1)] for place in places.tolist()]


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 6)
