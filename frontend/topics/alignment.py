"""Decides how far the partitions of a stream may be read while some are behind their end. Does no I/O, reads no clock.

A task's clock is the greatest event time that it has accepted. If one partition of a backlog were read far ahead of
another one, the events of the other would be late. So no partition is read further than half of the stream's
`lateness` ahead of the slowest one that has not reached its end yet.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K")

SILENT_S = 30.0
"""A partition that was not heard of for so long, or whose position is not known for so long, holds up no other one."""
NOTHING_COMES_S = 3.0
"""So long after its last record a partition holds up no other one, until its next record: what is left may be no
records, or has no leader."""


class Standing(NamedTuple):
    """How a partition stands.

    time_ms: the event time up to which its events are settled, or that of its next event if nothing is on its way;
        None: not known yet.
    is_behind: whether others have to wait for it: it has not reached its end yet, and records come.
    heard_s: when this was so, in seconds of a monotonic clock.
    """

    time_ms: int | None
    is_behind: bool
    heard_s: float


@dataclass(frozen=True, slots=True)
class Limits(Generic[K]):
    """Up to which event times, in ms, partitions may be published, and which of them is the slowest.

    others_ms: of all partitions but the slowest.  slowest_ms: of that one, which waits for the others alone.
    lead_ms: how far a partition may be ahead of the slowest one.
    """

    slowest: K | None
    slowest_ms: float
    others_ms: float
    lead_ms: int = 0

    def of(self, partition: K) -> float:
        """Return the limit of a partition."""
        return self.slowest_ms if partition == self.slowest else self.others_ms


def limits(standings: Mapping[K, Standing], lateness_ms: int, now_s: float) -> Limits[K]:
    """Return the limits: infinity if no partition is behind, −infinity if it is not known yet how one stands.

    A partition may be half of the stream's lateness ahead of the slowest one. The other half is for the disorder within
    a partition.
    """
    slowest: K | None = None
    least = second = math.inf
    lead_ms = lateness_ms // 2
    for where, each in standings.items():
        if not each.is_behind or now_s - each.heard_s > SILENT_S:
            continue
        limit = -math.inf if each.time_ms is None else each.time_ms + lead_ms
        if slowest is None or limit < least:
            slowest, least, second = where, limit, least
        else:
            second = min(second, limit)
    return Limits(slowest, second, least, lead_ms)


def late_before_ms(standings: Iterable[Standing], lateness_ms: int) -> float:
    """Return the time before which all events are late already, as a partition is past its end: its events are later
    by more than the lateness. −infinity if none is.
    """
    times = [each.time_ms for each in standings if not each.is_behind and each.time_ms is not None]
    return max(times) - lateness_ms if times else -math.inf


class Acknowledged(NamedTuple):
    """How far a partition's records are settled.

    position: the offset after the last one; negative if none is.
    time_ms: the greatest event time among them; None if they had none.
    is_waiting: whether records were published that are not settled yet.
    """

    position: int
    time_ms: int | None
    is_waiting: bool


@dataclass(slots=True)
class Chunk(Generic[T, R]):
    """Records of one partition that were read together and are not published.

    times: the event time of each record; None if it has none, as it is refused or skipped.
    made: what was made of all of them to be published; None if a part of what was read together is left.
    size_bytes: what they hold in memory, about.
    latest_ms: the greatest of the times; −infinity if there is none.
    span_ms: by how much it is later than the first of them.
    """

    records: Sequence[T]
    times: Sequence[int | None]
    made: R | None
    size_bytes: int = 0
    latest_ms: float = field(init=False)
    span_ms: float = field(init=False)

    def __post_init__(self) -> None:
        known = [time for time in self.times if time is not None]
        self.latest_ms = max(known, default=-math.inf)
        self.span_ms = self.latest_ms - known[0] if known else 0


@dataclass(slots=True)
class Partition(Generic[T, R]):
    """A partition that this process reads, and the records that wait because others are behind.

    assigned_s: since when it is read.
    begin: the offset of the first record that is read; None while it is not known.
    end: the offset that has to be reached; negative while it is not known.
    read_s: when a record last came, or waited.
    time_ms: the event time up to which its events are settled, or that of its next event if nothing is on its way.
    published_ms: the greatest event time of what was taken to be published.
    is_at_end: whether it has reached its end.
    is_late: whether all that comes of it now is late, whoever waits for it.
    size_bytes: what waiting records hold in memory, about.
    """

    assigned_s: float
    begin: int | None = None
    end: int = -1
    read_s: float = -math.inf
    time_ms: int | None = None
    published_ms: int | None = None
    is_at_end: bool = False
    is_late: bool = False
    chunks: deque[Chunk[T, R]] = field(default_factory=deque)
    size_bytes: int = 0

    def start(self, begin: int, now_s: float) -> None:
        """Note the offset of the first record that is read."""
        self.begin, self.read_s = begin, now_s

    def add(self, chunk: Chunk[T, R], now_s: float) -> None:
        """Hold records that were read."""
        self.chunks.append(chunk)
        self.size_bytes += chunk.size_bytes
        self.read_s = now_s

    def rested(self, pause_s: float) -> None:
        """Leave out a time in which nothing was read of any partition."""
        self.read_s += pause_s

    def look(self, settled: Acknowledged, now_s: float, late_ms: float = -math.inf) -> None:
        """Take in how far records are settled. late_ms: events before that are late already."""
        self.time_ms = _later(self.time_ms, settled.time_ms)
        if settled.is_waiting or self.chunks:
            self.read_s = now_s
        if not settled.is_waiting and self.chunks:
            self.time_ms = _later(self.time_ms, self._next_ms())
        if self.begin is not None and 0 <= self.end <= max(self.begin, settled.position):
            self.is_at_end = True
        here_ms = self._here_ms()
        self.is_late = here_ms is not None and here_ms < late_ms

    def standing(self, now_s: float) -> Standing:
        """Return how it stands for other front-ends."""
        return Standing(self.time_ms, self._is_behind(now_s), now_s)

    def standing_here(self, now_s: float) -> Standing:
        """Return how it stands for what this front-end publishes: that keeps its order in the tasks' logs, so what is
        on its way counts.
        """
        return Standing(self._here_ms(), self._is_behind(now_s), now_s)

    def _is_behind(self, now_s: float) -> bool:
        if self.begin is None:
            return now_s - self.assigned_s <= SILENT_S
        is_over = self.is_at_end or self.is_late
        return not is_over and (bool(self.chunks) or now_s - self.read_s <= NOTHING_COMES_S)

    def _here_ms(self) -> int | None:
        return _later(_later(self.time_ms, self.published_ms), self._next_ms())

    def take(self, limit: float, lead_ms: int) -> Iterator[tuple[Sequence[T], R | None]]:
        """Take the records, in order, that may be published up to a time: with what was made of them, if that is of
        just these.

        What was read together is taken in parts only if it spans more than a partition may be ahead of the slowest one:
        else a limit comes that lets all of it go, and no part has to be decoded once more.
        """
        while self.chunks:
            chunk = self.chunks[0]
            if chunk.latest_ms <= limit:
                self.chunks.popleft()
                self._taken(chunk.times, chunk.size_bytes)
                yield chunk.records, chunk.made
                continue
            upto = _before(chunk.times, limit) if chunk.span_ms > lead_ms else 0
            if upto:
                records, times = chunk.records, chunk.times
                size_bytes = chunk.size_bytes * upto // len(records)
                self.chunks[0] = Chunk(records[upto:], times[upto:], None, chunk.size_bytes - size_bytes)
                self._taken(times[:upto], size_bytes)
                yield records[:upto], None
            return

    def _taken(self, times: Sequence[int | None], size_bytes: int) -> None:
        self.size_bytes -= size_bytes
        known = [time for time in times if time is not None]
        self.published_ms = _later(self.published_ms, max(known, default=None))

    def _next_ms(self) -> int | None:
        return next((time for chunk in self.chunks for time in chunk.times if time is not None), None)


def _later(one: int | None, other: int | None) -> int | None:
    """Return the later of two times, of which either may not be known."""
    return other if one is None else one if other is None else max(one, other)


def _before(times: Sequence[int | None], limit: float) -> int:
    """Return how many records come before the first one whose time is over a limit."""
    return next(
        (at for at, time in enumerate(times) if time is not None and time > limit),
        len(times),
    )
