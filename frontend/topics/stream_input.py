"""Reads one stream's events from its input topics, publishes them, and hands them to the thread that writes answers."""

import logging
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from time import monotonic, perf_counter
from typing import Any

import numpy as np
from confluent_kafka import Message

from frontend.formats.errors import SchemaPendingError
from frontend.formats.values import events_of
from frontend.topics.answers import AnswerThread
from frontend.topics.backlog import Backlog, EndsOf
from frontend.topics.dead_letters import letter
from frontend.topics.input_reports import InputReports
from frontend.topics.mapped_intakes import MappedIntakes
from frontend.topics.mappings import member_suffix
from frontend.topics.path_misses import PathMisses
from frontend.topics.positions import InputPositions
from frontend.topics.route import Means, Route
from frontend.topics.same_topics import SameTopics
from frontend.topics.windows import Run, Window, Windows
from railgun.ingest.ids import PositionIds
from railgun.ingest.recording import note_refused
from railgun.messaging.errors import TransportError, TransportFailedError, TransportUnavailableError
from railgun.messaging.kafka.group import GroupMember, leave, where_of
from railgun.messaging.kafka.output import Output
from railgun.messaging.transport import TopicPartition
from railgun.registry.input_topics import InputTopic
from railgun.telemetry.recording import StreamRecord

_POLL_S, _COMMIT_S = 0.1, 0.05
_LOOK_S = 0.5
# How long records are waited for while some wait for other partitions.
_HELD_S = 0.005
_RECORDS = 1_000
_ROOM_S, _REST_AFTER_S = 0.02, 0.5
# How often a schema that was asked for is looked for.
_SCHEMA_S = 0.1

_log = logging.getLogger("railgun.frontend")


@dataclass(frozen=True, slots=True)
class _ReadTogether:
    """Records of one partition that were read together. was_held: whether they were held back before."""

    window: Window
    messages: Sequence[Message]
    read_s: float
    was_held: bool = False


class StreamInput:
    """The input of a stream. One thread reads and publishes, another one writes the answers.

    topics: the topics, with their numbers.
    reports: of how far topics are read.
    ends: where the topics' partitions end, of those that have a leader, and whose reader reports how far it is.
    ends_of: returns where some of them end now, of those that have a leader. Raises TransportError.
    same_topics: tells whether records are of the topics, and whether the mapping holds.
    make_output: makes the output for the answers; the first thread calls it.
    failure: why the input ended by itself; None if it did not.
    skipped: how many records were read that have no value, or do not satisfy the stream's condition, by topic.
    path_misses: how often the paths of fields met nothing.
    refused: how many records were read that are no events of the stream, and get a dead letter, by topic.
    """

    def __init__(
        self,
        route: Route,
        topics: Sequence[InputTopic],
        means: Means,
        reports: InputReports,
        ends: Mapping[TopicPartition, int],
        ends_of: EndsOf,
        same_topics: SameTopics,
        make_output: Callable[[Callable[[], bool]], Output],
    ) -> None:
        self.route, self._means, self._make_output = route, means, make_output
        self.same_topics = same_topics
        self.failure: str | None = None
        self.record = StreamRecord()
        self._group = means.topics.input(route.stream)
        self._topics = {each.name: each for each in topics}
        self._positions = InputPositions(route.stream, route.created, self._topics, reports)
        self.windows = Windows(self._topics, means.limit_events, self._commit_last)
        self._backlog = Backlog(route.created, self._topics, ends, ends_of, self.windows, reports)
        self.skipped, self.refused = Counter[str](), Counter[str]()
        self.path_misses = PathMisses()
        self._unpublished: deque[Run] = deque()
        self._stopping = threading.Event()
        self._reading: GroupMember | None = None
        self._answers: AnswerThread | None = None
        self._committed_s = self._looked_s = self._pending_s = 0.0
        self._ends: dict[TopicPartition, int] = {}
        self._intakes = MappedIntakes(route, self._topics, means)
        # What has come and may be of topics that were made anew. It is not if their ids were seen after this time.
        self._unsure: list[Message] = []
        self._sure_after_s = 0.0
        # What was read and waits for a schema, and why that is not there.
        self._pending: list[_ReadTogether] = []
        self._pending_why: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"input-{route.stream}", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether the input has ended, by itself or because it was told to."""
        return not self._thread.is_alive()

    @property
    def dead_letters(self) -> int:
        """How many dead letters were written so far."""
        return 0 if self._answers is None else self._answers.dead_letters

    @property
    def records_read(self) -> int:
        """How many records are done with: answered, with a dead letter, or skipped."""
        return self.record.events + self.dead_letters + sum(self.skipped[topic] for topic in self._topics)

    def stop(self) -> None:
        """Read no more. What is under way is finished."""
        self._stopping.set()

    def join(self, within_s: float | None = None) -> None:
        """Wait for the end of the input."""
        self._thread.join(within_s)

    @property
    def topics(self) -> list[str]:
        """The names of the topics."""
        return list(self._topics)

    def by_topic(self) -> list[dict[str, Any]]:
        """Return how each topic stands, for people: partitions that this front-end has, and records in them."""
        lags, own = self.lags(), Counter(window.where.topic for window in self.windows.all())
        return [
            {
                "topic": topic,
                "partitions": own[topic],
                "lag": sum(records for where, records in lags.items() if where.topic == topic),
                "skipped": self.skipped[topic],
                "refused": self.refused[topic],
                "missed": self.path_misses.shares(topic),
            }
            for topic in self._topics
        ]

    def lags(self) -> dict[TopicPartition, int]:
        """Return how many records wait to be read, by partition, as far as is known."""
        if self.is_over:
            return {}
        ends = self._ends
        return {
            window.where: max(0, ends[window.where] - max(0, window.position))
            for window in self.windows.all()
            if ends.get(window.where, -1) >= 0
        }

    # --- the thread that reads -------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            output = self._make_output(self._stopping.is_set)
            try:
                self._open(output)
            finally:
                if self._answers is None or self._answers.is_over:
                    output.close()
        except TransportFailedError as error:
            # The error's remedy is left out: `Inputs` begins a failed input again by itself.
            self.failed(f"{error.place}: {error.reason}")
        except TransportError as error:
            self.failed(str(error))
        except Exception as error:  # noqa: BLE001 - it is begun again
            _log.exception("a defect stopped the reading of %s", self._group)
            self.failed(f"a defect: {type(error).__name__}")

    def _open(self, output: Output) -> None:
        windows = self.windows
        suffix = member_suffix(self.route.mapped)
        reading = self._reading = GroupMember(self._means.settings, self._group, self.topics, self, suffix)
        answers = self._answers = AnswerThread(
            self.route, self._means, windows, reading, output, self.record, self.failed
        )
        try:
            self._read(reading, answers)
            self._finish(reading)
            self._positions.report(self._backlog.standings(), self.windows.settled())
        finally:
            if self.failure is not None or sys.exc_info()[0] is not None:
                windows.close()
            leave(reading)
            windows.close()
            answers.close()

    def failed(self, why: str) -> None:
        """End the input because of a failure. Any thread may call it."""
        if self.failure is None:
            self.failure = why
        self._stopping.set()

    def _read(self, reading: GroupMember, answers: AnswerThread) -> None:
        full_since_s = 0.0
        while not self._stopping.is_set():
            answers.check()
            self._check_alive(reading, answers)
            self._commit(reading)
            self._report()
            self._look_for_ends(reading)
            while self._unpublished and self._ask(self._unpublished[0]):
                self._unpublished.popleft()
            self._take_pending()
            self._take_unsure()
            if self._has_room():
                full_since_s = 0.0
                answers.pace()
                self._unsure = reading.poll(self._patience_s(), _RECORDS)
                self._sure_after_s = reading.same_topic_after_s()
                self._take_unsure()
                self._align(reading)
                continue
            self._backlog.look(reading, self._lateness_ms(), is_resting=True)
            full_since_s = full_since_s or monotonic()
            if monotonic() - full_since_s > _REST_AFTER_S:
                reading.pause()
            else:
                with self.windows.changed:
                    self.windows.changed.wait(_ROOM_S)

    def _has_room(self) -> bool:
        """Return whether more can be read now."""
        return not (self._unpublished or self._pending or self._unsure or self.windows.is_full)

    def _report(self) -> None:
        """Record how far the partitions are read, now and then."""
        backlog = self._backlog
        if self._positions.is_due(is_awaited=backlog.is_held_up or backlog.is_asked):
            self._positions.report(
                backlog.standings(), self.windows.settled(), asks=backlog.asks, is_asked=backlog.is_asked
            )

    def _patience_s(self) -> float:
        """Return how long to wait for records."""
        if self._backlog.is_holding:
            return _HELD_S
        return _COMMIT_S if self.windows.uncommitted() else _POLL_S

    def _lateness_ms(self) -> int | None:
        """Return the stream's lateness; None if its events have no time of their own."""
        entry = self._means.intakes.now.catalog.streams.get(self.route.stream)
        return None if entry is None or entry.stream.time is None else entry.stream.lateness_ms

    def _finish(self, reading: GroupMember) -> None:
        deadline = monotonic() + self._means.finish_s
        for run in self._unpublished:
            self.windows.forget(run)
        self._unpublished.clear()
        while self.failure is None and monotonic() < deadline:
            self.windows.alive_s = monotonic()
            if not self.windows.events and self._commit_last(self.windows.uncommitted()):
                return
            reading.pause()

    def _check_alive(self, reading: GroupMember, answers: AnswerThread) -> None:
        """Ask the group whether this is a member still, if others may have the partitions after so long a pause."""
        now_s = monotonic()
        paused_s, lease_s = now_s - self.windows.alive_s, reading.session_s / 2
        if paused_s > lease_s:
            _log.warning("%s: nothing was read for %.1f s; asking the group", self._group, paused_s)
            positions = self.windows.positions()
            # A transaction asks by itself; positions from before one that is under way would undo its own.
            if positions and not answers.commits:
                reading.commit(positions, wait=True)
        self.windows.alive_s = monotonic()

    def _commit(self, reading: GroupMember) -> None:
        """Commit the positions of what is written, now and then. The group calls `committed` when that is done."""
        answers = self._answers
        if answers is None or answers.commits or monotonic() - self._committed_s < _COMMIT_S:
            return
        positions = self.windows.uncommitted()
        if positions:
            self._committed_s = monotonic()
            reading.commit(positions)

    def _look_for_ends(self, reading: GroupMember) -> None:
        """Look where the partitions end, now and then. The consumer might never answer a thread that does not read."""
        if monotonic() - self._looked_s >= _LOOK_S:
            self._looked_s = monotonic()
            self._ends = {each.where: reading.end(each.where) for each in self.windows.all()}

    def _take_unsure(self) -> None:
        """Take what has come, once it is sure to be of these topics. If they were made anew, `Inputs` ends this."""
        if self._unsure and not self._pending and self.same_topics.were_seen(self._sure_after_s):
            messages, self._unsure = self._unsure, []
            self._take(messages)

    def _take(self, messages: list[Message]) -> None:
        read_s = perf_counter()
        stamp_ms = messages[0].timestamp()[1]
        self.record.stages["queue"].add(max(0.0, time.time() - stamp_ms / 1000))
        for where, own in by_partition(messages):
            window = self.windows.of(where)
            if window is not None:
                for part in self._intakes.parts(where, own):
                    self._take_of(_ReadTogether(window, part, read_s))

    def _take_of(self, read: _ReadTogether) -> None:
        run, window = self._run_or_pending(read), read.window
        if run is None:
            return
        if read.was_held:
            self._publish(run)
            return
        if run.first < window.read:
            raise TransportUnavailableError(
                str(window.where),
                "the topic was made anew, or has lost its end",
                "It is read again by itself",
            )
        window.read = run.after
        if self._backlog.holds(window.where):
            self._backlog.add(read.messages, run)
        else:
            self._publish(run)

    def _run_or_pending(self, read: _ReadTogether) -> Run | None:
        """Return the run of records; None if they wait for a schema, or are behind some that do."""
        if any(each.window is read.window for each in self._pending):
            self._pending.append(read)
            return None
        try:
            return self._run_of(read.window, read.messages, self._means.now_ms(), read.read_s)
        except SchemaPendingError as error:
            self._pending.append(read)
            if error.why is not None and self._pending_why is None:
                self._pending_why = error.why
                _log.error("%s is read on once a schema is there: %s", self._group, error.why)
            return None

    def _take_pending(self) -> None:
        """Take again what waits for a schema, now and then."""
        if not self._pending or monotonic() - self._pending_s < _SCHEMA_S:
            return
        self._pending_s = monotonic()
        pending, self._pending = self._pending, []
        for read in pending:
            if not read.window.is_abandoned:
                self._take_of(read)
        if not self._pending and self._pending_why is not None:
            self._pending_why = None
            _log.info("%s is read on", self._group)

    def _align(self, reading: GroupMember) -> None:
        """Publish what was held back and need not be any more. What is published lets others go on at once."""
        self._backlog.look(reading, self._lateness_ms())
        while self._publish_held():
            self._backlog.look(reading, self._lateness_ms())

    def _publish_held(self) -> bool:
        """Publish what need not be held back. Return whether there was any, and is room for more."""
        if self._pending:
            return False
        is_any = False
        for where, messages, made in self._backlog.take():
            window, is_any = self.windows.of(where), True
            assert window is not None
            run = made or self._run_or_pending(_ReadTogether(window, messages, perf_counter(), was_held=True))
            if run is not None:
                self._publish(run)
            if self._pending or self._unpublished or self.windows.is_full:
                return False
        return is_any

    def _publish(self, run: Run) -> None:
        where = run.window.where
        self.skipped[where.topic] += run.skipped
        if run.letters:
            if not self.refused:
                # The reason may have values of an event, so it is in the letter alone.
                _log.warning(
                    "%s: a record of %s-%d is no event of the stream, and gets a letter in %s, with the reason; "
                    "others are counted, as in railgun status",
                    self.route.stream,
                    where.topic,
                    where.partition,
                    self.route.output.dead,
                )
            self.refused[where.topic] += len(run.letters)
        note_refused(self.record, run.accepted.refused.values())
        self.windows.add(run)
        if run.values is None and (self._unpublished or not self._ask(run)):
            self._unpublished.append(run)

    def _run_of(self, window: Window, messages: Sequence[Message], now_ms: int, read_s: float) -> Run:
        timer = self.record.stage_timer()
        offsets = list(map(_offset, messages))
        values, intake = self._intakes.of(window.where, offsets[0])
        found = events_of(messages, values, intake.incoming, intake.entry.stream.input.format)
        own = offsets if found.rows is None else [offsets[row] for row in found.rows]
        ids = PositionIds(window.place, np.array(own, np.int64))
        accepted = intake.take(found.texts, now_ms, ids)
        self.path_misses.look(window.where.topic, found.texts, intake.incoming)
        skipped = found.skipped + len(found.texts) - len(accepted) - len(accepted.refused)
        refused = dict(found.refused)
        for row, error in accepted.refused.items():
            refused[row if found.rows is None else found.rows[row]] = str(error)
        letters = [
            letter(messages[row], self.route.stream, reason) for row, reason in sorted(refused.items())
        ]
        rows = found.rows
        if accepted.rows is not None:
            own = [own[row] for row in accepted.rows.tolist()]
            rows = [row if rows is None else rows[row] for row in accepted.rows.tolist()]
        count, after = len(messages), offsets[-1] + 1
        run = Run(window, count, offsets[0], after, accepted, own, letters, read_s, skipped)
        if self.route.output.needs_records:
            run.hold(messages if rows is None else [messages[row] for row in rows])
        if not len(accepted):
            run.values = []
        timer.end("admission")
        return run

    def _ask(self, run: Run) -> bool:
        """Publish a run's events; return False if that is not possible now."""
        if run.window.is_abandoned:
            return True
        answers = self._answers
        assert answers is not None
        return answers.ask(run)

    # --- rebalances, in the same thread -----------------------------------------------------------------

    def start(self, where: TopicPartition, committed: int) -> int | None:
        offset = self._positions.start(where, committed)
        self._backlog.start(where, offset)
        if offset is not None:
            self.windows.start(where, offset)
        return offset

    def assigned(self, partitions: list[TopicPartition]) -> None:
        self.windows.assigned(partitions)
        self._backlog.assigned(partitions)

    def revoked(self, partitions: list[TopicPartition]) -> None:
        self._gone(partitions)
        for run in [each for each in self._unpublished if each.window.where in partitions]:
            self._unpublished.remove(run)
            self.windows.forget(run)
        self.windows.revoked(partitions)

    def lost(self, partitions: list[TopicPartition]) -> None:
        self._gone(partitions)
        self.windows.lost(partitions)

    def _gone(self, partitions: list[TopicPartition]) -> None:
        """Drop what was read of partitions and is in no window."""
        self._backlog.gone(partitions)
        self._unsure = [each for each in self._unsure if where_of(each) not in partitions]

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        self.windows.committed(positions)

    def _commit_last(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Commit positions before partitions go to another member; return False if that was not possible."""
        reading, answers = self._reading, self._answers
        if positions and reading is not None and answers is not None and not answers.commits:
            try:
                reading.commit(positions, wait=True)
            except TransportError as error:
                _log.info("%s: some answers may be given again: %s", self._group, error)
                return False
            self.windows.committed(positions)
        return True


# A message without an error has each of them.
_topic: Any = Message.topic
_partition: Any = Message.partition
_offset: Any = Message.offset


def by_partition(messages: Sequence[Message]) -> Iterator[tuple[TopicPartition, list[Message]]]:
    """Yield the messages of each partition, in order."""
    # Python's own code for each message would cost several times as much.
    if len(set(map(_topic, messages))) > 1:
        messages = sorted(messages, key=_topic)
    for topic, of_topic in groupby(messages, _topic):
        for partition, own in groupby(sorted(of_topic, key=_partition), _partition):
            yield TopicPartition(topic, partition), list(own)
