"""Reads one stream's events from its input topic, publishes them, and hands them to the thread that writes answers."""

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from time import monotonic, perf_counter
from typing import Any

import numpy as np
from confluent_kafka import Message

from frontend.exchange.streams import StreamIntake
from frontend.topics.answers import AnswerThread
from frontend.topics.route import Means, Route
from frontend.topics.values import AvroValues, events_of, letter
from frontend.topics.windows import Run, Window, Windows
from railgun.ingest.ids import PositionIds
from railgun.ingest.recording import note_refused
from railgun.messaging.errors import TransportError, TransportFailedError, TransportUnavailableError
from railgun.messaging.kafka.group import GroupMember, leave
from railgun.messaging.kafka.output import Output
from railgun.telemetry.recording import StreamRecord

_POLL_S, _COMMIT_S = 0.1, 0.05
_LOOK_S = 0.5
_RECORDS = 1_000
_ROOM_S, _REST_AFTER_S = 0.02, 0.5

_log = logging.getLogger("railgun.frontend")


class StreamInput:
    """The input of a stream. One thread reads and publishes, another one writes the answers.

    make_output: makes the output for the answers; the first thread calls it.
    failure: why the input ended by itself; None if it did not.
    """

    def __init__(
        self, route: Route, means: Means, make_output: Callable[[Callable[[], bool]], Output]
    ) -> None:
        self.route, self._means, self._make_output = route, means, make_output
        self.failure: str | None = None
        self.record = StreamRecord()
        self._group = means.topics.input(route.stream)
        self.windows = Windows(route.topic_id, means.limit_events, self._commit_last)
        self._intake_of: StreamIntake | None = None
        self._unpublished: deque[Run] = deque()
        self._stopping = threading.Event()
        self._reading: GroupMember | None = None
        self._answers: AnswerThread | None = None
        self._committed_s = self._looked_s = 0.0
        self._ends: dict[int, int] = {}
        self._avro = AvroValues(means.schemas)
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

    def stop(self) -> None:
        """Read no more. What is under way is finished."""
        self._stopping.set()

    def join(self, within_s: float | None = None) -> None:
        """Wait for the end of the input."""
        self._thread.join(within_s)

    def lags(self) -> dict[int, int]:
        """Return how many records wait to be read, by partition, as far as is known."""
        if self.is_over:
            return {}
        ends = self._ends
        return {
            window.partition: max(0, ends[window.partition] - max(0, window.position))
            for window in self.windows.all()
            if ends.get(window.partition, -1) >= 0
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
        reading = self._reading = GroupMember(self._means.settings, self._group, self._group, self)
        answers = self._answers = AnswerThread(
            self.route, self._means, windows, reading, output, self.record, self.failed
        )
        try:
            self._read(reading, answers)
            self._finish(reading)
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
            self._look_for_ends(reading)
            while self._unpublished and self._ask(self._unpublished[0]):
                self._unpublished.popleft()
            if not self._unpublished and not self.windows.is_full:
                full_since_s = 0.0
                answers.pace()
                messages = reading.poll(_COMMIT_S if self.windows.uncommitted() else _POLL_S, _RECORDS)
                if messages:
                    self._take(messages)
                continue
            full_since_s = full_since_s or monotonic()
            if monotonic() - full_since_s > _REST_AFTER_S:
                reading.pause()
            else:
                with self.windows.changed:
                    self.windows.changed.wait(_ROOM_S)

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
            self._ends = {each.partition: reading.end(each.partition) for each in self.windows.all()}

    def _take(self, messages: list[Message]) -> None:
        now_ms, read_s = self._means.now_ms(), perf_counter()
        stamp_ms = messages[0].timestamp()[1]
        self.record.stages["queue"].add(max(0.0, time.time() - stamp_ms / 1000))
        messages.sort(key=_partition)
        for partition, own in groupby(messages, _partition):
            window = self.windows.of(partition)
            if window is None:
                continue
            run = self._run_of(window, list(own), now_ms, read_s)
            self.windows.add(run)
            if run.values is None and (self._unpublished or not self._ask(run)):
                self._unpublished.append(run)

    def _run_of(self, window: Window, messages: Sequence[Message], now_ms: int, read_s: float) -> Run:
        timer = self.record.stage_timer()
        offsets = list(map(_offset, messages))
        intake = self._current_intake()
        found = events_of(messages, self._avro, intake.incoming)
        own = offsets if found.rows is None else [offsets[row] for row in found.rows]
        ids = PositionIds(f"{self.route.topic_id} {window.partition}", np.array(own, np.int64))
        accepted = intake.take(found.texts, now_ms, ids)
        refused = dict(found.refused)
        for row, error in accepted.refused.items():
            refused[row if found.rows is None else found.rows[row]] = str(error)
        note_refused(self.record, accepted.refused.values())
        letters = [letter(messages[row], reason) for row, reason in sorted(refused.items())]
        rows = found.rows
        if accepted.rows is not None:
            own = [own[row] for row in accepted.rows.tolist()]
            rows = [row if rows is None else rows[row] for row in accepted.rows.tolist()]
        run = Run(window, len(messages), offsets[0], offsets[-1] + 1, accepted, own, letters, read_s)
        if self.route.output.needs_records:
            run.hold(messages if rows is None else [messages[row] for row in rows])
        if not len(accepted):
            run.values = []
        timer.end("admission")
        return run

    def _current_intake(self) -> StreamIntake:
        """Return the intake for the stream's present definition. Raises TransportUnavailableError if it was dropped."""
        stream = self.route.stream
        entry = self._means.intakes.now.catalog.streams.get(stream)
        if entry is None or entry.created != self.route.created:
            raise TransportUnavailableError(stream, "the stream was dropped", "nothing is to be done")
        if self._intake_of is None or self._intake_of.entry.stream != entry.stream:
            self._intake_of = StreamIntake(entry, self._intake_of)
        return self._intake_of

    def _ask(self, run: Run) -> bool:
        """Publish a run's events; return False if that is not possible now."""
        if run.window.is_abandoned:
            return True
        answers = self._answers
        assert answers is not None
        return answers.ask(run)

    # --- rebalances, in the same thread -----------------------------------------------------------------

    def assigned(self, partitions: list[int]) -> None:
        self.windows.assigned(partitions)

    def revoked(self, partitions: list[int]) -> None:
        for run in [each for each in self._unpublished if each.window.partition in partitions]:
            self._unpublished.remove(run)
            self.windows.forget(run)
        self.windows.revoked(partitions)

    def lost(self, partitions: list[int]) -> None:
        self.windows.lost(partitions)

    def committed(self, positions: Mapping[int, int]) -> None:
        self.windows.committed(positions)

    def _commit_last(self, positions: Mapping[int, int]) -> bool:
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


# A message without an error has both.
_partition: Any = Message.partition
_offset: Any = Message.offset
