"""The embedded log: a Transport in one process, which keeps its records in a RocksDB. An engine has one."""

import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from rocksdict import WriteBatch

from railgun.messaging.embedded.commit_marker import CommitMarker
from railgun.messaging.embedded.database import (
    NEXT_TOPIC_KEY,
    TOPIC_PREFIX,
    VERSION_KEY,
    LogDatabase,
    topic_key,
)
from railgun.messaging.embedded.group_commit import GroupCommit, Submission
from railgun.messaging.embedded.partition import Block, PartitionLog
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicExistsError,
    TopicMissingError,
    TransportClosedError,
    TransportCorruptionError,
    TransportLockedError,
    TransportVersionError,
)
from railgun.messaging.transport import (
    FOREVER,
    Entry,
    Fetched,
    TopicPartition,
    TopicSettings,
    checked_bytes,
)
from railgun.state.errors import StoreLockedError
from railgun.state.lock import FolderLock
from railgun.wire.records import Records
from reservoir.files import DiskFiles, Files

VERSION = 1
RECENT_LIMIT_BYTES = 32 << 20
PARTITIONS_LIMIT = 4_096
TOPIC_NAME_LIMIT_BYTES = 249
# Without a sync, a submission of this size is written faster by the caller than by waking the background thread.
_WRITE_HERE_BYTES = 64 << 10


class Durability(StrEnum):
    """The durability of acknowledged records: they survive a loss of power ("fsync"), or only a dead process ("os")."""

    FSYNC = "fsync"
    OS = "os"


class EmbeddedLog:
    """A Transport over the files of a folder, which it locks until it is closed. railgun/messaging/FORMAT.md describes
    the files.

    database, files: None uses those of the folder. Tests pass others, which fail.
    Raises TransportError: TransportLockedError if another process has the folder, TransportShortenedError if
    acknowledged records are missing.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability = Durability.FSYNC,
        database: LogDatabase | None = None,
        files: Files | None = None,
    ) -> None:
        self.folder = folder
        self.durability = durability
        files = files or DiskFiles()
        DiskFiles().make_folder(folder)
        DiskFiles().sync_folder(folder.parent)
        self._folder_lock = _locked(folder)
        self._topics: dict[str, list[PartitionLog]] = {}
        try:
            self._database = LogDatabase(folder / "log") if database is None else database
            try:
                self._end = CommitMarker(files, folder, self._database)
                self._load()
            except BaseException:
                self._database.close()
                raise
        except BaseException:
            self._folder_lock.release()
            raise
        self._closed = False
        # The partition of each block in memory, the oldest block first.
        self._recent: deque[PartitionLog] = deque()
        self._recent_bytes = 0
        self._changed = threading.Condition()
        self._commits = GroupCommit(str(folder), self._write)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _load(self) -> None:
        stored = self._database.get(VERSION_KEY)
        if stored is None:
            batch = WriteBatch(raw_mode=True)
            batch.put(VERSION_KEY, VERSION.to_bytes(4, "big"))
            self._database.write(batch)
        elif int.from_bytes(stored, "big") != VERSION:
            raise TransportVersionError(str(self.folder), int.from_bytes(stored, "big"))
        for key, value in self._database.from_key(TOPIC_PREFIX, TOPIC_PREFIX):
            if len(value) != 8:
                raise TransportCorruptionError(str(self.folder), f"the entry of topic {key[1:]!r} is damaged")
            topic_id, partitions = int.from_bytes(value[:4], "big"), int.from_bytes(value[4:], "big")
            self._add(key[1:].decode(), topic_id, partitions)

    def _add(self, topic: str, topic_id: int, partitions: int) -> None:
        wheres = (TopicPartition(topic, partition) for partition in range(partitions))
        self._topics[topic] = [PartitionLog(self._database, where, topic_id) for where in wheres]

    def create_topic(self, topic: str, partitions: int, settings: TopicSettings = FOREVER) -> None:
        if not 1 <= partitions <= PARTITIONS_LIMIT or not 1 <= len(topic.encode()) <= TOPIC_NAME_LIMIT_BYTES:
            raise ValueError(f"topic {topic[:80]!r} with {partitions} partitions: at most {PARTITIONS_LIMIT}")
        with self._commits.exclusive():
            self._check_open()
            existing = self._topics.get(topic)
            if existing is not None:
                if len(existing) != partitions:
                    raise TopicExistsError(topic, len(existing), partitions)
                return
            topic_id = int.from_bytes(self._database.get(NEXT_TOPIC_KEY) or b"\1", "big")
            batch = WriteBatch(raw_mode=True)
            batch.put(NEXT_TOPIC_KEY, (topic_id + 1).to_bytes(4, "big"))
            batch.put(topic_key(topic), topic_id.to_bytes(4, "big") + partitions.to_bytes(4, "big"))
            self._end.number(batch)
            self._database.write(batch)
            self._end.wrote(synced=False)
            self._end.sync()
            self._add(topic, topic_id, partitions)

    def delete_topic(self, topic: str) -> None:
        with self._commits.exclusive():
            self._check_open()
            logs = self._topics.pop(topic, None)
            if logs is None:
                return
            batch = WriteBatch(raw_mode=True)
            batch.delete(topic_key(topic))
            for log in logs:
                log.deleted = True
                log.delete(batch)
            self._end.number(batch)
            self._database.write(batch)
            self._end.wrote(synced=False)
            self._end.sync()

    def topics(self) -> Mapping[str, int]:
        return {topic: len(logs) for topic, logs in self._topics.items()}

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return {topic: "" for topic in topics if topic in self._topics}

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        submission = self._submission(entries)
        if self.durability is Durability.OS and submission.size_bytes <= _WRITE_HERE_BYTES:
            self._commits.submit_here(submission)
        else:
            self._commits.submit(submission)
        return submission.future

    def append(self, topic: str, partition: int, records: Sequence[bytes]) -> int:
        entry = Entry(TopicPartition(topic, partition), Records.of(records))
        return self._commits.append(self._submission((entry,)))[0]

    def _submission(self, entries: Sequence[Entry]) -> Submission:
        self._check_open()
        total = 0
        for entry in entries:
            self._log(*entry.where)
            total += checked_bytes(entry) + len(entry.records)
        return Submission(entries, total)

    def _write(self, submissions: list[Submission]) -> None:
        """Make submissions durable, in order: the `write` of GroupCommit."""
        appended: dict[PartitionLog, list[Records]] = {}
        counted: dict[PartitionLog, int] = {}
        offsets: list[list[int]] = []
        for submission in submissions:
            firsts: list[int] = []
            try:
                logs = [self._log(*where) for where, *_ in submission.entries]
            except TopicMissingError as error:
                submission.error = error
                logs = []
            for log, entry in zip(logs, submission.entries):
                appended.setdefault(log, []).append(entry.records)
                firsts.append(log.next_offset + counted.get(log, 0))
                counted[log] = counted.get(log, 0) + len(entry.records)
            offsets.append(firsts)
        batch = WriteBatch(raw_mode=True)
        written: list[tuple[PartitionLog, list[Block]]] = []
        for log, pieces in appended.items():
            blocks, batch = log.write(pieces, batch)
            written.append((log, blocks))
        self._end.number(batch)
        self._database.write(batch)
        if self.durability is Durability.FSYNC:
            self._database.sync()
        self._end.wrote(synced=self.durability is Durability.FSYNC)
        self._publish(written)
        for submission, firsts in zip(submissions, offsets):
            submission.offsets = firsts

    def _publish(self, written: list[tuple[PartitionLog, list[Block]]]) -> None:
        with self._changed:
            for log, blocks in written:
                log.publish(blocks)
                for _, _, value in blocks:
                    self._recent.append(log)
                    self._recent_bytes += len(value)
            while self._recent_bytes > RECENT_LIMIT_BYTES:
                self._recent_bytes -= self._recent.popleft().forget_oldest()
            self._changed.notify_all()

    def start_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        self._check_open()
        return self._log(topic, partition).start

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        self._check_open()
        return self._log(topic, partition).end

    def known_end(self, topic: str, partition: int) -> int:
        return self.end_offset(topic, partition)

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        self._check_open()
        log = self._log(topic, partition)
        with self._changed:
            start, end = log.start, log.end
            recent = log.recent_from(from_offset) if from_offset < end else []
        try:
            return log.read(recent, from_offset, start, end, max(max_records, 1), max_bytes)
        except TransportCorruptionError:
            if log.deleted:
                self._missing(topic, partition)
            if from_offset < log.start:
                # The offset was trimmed during the read.
                raise OffsetOutOfRangeError(str(log.where), from_offset, log.start, log.end) from None
            raise

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        for where, offset in positions.items():
            log = self._log(*where)
            if not log.start <= offset <= log.end:
                raise OffsetOutOfRangeError(str(where), offset, log.start, log.end)
        if not self.wait(positions, timeout_s):
            return []
        return [
            self.read(*where, offset, max_records, max_bytes)
            for where, offset in positions.items()
            if self._log(*where).end > offset
        ]

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        logs = [(self._log(*where), offset) for where, offset in positions.items()]

        def is_due() -> bool:
            return self._closed or any(log.end > offset for log, offset in logs)

        with self._changed:
            arrived = self._changed.wait_for(is_due, timeout_s)
        self._check_open()
        return arrived

    def release(self, topic: str, partition: int) -> None:
        self._log(topic, partition)

    def release_second_reader(self, topic: str, partition: int) -> None:
        self._log(topic, partition)

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        with self._commits.exclusive():
            self._check_open()
            log = self._log(topic, partition)
            if before_offset > log.end:
                raise ValueError(f"{log.where}: {before_offset} is beyond the end, {log.end}")
            if before_offset > log.start:
                with self._changed:
                    log.start = before_offset
                log.trim(before_offset)

    def sync(self) -> None:
        self._check_open()
        self._end.sync()

    def close(self) -> None:
        if self._closed:
            return
        self._commits.close()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        try:
            with self._commits.exclusive():
                self._close_files()
        finally:
            self._folder_lock.release()

    def _close_files(self) -> None:
        try:
            # After a failed write the mark stays as it is: the next opening compares the log with it.
            if not (self._commits.has_failed or self._end.has_failed):
                self._end.sync()
        finally:
            self._end.close()
            self._database.close()

    def _log(self, topic: str, partition: int) -> PartitionLog:
        logs = self._topics.get(topic)
        if logs is None or not 0 <= partition < len(logs):
            self._missing(topic, partition)
        return logs[partition]

    def _missing(self, topic: str, partition: int) -> NoReturn:
        raise TopicMissingError(f"{self.folder}: {TopicPartition(topic, partition)}")

    def _check_open(self) -> None:
        if self._closed:
            raise TransportClosedError(str(self.folder))


def _locked(folder: Path) -> FolderLock:
    try:
        return FolderLock(folder)
    except StoreLockedError as error:
        raise TransportLockedError(str(folder), error.owner) from None
