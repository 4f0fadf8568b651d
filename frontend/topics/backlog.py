"""Holds back what is read of a stream's input topics while some of their partitions are behind, here or elsewhere."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic

from confluent_kafka import Message

from frontend.topics.alignment import Acknowledged, Chunk, Limits, Partition, Standing, late_before_ms, limits
from frontend.topics.input_reports import InputReports
from frontend.topics.windows import Run, Windows
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.group import GroupMember
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

# The pause between two looks at how all partitions stand while nothing waits: at least this, and so much longer than a
# look takes. How those stand that others read is taken in when they report something, and after this time.
_LOOK_S, _LOOK_SHARE, _HEAR_S = 0.005, 50, 0.1
# A pause in the reading that is no part of it: so long between two looks.
_REST_S = 0.5
# For how long a question of another front-end counts.
_ASKED_S = 2.0
# The bytes that are held of all partitions together, with what a record costs beside its value.
_HELD_BYTES, _RECORD_BYTES = 64 << 20, 1_000

EndsOf = Callable[[Sequence[TopicPartition]], Mapping[TopicPartition, int]]

_log = logging.getLogger("railgun.frontend")


class Backlog:
    """The partitions of one stream's input, and what is read of them and may not be published yet. One thread uses it.

    created: the place of the stream's creation.
    topics: its topics, by name.
    ends: where the partitions ended when the input began, of those that have a leader.
    ends_of: returns where partitions end now, of those that have a leader. Raises TransportError.
    is_held_up: whether a partition that is behind holds up others.
    asks: whether it waits to hear of partitions that other front-ends read.
    is_asked: whether another front-end waits to hear of this one's.
    """

    def __init__(
        self,
        created: int,
        topics: Mapping[str, InputTopic],
        ends: Mapping[TopicPartition, int],
        ends_of: EndsOf,
        windows: Windows,
        reports: InputReports,
    ) -> None:
        self._created, self._topics, self._ends_of = created, topics, ends_of
        self._ends: dict[str, dict[int, int]] = {name: {} for name in topics}
        for where, end in ends.items():
            self._ends[where.topic][where.partition] = end
        self._windows, self._reports = windows, reports
        self._own: dict[TopicPartition, Partition[Message, Run]] = {}
        self._begins: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._begun_s = self._looked_s = monotonic()
        self._next_s = 0.0
        self._limits: Limits[TopicPartition] = Limits(None, math.inf, math.inf)
        self._elsewhere: dict[TopicPartition, Standing] = {}
        self._heard, self._heard_s = -1, 0.0
        self.is_held_up = self.asks = self.is_asked = False

    # --- the partitions that this front-end reads ----------------------------------------------------------

    def start(self, where: TopicPartition, offset: int | None) -> None:
        """Note where the reading of a partition begins; None: at its oldest record."""
        self._begins[where] = offset or 0
        if where in self._own:
            self._own[where].start(offset or 0, monotonic())

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Begin with partitions. They are behind until they have reached the end that they have now."""
        try:
            ends = self._ends_of(partitions)
        except TransportError as error:
            _log.debug("where partitions end is not known yet: %s", error)
            ends = {}
        for where in partitions:
            own = self._own[where] = Partition(monotonic(), end=ends.get(where, -1))
            if where in self._begins:
                own.start(self._begins[where], monotonic())
        # Nothing is published before it is known how they stand.
        self._next_s = 0.0
        self._limits = Limits(None, -math.inf, -math.inf)

    def gone(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions with what is held of them."""
        for where in partitions:
            self._own.pop(where, None)
            self._begins.pop(where, None)
        self._heard, self._next_s = -1, 0.0
        self._paused.difference_update(partitions)

    def standings(self) -> dict[TopicPartition, Standing]:
        """Return how the partitions that this front-end reads stand."""
        now_s = monotonic()
        return {where: each.standing(now_s) for where, each in self._own.items()}

    # --- reading ---------------------------------------------------------------------------------------------

    def look(self, reading: GroupMember, lateness_ms: int | None, *, is_resting: bool = False) -> None:
        """Take in how all partitions stand, and read nothing for now of those of which enough is held.

        is_resting: whether nothing is read of any of them for now.
        lateness_ms: the stream's; None: partitions need not wait for one another, as events have no time of their own.
        """
        now_s = monotonic()
        if now_s < self._next_s and not self.is_holding:
            return
        if self._reports.count != self._heard or now_s - self._heard_s > _HEAR_S:
            self._heard, self._heard_s = self._reports.count, now_s
            self.asks = self.is_asked = False
            self._elsewhere = dict(self._others(now_s))
        standings = (*self._elsewhere.values(), *self.standings().values())
        late_ms = -math.inf if lateness_ms is None else late_before_ms(standings, lateness_ms)
        rested_s, self._looked_s = now_s - self._looked_s, now_s
        for where, own in self._own.items():
            window = self._windows.of(where)
            if is_resting or rested_s > _REST_S:
                own.rested(rested_s)
            if window is None:
                continue
            if own.end < 0 and window.read >= 0:
                # It had no leader when it was assigned. What the client knows by now is of a fetch since then.
                own.end = reading.end(where)
            settled = Acknowledged(window.written, window.time_ms, bool(window.runs))
            own.look(settled, now_s, late_ms)
        if lateness_ms is None:
            self._limits = Limits(None, math.inf, math.inf)
        else:
            here = {where: own.standing_here(now_s) for where, own in self._own.items()}
            self._limits = limits({**self._elsewhere, **here}, lateness_ms, now_s)
        self.is_held_up = self._limits.others_ms < math.inf
        self._pause(reading)
        self._next_s = monotonic() + max(_LOOK_S, _LOOK_SHARE * (monotonic() - now_s))

    def holds(self, where: TopicPartition) -> bool:
        """Whether what is read of a partition has to wait."""
        return self._limits.of(where) < math.inf or bool(self._own[where].chunks)

    @property
    def is_holding(self) -> bool:
        """Whether anything waits."""
        return any(each.chunks for each in self._own.values())

    def add(self, messages: Sequence[Message], run: Run) -> None:
        """Hold messages of one partition, and the run that was made of them."""
        known = dict(zip(run.offsets, run.accepted.times))
        times = [known.get(message.offset() or 0) for message in messages]
        size_bytes = sum(map(len, messages)) + _RECORD_BYTES * len(messages)
        self._own[run.window.where].add(Chunk(messages, times, run, size_bytes), monotonic())

    def take(self) -> Iterator[tuple[TopicPartition, Sequence[Message], Run | None]]:
        """Take what may be published by now: messages of a partition, with the run if that is of just these."""
        for where, own in self._own.items():
            for messages, run in own.take(self._limits.of(where), self._limits.lead_ms):
                yield where, messages, run

    def _pause(self, reading: GroupMember) -> None:
        limit_bytes = _HELD_BYTES // max(1, len(self._own))
        full = {where for where, own in self._own.items() if own.size_bytes >= limit_bytes}
        # One that was paused loses what the client has fetched ahead. So it is read on once half has gone.
        full |= {where for where in self._paused if self._own[where].size_bytes >= limit_bytes // 2}
        if full != self._paused:
            self._paused = full
            reading.hold(full)

    def _others(self, now_s: float) -> Iterator[tuple[TopicPartition, Standing]]:
        """Yield how the partitions stand that other front-ends read, as far as is known. Notes who asks."""
        unheard = Standing(None, True, self._begun_s)
        for topic in self._topics.values():
            heard, ends = self._reports.of_topic(self._created, topic), self._ends[topic.name]
            for partition, end in ends.items():
                where = TopicPartition(topic.name, partition)
                if where not in self._own and partition not in heard and (topic.start(partition) or 0) < end:
                    self.asks = True
                    yield where, unheard
            for partition, each in heard.items():
                where = TopicPartition(topic.name, partition)
                if where in self._own:
                    continue
                if each.heard_s > -math.inf:
                    self.is_asked |= each.report.asks and now_s - each.heard_s < _ASKED_S
                    yield where, Standing(each.report.time_ms, each.report.behind, each.heard_s)
                elif max(each.report.position, topic.start(partition) or 0) < ends.get(partition, 0):
                    self.asks = True
                    yield where, unheard
