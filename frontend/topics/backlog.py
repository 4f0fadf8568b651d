"""Holds back what is read of a stream's input topics while some of their partitions are behind, here or elsewhere."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import monotonic

from confluent_kafka import Message

from frontend.topics.alignment import Acknowledged, Chunk, Partition, Standing, limit_ms
from frontend.topics.input_reports import InputReports
from frontend.topics.windows import Run, Windows
from railgun.messaging.kafka.group import GroupMember
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

# The pause between two looks at how all partitions stand: at least this, and so much longer than a look takes.
_LOOK_S, _LOOK_SHARE = 0.005, 50
# For how long a question of another front-end counts.
_ASKED_S = 2.0
# The bytes that are held of all partitions together, with what a record costs beside its value.
_HELD_BYTES, _RECORD_BYTES = 64 << 20, 1_000


class Backlog:
    """The partitions of one stream's input, and what is read of them and may not be published yet. One thread uses it.

    created: the place of the stream's creation.
    topics: its topics, by name.
    ends: where the partitions ended when the input began, of those that have a leader.
    limit: the event time up to which events may be published, in ms; infinity if no partition is behind.
    asks: whether it waits to hear of partitions that other front-ends read.
    is_asked: whether another front-end waits to hear of this one's.
    """

    def __init__(
        self,
        created: int,
        topics: Mapping[str, InputTopic],
        ends: Mapping[TopicPartition, int],
        windows: Windows,
        reports: InputReports,
    ) -> None:
        self._created, self._topics, self._ends = created, topics, ends
        self._windows, self._reports = windows, reports
        self._own: dict[TopicPartition, Partition[Message, Run]] = {}
        self._begins: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._begun_s, self._next_s = monotonic(), 0.0
        self.limit = math.inf
        self.asks = self.is_asked = False

    # --- the partitions that this front-end reads ----------------------------------------------------------

    def start(self, where: TopicPartition, offset: int | None) -> None:
        """Note where the reading of a partition begins; None: at its oldest record."""
        self._begins[where] = offset or 0
        if where in self._own:
            self._own[where].begin = offset or 0

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin with partitions. They are behind until they have reached their end."""
        for where in partitions:
            self._own[where] = Partition(self._begins.get(where, 0), monotonic())
        # Nothing is published before it is known how they stand.
        self._next_s, self.limit = 0.0, -math.inf

    def gone(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop partitions with what is held of them."""
        for where in partitions:
            self._own.pop(where, None)
        self._paused.difference_update(partitions)

    def standings(self) -> dict[TopicPartition, Standing]:
        """Return how the partitions that this front-end reads stand."""
        now_s = monotonic()
        return {where: each.standing(now_s) for where, each in self._own.items()}

    # --- reading ---------------------------------------------------------------------------------------------

    def look(self, reading: GroupMember, slack_ms: int | None) -> None:
        """Take in how all partitions stand, and read nothing for now of those of which enough is held.

        slack_ms: how far a partition may be ahead of the slowest one; None: any, as events have no time of their own.
        """
        now_s = monotonic()
        if now_s < self._next_s:
            return
        for where, own in self._own.items():
            window = self._windows.of(where)
            if window is not None:
                settled = Acknowledged(window.written, window.time_ms, bool(window.runs))
                own.look(settled, reading.end(where) if own.end < 0 else own.end, now_s)
        self.asks = self.is_asked = False
        standings = [*(each.standing(now_s) for each in self._own.values()), *self._others(now_s)]
        self.limit = math.inf if slack_ms is None else limit_ms(standings, slack_ms, now_s)
        self._pause(reading)
        self._next_s = monotonic() + max(_LOOK_S, _LOOK_SHARE * (monotonic() - now_s))

    def holds(self, where: TopicPartition) -> bool:
        """Whether what is read of a partition has to wait."""
        return self.limit < math.inf or bool(self._own[where].chunks)

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
            for messages, run in own.take(self.limit):
                yield where, messages, run

    def _pause(self, reading: GroupMember) -> None:
        limit_bytes = _HELD_BYTES // max(1, len(self._own))
        full = {where for where, own in self._own.items() if own.size_bytes >= limit_bytes}
        # One that was paused loses what the client has fetched ahead. So it is read on once half has gone.
        full |= {where for where in self._paused if self._own[where].size_bytes >= limit_bytes // 2}
        if full != self._paused:
            self._paused = full
            reading.hold(full)

    def _others(self, now_s: float) -> Iterator[Standing]:
        """Yield how the partitions stand that other front-ends read, as far as is known. Notes who asks."""
        unheard = Standing(None, True, self._begun_s)
        for topic in self._topics.values():
            heard = self._reports.of_topic(self._created, topic)
            for where, end in self._ends.items():
                if where.topic != topic.name or where in self._own or where.partition in heard:
                    continue
                if self._begin(topic, where) < end:
                    self.asks = True
                    yield unheard
            for partition, each in heard.items():
                where = TopicPartition(topic.name, partition)
                if where in self._own:
                    continue
                if each.heard_s > -math.inf:
                    self.is_asked |= each.report.asks and now_s - each.heard_s < _ASKED_S
                    yield Standing(each.report.time_ms, each.report.behind, each.heard_s)
                elif max(each.report.position, self._begin(topic, where)) < self._ends.get(where, 0):
                    self.asks = True
                    yield unheard

    def _begin(self, topic: InputTopic, where: TopicPartition) -> int:
        return topic.starts[where.partition] if where.partition < len(topic.starts) else 0
