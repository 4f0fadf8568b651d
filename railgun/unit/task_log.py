"""The log of one task in a transport: reading it for recovery, catching up with it, trimming it."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from railgun.messaging.errors import TransportError
from railgun.messaging.transport import TopicPartition, Transport
from railgun.task.checkpoints import used_s
from railgun.task.errors import LogGapError
from railgun.task.identity import TaskIdentity
from railgun.task.processor import TaskProcessor
from railgun.task.recovery import open_task
from railgun.task.settings import TaskSettings
from railgun.unit.start import Start
from railgun.wire.encode import Records
from reservoir.files import DiskFiles

_READ_RECORDS, _READ_BYTES = 8_192, 4 << 20


@dataclass(frozen=True, slots=True)
class TaskLog:
    """One partition of one topic."""

    log: Transport
    where: TopicPartition
    used_s: Callable[[], float] = used_s

    @property
    def start(self) -> int:
        """The first offset that it still has."""
        return self.log.start_offset(*self.where)

    def read(self, first: int, end: int) -> Iterator[tuple[int, list[bytes]]]:
        """(offset of the first, records) that cover offsets first to end - 1. Raises TransportError."""
        for offset, records in self._fetch(first, end):
            yield offset, records.to_list()

    def recover(
        self, folder: Path, identity: TaskIdentity, settings: TaskSettings, sync_log: Callable[[int], None]
    ) -> TaskProcessor:
        """The task of this log as its folder has it: see `open_task`. Raises what that raises, TransportError."""
        return open_task(
            folder,
            identity,
            DiskFiles(),
            self.read,
            settings,
            sync_log=sync_log,
            log_start=self.start,
            used_s=self.used_s,
        )

    def catch_up(self, task: TaskProcessor, threads: int, start: Start) -> None:
        """Let a task that was just opened process what it has not seen, with so many threads reading its state.
        start: told how far it is.

        Raises LogGapError where the log ends before what the task has seen: they are not of one folder.
        """
        end = self.log.end_offset(*self.where)
        if task.position > end:
            raise LogGapError(
                str(task.identity),
                f"its state is at offset {task.position}, its log ends at {end}; restore the whole folder "
                "from one copy",
            )
        start.expect(end - task.position)
        task.catch_up(self._told(task.position, end, start), threads)

    def _told(self, first: int, end: int, start: Start) -> Iterator[tuple[int, Records]]:
        for offset, records in self._fetch(first, end):
            yield offset, records
            start.note(len(records))

    def _fetch(self, first: int, end: int) -> Iterator[tuple[int, Records]]:
        while first < end:
            wanted = min(end - first, _READ_RECORDS)
            fetched = self.log.read(*self.where, first, wanted, _READ_BYTES)
            if not len(fetched):
                return
            yield first, Records(fetched.buffer, fetched.bounds)
            first = fetched.next_offset

    def release_beside(self) -> None:
        """Hold nothing for whoever read what came before, behind the task that answers."""
        with contextlib.suppress(TransportError):
            self.log.release_beside(*self.where)

    def trim(self, before_offset: int) -> None:
        """Forget records before an offset."""
        self.log.trim(*self.where, before_offset)
