"""Decides how far the partitions of a stream may be read while some are behind their end. Does no I/O, reads no clock.

A task's clock is the greatest event time that it has accepted. If one partition of a backlog were read far ahead of
another one, the events of the other would be late. So no partition is read further than a part of the stream's
`lateness` ahead of the slowest one that has not reached its end yet.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")

SILENT_S = 30.0
"""A partition that was not heard of for so long holds up no other one."""
NOTHING_COMES_S = 3.0
"""So long after its last record a partition counts as read to its end: what is left may be no records, or has no
leader."""


class Standing(NamedTuple):
    """How a partition stands.

    time_ms: the event time up to which its events are in the tasks' logs, or that of its next event if nothing is on
        its way there; None: not known yet.
    is_behind: whether it has not reached its end yet.
    heard_s: when this was so, in seconds of a monotonic clock.
    """

    time_ms: int | None
    is_behind: bool
    heard_s: float


def limit_ms(standings: Iterable[Standing], slack_ms: int, now_s: float) -> float:
    """Return the latest event time that may be published: infinity if no partition is behind, −infinity if it is not
    known yet how one stands.

    slack_ms: how far ahead of the slowest partition the others may be.
    """
    limit = math.inf
    for each in standings:
        if not each.is_behind or now_s - each.heard_s > SILENT_S:
            continue
        if each.time_ms is None:
            return -math.inf
        limit = min(limit, each.time_ms + slack_ms)
    return limit


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
    """

    records: Sequence[T]
    times: Sequence[int | None]
    made: R | None
    size_bytes: int = 0


@dataclass(slots=True)
class Partition(Generic[T, R]):
    """A partition that this process reads, and the records that wait because others are behind.

    begin: the offset of the first record that is read.
    read_s: when a record last came, or waited.
    end: the offset that has to be reached; negative while it is not known.
    size_bytes: what waiting records hold in memory, about.
    """

    begin: int
    read_s: float
    end: int = -1
    time_ms: int | None = None
    is_behind: bool = True
    chunks: deque[Chunk[T, R]] = field(default_factory=deque)
    size_bytes: int = 0

    def add(self, chunk: Chunk[T, R], now_s: float) -> None:
        """Hold records that were read."""
        self.chunks.append(chunk)
        self.size_bytes += chunk.size_bytes
        self.read_s = now_s

    def look(self, settled: Acknowledged, end: int, now_s: float) -> None:
        """Take in how far records are settled, and where the partition ends as far as is known (else negative)."""
        if self.end < 0:
            self.end = end
        if settled.time_ms is not None:
            self._reach(settled.time_ms)
        if settled.is_waiting or self.chunks:
            self.read_s = now_s
            if not settled.is_waiting and (next_ms := self._next_ms()) is not None:
                self._reach(next_ms)
            return
        is_at_end = self.end >= 0 and max(self.begin, settled.position) >= self.end
        if is_at_end or now_s - self.read_s > NOTHING_COMES_S:
            self.is_behind = False

    def standing(self, now_s: float) -> Standing:
        """Return how it stands."""
        return Standing(self.time_ms, self.is_behind, now_s)

    def take(self, limit: float) -> Iterator[tuple[Sequence[T], R | None]]:
        """Take the records, in order, that may be published up to a time: with what was made of them, if that is of
        just these.
        """
        while self.chunks:
            chunk = self.chunks[0]
            upto = _before(chunk.times, limit)
            if upto == len(chunk.records):
                self.chunks.popleft()
                self.size_bytes -= chunk.size_bytes
                yield chunk.records, chunk.made
                continue
            if upto:
                size_bytes = chunk.size_bytes * upto // len(chunk.records)
                self.chunks[0] = Chunk(
                    chunk.records[upto:], chunk.times[upto:], None, chunk.size_bytes - size_bytes
                )
                self.size_bytes -= size_bytes
                yield chunk.records[:upto], None
            return

    def _reach(self, time_ms: int) -> None:
        self.time_ms = time_ms if self.time_ms is None else max(self.time_ms, time_ms)

    def _next_ms(self) -> int | None:
        return next((time for chunk in self.chunks for time in chunk.times if time is not None), None)


def _before(times: Sequence[int | None], limit: float) -> int:
    """Return how many records come before the first one whose time is over a limit."""
    return next(
        (at for at, time in enumerate(times) if time is not None and time > limit),
        len(times),
    )
