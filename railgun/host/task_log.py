"""The log of one task in a transport: reads it for recovery, lets the task catch up with it, and trims it.

The task's host uses it. It reads the log, and deletes its records in `trim`.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from railgun.cluster.copies import Gap
from railgun.history.open_records import log_reader_with_history
from railgun.host.log_ids import LogIds, check_same
from railgun.host.start import StartProgress
from railgun.messaging.errors import TransportError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import LogCutError, LogHoleError
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import CheckState, open_task
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.records import Records
from reservoir.files import DiskFiles

_READ_RECORDS, _READ_BYTES = 8_192, 4 << 20


@dataclass(frozen=True, slots=True)
class TaskLog:
    """A partition of a topic that is the log of one task.

    log, where: the transport, and the topic and partition in it.
    environment: clocks, randomness and executor for the task.
    kept: for each log, the offset from which others still need it; None if the log must never be trimmed.
    ids: gives the ids of topics; None if the log's topic has none.
    """

    log: Transport
    where: TopicPartition
    environment: TaskEnvironment
    kept: Mapping[TopicPartition, int] | None = None
    ids: LogIds | None = None

    @property
    def start(self) -> int:
        """The first offset that can be read."""
        return self.log.start_offset(*self.where)

    @property
    def end(self) -> int:
        """The offset after the last record. Raises TransportError."""
        return self.log.end_offset(*self.where)

    @property
    def topic_id(self) -> str:
        """The id of its topic as it was a moment ago; empty if it has none. Raises TransportError."""
        return "" if self.ids is None else self.ids.of(self.where.topic)

    def ask_topic_id(self) -> str:
        """Return the id of its topic as it is now; empty if it has none. Raises TransportError."""
        return "" if self.ids is None else self.ids.ask(self.where.topic)

    @property
    def known_end(self) -> int:
        """The offset after the last record, as last heard of, without a request."""
        return self.log.known_end(*self.where)

    def read(self, first: int, end: int) -> Iterator[tuple[int, Records]]:
        """Yield (offset of the first record, records) for the offsets from `first` to `end` - 1. Raises
        TransportError.
        """
        while first < end:
            needed = min(end - first, _READ_RECORDS)
            fetched = self.log.read(*self.where, first, needed, _READ_BYTES)
            if not len(fetched):
                return
            yield first, fetched.records
            first = fetched.next_offset

    def recover(
        self,
        folder: Path,
        identity: TaskIdentity,
        settings: TaskSettings,
        sync_log: Callable[[int], None],
        check_state: CheckState | None = None,
        begin: int = 0,
        gap: Gap | None = None,
    ) -> TaskProcessor:
        """Open the task of this log from its folder, as `open_task` does. Raises TransportError, and what that
        raises; LogReplacedError and LogCutError if the log does not continue the task's state.

        check_state: checks more of the state than that.
        begin: the offset at which a task begins that has processed no record.
        gap: the gap of a log that an operator has accepted last. It is ignored if it is of another log.
        """
        topic_id = self.topic_id
        return open_task(
            folder,
            identity,
            DiskFiles(),
            log_reader_with_history(folder, self.read),
            settings,
            sync_log=sync_log,
            log_start=self.start,
            topic_id=topic_id,
            begin=begin,
            gap=gap if gap is not None and gap.topic_id == topic_id else None,
            check_state=check_state or partial(self.check_continues, str(identity)),
            environment=self.environment,
        )

    def check_continues(self, place: str, position: int, leader_epoch: int, topic_id: str) -> None:
        """Raise LogReplacedError if a state was made of another log, and LogCutError if the log lacks records that it
        was made of. Raises TransportError.

        place: names the state in errors.
        position: the offset of the record that the state needs next.
        leader_epoch: the epoch of the record before that one. Two records with the same offset and epoch have the same
            records before them.
        topic_id: the id of the topic that the state was made of; empty if that is not known.
        """
        check_same(place, position, topic_id, self.topic_id)
        end = self.end
        if position > end:
            reason = f"its state is at offset {position}, its log ends at {end}; restore the whole folder from one copy"
            raise LogCutError(place, reason, position, leader_epoch)
        start = self.start
        if leader_epoch < 0 or position < start:
            return
        if position == start:
            self._check_next(place, position, leader_epoch, end)
            return
        last = self.log.read(*self.where, position - 1, 1, _READ_BYTES)
        if len(last) and last.leader_epoch not in (-1, leader_epoch):
            reason = (
                f"the record before offset {position} is not the one that its state was made of (leader epoch "
                f"{last.leader_epoch}, not {leader_epoch}): the broker has lost records"
            )
            raise LogCutError(place, reason, position, leader_epoch)

    def _check_next(self, place: str, position: int, leader_epoch: int, end: int) -> None:
        """Raise LogCutError if the next record is of an earlier epoch than the state's last one, which is deleted."""
        if position == end:
            return
        following = self.log.read(*self.where, position, 1, _READ_BYTES)
        if len(following) and 0 <= following.leader_epoch < leader_epoch:
            reason = (
                f"the record at offset {position} is older than the one before it, of which its state was made "
                f"(leader epoch {following.leader_epoch}, not {leader_epoch} or later): the log is another one"
            )
            raise LogCutError(place, reason, position, leader_epoch)

    def catch_up(self, task: TaskProcessor, end: int, threads: int, start: StartProgress) -> None:
        """Let a task process the records of the log before `end`.

        threads: how many threads read the task's state.
        start: is told about the progress.
        """
        task.catch_up(self._counted(task.position, end, start), threads)

    def _counted(self, first: int, end: int, start: StartProgress) -> Iterator[tuple[int, Records]]:
        for offset, records in self.read(first, end):
            yield offset, records
            start.note(len(records))

    def check_gapless(self, fetched: Fetched, position: int) -> None:
        """Raise LogHoleError if a batch does not continue at a position, or has a gap."""
        offsets = fetched.offsets
        if not len(offsets):
            reached = fetched.next_offset
        elif offsets[0] == position and offsets[-1] == position + len(offsets) - 1:
            return
        else:
            gap = np.flatnonzero(offsets != position + np.arange(len(offsets)))
            reached = int(offsets[gap[0]])
        if reached > position:
            reason = f"offset {position} is next, the log has nothing before {reached}"
            raise LogHoleError(str(self.where), reason, reached)

    def release_second_reader(self) -> None:
        """Free the buffers of the successor, which reads the log at another offset than the task that answers."""
        with contextlib.suppress(TransportError):
            self.log.release_second_reader(*self.where)

    def release(self) -> None:
        """Free the buffers of the task, which is closed."""
        with contextlib.suppress(TransportError):
            self.log.release(*self.where)

    def trim(self, before_offset: int) -> None:
        """Trim the log up to an offset, as far as others do not need it."""
        if self.kept is not None:
            self.log.trim(*self.where, min(before_offset, self.kept.get(self.where, before_offset)))
