"""Holds the records of input topics that were read and whose replies are not written to the output topic yet.

Records that were read together are a run; a window holds the runs of one partition, in order. `StreamInput` adds runs
and follows the group's rebalances; `AnswerThread` takes the answered runs and writes their replies.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from time import monotonic

from confluent_kafka import Message

from frontend.samples.ring import Sample
from frontend.topics.dead_letters import Letter
from railgun.ingest.accepted import AcceptedBatch, Position
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic

# How long an event's answer is waited for at first, and at most. If none comes the event is written to its tasks' logs
# once more, and the next wait is twice as long: while all units are away for an hour that makes eight copies, not 120.
ASK_MS, ASK_MOST_MS = 30_000, 960_000


@dataclass(slots=True, eq=False)
class Window:
    """The runs of one partition.

    where: the partition.
    place: a name of the partition that no other partition has ever had.
    number: identifies the partition to tasks. It differs from that in a deleted topic of the same name.
    position: the offset of the next record to be published; −1 while it is not known where the reading begins.
    read: the offset after the last record that was read; −1 before the first.
    written: the replies to records before this offset are durable; −1 if none are.
    committed: the offset at which the group would continue.
    time_ms: the greatest event time of the records before `written`; None if they had none.
    is_abandoned: whether another member of the group may have the partition.
    runs: what was read and is not written yet, in order.
    """

    where: TopicPartition
    place: str
    number: int
    position: int = -1
    read: int = -1
    written: int = -1
    committed: int = 0
    time_ms: int | None = None
    is_abandoned: bool = False
    runs: "deque[Run]" = field(default_factory=deque)

    def ready(self) -> "Iterator[Run]":
        """Yield the runs that can be written: they are answered, and so are all runs before them."""
        for run in self.runs:
            if run.values is None:
                return
            yield run


@dataclass(slots=True, eq=False)
class Run:
    """Records of one partition that were read together. Its events are published to their tasks, and answered.

    window: the window of the partition.
    count: how many records they are.
    accepted: the events among them.
    first, after: the offset of the first record, and the one after the last.
    offsets: of the records whose events were accepted, in order.
    letters: the dead letters of the other records.
    read_s: when the records were read, by perf_counter.
    published_s: when the events were published the last time, by perf_counter.
    skipped: how many records have no value, or do not satisfy the stream's condition.
    patience_ms: how long answers are waited for before the events are published again.
    values, keys: the replies in order, and their keys. None and empty until all answers are there.
    late_letters: the dead letters of late events that were discarded. Empty until all answers are there.
    held: the records of the events, where the replies need more of them than the events; their keys and values have
        `held_bytes`.
    samples: some of its events with their replies, for those who look once the replies are written.
    """

    window: Window
    count: int
    first: int
    after: int
    accepted: AcceptedBatch
    offsets: list[int]
    letters: list[Letter]
    read_s: float
    skipped: int = 0
    patience_ms: int = ASK_MS
    published_s: float = 0.0
    values: list[bytes] | None = None
    keys: list[bytes | None] = field(default_factory=list)
    late_letters: list[Letter] = field(default_factory=list)
    held: Sequence[Message] = ()
    held_bytes: int = 0
    samples: list[Sample] = field(default_factory=list)

    def hold(self, messages: Sequence[Message]) -> None:
        """Hold the records of the events, in order."""
        self.held = messages
        self.held_bytes = sum(len(each.value() or b"") + len(each.key() or b"") for each in messages)

    def positions(self) -> list[Position]:
        """Return the position of each event: the window's number, the offset, and the offset committed by now."""
        window = self.window
        return list(zip(repeat(window.number), self.offsets, repeat(window.committed)))


# How long the runs of a partition that goes to another member may take to be answered and written.
FINISH_S = 3.0
# While so much is held nothing more is read. What was read together by then may be as much again.
HELD_LIMIT_BYTES = 32 << 20


class Windows:
    """The windows of the partitions that this front-end reads of a stream's input topics. Any thread may call every
    method.

    topics: the topics, by name.
    limit_events: how many events may be read and not written.
    commit: waits until the group has committed positions. It does nothing if they are committed with the answers.
    changed: notified of every change that lets a waiting thread go on. Hold it to read several attributes at once.
    events: how many events are read and not written.
    held_bytes: how large the records are that are held with them.
    alive_s: when the thread that reads was last heard of, by time.monotonic.
    """

    def __init__(
        self,
        topics: Mapping[str, InputTopic],
        limit_events: int,
        commit: Callable[[Mapping[TopicPartition, int]], object],
    ) -> None:
        self._topics = topics
        self._limit_events, self._commit = limit_events, commit
        self._windows: dict[TopicPartition, Window] = {}
        # Where partitions are begun that have no window yet.
        self._begins: dict[TopicPartition, int] = {}
        self.changed = threading.Condition()
        self.events = self.held_bytes = 0
        self.rebalances = 0
        self.alive_s = monotonic()
        self._is_writing = False
        self._closed = False

    def of(self, where: TopicPartition) -> Window | None:
        """Return the window of a partition; None if the partition is not this front-end's."""
        return self._windows.get(where)

    def all(self) -> list[Window]:
        """Return the windows there are now."""
        with self.changed:
            return list(self._windows.values())

    @property
    def is_full(self) -> bool:
        """Whether no more should be read for now."""
        return self.events >= self._limit_events or self.held_bytes >= HELD_LIMIT_BYTES

    # --- runs ------------------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """Hold a run that was read."""
        with self.changed:
            run.window.runs.append(run)
            run.window.position = run.after
            self._count(run, 1)
            if run.values is not None:
                # It can be written at once. Any other run must be answered first, and need not wake the writing thread.
                self.changed.notify_all()

    def forget(self, run: Run) -> None:
        """Drop the run that was read last and was not published. The next member with the partition reads it again."""
        with self.changed:
            if not run.window.is_abandoned:
                assert run.window.runs.pop() is run
                run.window.position = run.first
                self._count(run, -1)

    def _count(self, run: Run, sign: int) -> None:
        self.events += sign * run.count
        self.held_bytes += sign * run.held_bytes

    def take_ready(self) -> list[Run]:
        """Return the runs that can be written now. `finish` must follow."""
        with self.changed:
            found = [run for window in self._windows.values() for run in window.ready()]
            self._is_writing = bool(found)
            return found

    def finish(self, runs: Iterable[Run]) -> None:
        """Note which of the runs that were taken are written. runs: empty if writing failed."""
        with self.changed:
            self._is_writing = False
            for run in runs:
                window = run.window
                if not window.is_abandoned:
                    assert window.runs[0] is run
                    window.runs.popleft()
                    window.written = run.after
                    if len(run.accepted):
                        latest_ms = max(run.accepted.times)
                        window.time_ms = max(
                            latest_ms, latest_ms if window.time_ms is None else window.time_ms
                        )
                    self._count(run, -1)
            self.changed.notify_all()

    def has_ready(self) -> bool:
        """Return whether a run can be written. The caller must hold `changed`."""
        return any(next(window.ready(), None) is not None for window in self._windows.values())

    def uncommitted(self) -> dict[TopicPartition, int]:
        """Return the positions up to which replies are written but not known to be committed, by partition."""
        with self.changed:
            return {
                each.where: each.written for each in self._windows.values() if each.written > each.committed
            }

    def settled(self) -> dict[TopicPartition, int]:
        """Return the positions that the group is known to have committed, by partition. Those that have not moved since
        the partition was assigned are left out."""
        with self.changed:
            return {each.where: each.committed for each in self._windows.values() if each.committed > 0}

    def positions(self) -> dict[TopicPartition, int]:
        """Return the positions at which the group should go on, by partition."""
        with self.changed:
            known = {
                each.where: each.runs[0].first if each.written < 0 and each.runs else each.written
                for each in self._windows.values()
            }
        return {where: offset for where, offset in known.items() if offset >= 0}

    # --- rebalances ------------------------------------------------------------------------------------

    def start(self, where: TopicPartition, offset: int) -> None:
        """Note where the reading of a partition begins: before it is assigned, or after that if the broker was slow."""
        with self.changed:
            window = self._windows.get(where)
            if window is None:
                self._begins[where] = offset
            elif window.position < 0:
                window.position = offset

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """Begin windows for partitions that the group has assigned to this front-end."""
        with self.changed:
            self.rebalances += 1
            for where in partitions:
                topic = self._topics[where.topic]
                number, begin = topic.partition_number(where.partition), self._begins.pop(where, -1)
                self._windows[where] = Window(where, f"{topic.id} {where.partition}", number, begin)

    def revoked(self, partitions: list[TopicPartition]) -> None:
        """Wait for the runs of partitions to be written, then let the partitions go."""
        with self.changed:
            going = [self._windows[each] for each in partitions if each in self._windows]
            self.changed.wait_for(
                lambda: self._closed or not (self._is_writing or any(each.runs for each in going)), FINISH_S
            )
            self.abandon(going)
        self._commit({each.where: each.written for each in going if each.written > each.committed})

    def lost(self, partitions: list[TopicPartition]) -> None:
        """Let partitions go at once, because another member may have them already."""
        with self.changed:
            self.abandon([self._windows[each] for each in partitions if each in self._windows])

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        """Note the positions that the group has committed, by partition."""
        with self.changed:
            for where, offset in positions.items():
                window = self._windows.get(where)
                if window is not None:
                    window.committed = max(window.committed, offset)

    def abandon(self, windows: Iterable[Window]) -> None:
        """Drop windows with their runs. The replies to these runs are not written any more."""
        with self.changed:
            for window in windows:
                window.is_abandoned = True
                for run in window.runs:
                    self._count(run, -1)
                window.runs.clear()
                self._windows.pop(window.where, None)
            self.changed.notify_all()

    def close(self) -> None:
        """Drop all windows, and end every wait."""
        with self.changed:
            self._closed = True
            self.abandon(list(self._windows.values()))
