"""The log of one task in a transport: reading it for recovery, catching up with it, trimming it."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from railgun.history.open_records import with_history
from railgun.host.start import StartProgress
from railgun.messaging.errors import TransportError
from railgun.messaging.transport import Fetched, TopicPartition, Transport
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import LogGapError
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.settings import TaskIdentity, TaskSettings
from railgun.wire.records import Records
from reservoir.files import DiskFiles

_READ_RECORDS, _READ_BYTES = 8_192, 4 << 20


@dataclass(frozen=True, slots=True)
class TaskLog:
    """One partition of one topic. environment: what its task is opened with.

    kept: by log, the offset from which on others need it too; None: it is not trimmed.
    """

    log: Transport
    where: TopicPartition
    environment: TaskEnvironment
    kept: Mapping[TopicPartition, int] | None = None

    @property
    def start(self) -> int:
        """The first offset that it still has."""
        return self.log.start_offset(*self.where)

    @property
    def end(self) -> int:
        """The offset behind its last record. Raises TransportError."""
        return self.log.end_offset(*self.where)

    @property
    def known_end(self) -> int:
        """The same as far as it is known without asking."""
        return self.log.known_end(*self.where)

    def read(self, first: int, end: int) -> Iterator[tuple[int, Records]]:
        """(offset of the first, records) that cover offsets first to end - 1. Raises TransportError."""
        while first < end:
            needed = min(end - first, _READ_RECORDS)
            fetched = self.log.read(*self.where, first, needed, _READ_BYTES)
            if not len(fetched):
                return
            yield first, fetched.records
            first = fetched.next_offset

    def recover(
        self, folder: Path, identity: TaskIdentity, settings: TaskSettings, sync_log: Callable[[int], None]
    ) -> TaskProcessor:
        """The task of this log as its folder has it: see `open_task`. Raises what that raises, TransportError."""
        return open_task(
            folder,
            identity,
            DiskFiles(),
            with_history(folder, self.read),
            settings,
            sync_log=sync_log,
            log_start=self.start,
            environment=self.environment,
        )

    def catch_up(self, task: TaskProcessor, end: int, threads: int, start: StartProgress) -> None:
        """Let a task process what the log has before `end`, with so many threads reading its state. start: told how far
        it is."""
        task.catch_up(self._counted(task.position, end, start), threads)

    def _counted(self, first: int, end: int, start: StartProgress) -> Iterator[tuple[int, Records]]:
        for offset, records in self.read(first, end):
            yield offset, records
            start.note(len(records))

    def check_gapless(self, fetched: Fetched, position: int) -> None:
        """Raise LogGapError where what has come does not go on from a position without a gap."""
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
            raise LogGapError(str(self.where), reason)

    def release_beside(self) -> None:
        """Hold nothing for whoever read what came before, behind the task that answers."""
        with contextlib.suppress(TransportError):
            self.log.release_beside(*self.where)

    def release(self) -> None:
        """Hold nothing for the task any more, which is closed."""
        with contextlib.suppress(TransportError):
            self.log.release(*self.where)

    def trim(self, before_offset: int) -> None:
        """Forget records before an offset, where nobody else needs them."""
        if self.kept is not None:
            self.log.trim(*self.where, min(before_offset, self.kept.get(self.where, before_offset)))
