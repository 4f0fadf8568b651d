"""Reads the embedded log of a folder that another process may have open. `railgun inspect` and Spark's tables do."""

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from rocksdict import AccessType, Options, Rdict

from railgun.messaging.embedded.commit_marker import as_transport_errors, check_end
from railgun.messaging.embedded.database import TOPIC_PREFIX, VERSION_KEY, LogDatabase, log_options
from railgun.messaging.embedded.log import VERSION
from railgun.messaging.embedded.partition import PartitionLog
from railgun.messaging.errors import (
    OffsetOutOfRangeError,
    TopicMissingError,
    TransportCorruptionError,
    TransportIOError,
    TransportReadOnlyError,
    TransportShortenedError,
    TransportVersionError,
)
from railgun.messaging.transport import FOREVER, Entry, Fetched, TopicPartition, TopicSettings
from railgun.state.end_marker import END_MARK, read_mark
from railgun.state.rocks_files import check_files
from reservoir.files import DiskFiles

_ATTEMPTS, _PAUSE_S = 5, 0.05


class ReadOnlyDatabase(LogDatabase):
    """A snapshot of the log's RocksDB, which another process may be writing to. It takes no lock and changes no file.

    A read fails if the writer has deleted a file that was not read before. The caller then opens the database again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / "CURRENT").is_file():
            raise TransportIOError(
                str(folder), "there is no embedded log here", "Name an engine's data folder"
            )
        with self.failures("open"):
            check_files(DiskFiles(), folder)
            self._db = Rdict(str(folder), _options(), access_type=AccessType.read_only(False))


def _opened(folder: Path) -> ReadOnlyDatabase:
    """Open the database of a log's folder, with all that was acknowledged before this call."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return _opened_once(folder)
        except (TransportIOError, TransportShortenedError):
            # The writer may have deleted a file after it was listed and before it was opened.
            time.sleep(_PAUSE_S)
    return _opened_once(folder)


def _opened_once(folder: Path) -> ReadOnlyDatabase:
    with as_transport_errors(folder):
        mark = read_mark(DiskFiles(), folder / END_MARK) if folder.is_dir() else None
    database = ReadOnlyDatabase(folder / "log")
    try:
        check_end(folder, mark, database)
    except TransportShortenedError:
        database.close()
        raise
    return database


class ReadOnlyLog:
    """A Transport for reading only, of the log as it was when this was opened or last caught up.

    It may have records that a running writer has written and not yet made durable. Methods that write or wait raise
    TransportReadOnlyError.

    folder: as for EmbeddedLog; the database is in its sub-folder `log`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._database = _opened(folder)
        self._topics: dict[str, list[PartitionLog]] = {}
        try:
            self._load()
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def catch_up(self) -> None:
        """Open the log again, with the records that were written since."""
        self._database.close()
        self._database = _opened(self.folder)
        self._load()

    def _load(self) -> None:
        stored = int.from_bytes(self._database.get(VERSION_KEY) or VERSION.to_bytes(4, "big"), "big")
        if stored != VERSION:
            raise TransportVersionError(str(self.folder), stored)
        self._topics.clear()
        for key, value in self._database.from_key(TOPIC_PREFIX, TOPIC_PREFIX):
            topic, topic_id = key[1:].decode(), int.from_bytes(value[:4], "big")
            wheres = (TopicPartition(topic, each) for each in range(int.from_bytes(value[4:], "big")))
            self._topics[topic] = [PartitionLog(self._database, where, topic_id) for where in wheres]

    def topics(self) -> Mapping[str, int]:
        return {topic: len(logs) for topic, logs in self._topics.items()}

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return {topic: "" for topic in topics if topic in self._topics}

    def start_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        return self._log(topic, partition).start

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        return self._log(topic, partition).end

    def known_end(self, topic: str, partition: int) -> int:
        return self.end_offset(topic, partition)

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        log = self._log(topic, partition)
        known_end = log.end
        try:
            return log.read([], from_offset, log.start, known_end, max(max_records, 1), max_bytes)
        except (TransportCorruptionError, TransportIOError):
            # It is no damage if the writer has trimmed the records meanwhile, or moved them to another file.
            self.catch_up()
            start, end = self.start_offset(topic, partition), self.end_offset(topic, partition)
            if from_offset < start:
                raise OffsetOutOfRangeError(str(log.where), from_offset, start, end) from None
            log = self._log(topic, partition)
            return log.read([], from_offset, start, min(end, known_end), max(max_records, 1), max_bytes)

    def create_topic(self, topic: str, partitions: int, settings: TopicSettings = FOREVER) -> None:
        """Do nothing if the topic exists with this number of partitions; otherwise refuse."""
        if self.topics().get(topic) != partitions:
            self._refuse()

    def delete_topic(self, topic: str) -> None:
        self._refuse()

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        self._refuse()

    def append(self, topic: str, partition: int, records: Sequence[bytes]) -> int:
        self._refuse()

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        self._refuse()

    def release(self, topic: str, partition: int) -> None:
        """Do nothing, as there are no buffers."""

    def release_second_reader(self, topic: str, partition: int) -> None:
        """Do nothing, as there are no buffers."""

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        self._refuse()

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        self._refuse()

    def sync(self) -> None:
        self._refuse()

    def close(self) -> None:
        """Close the files."""
        self._database.close()

    def _log(self, topic: str, partition: int) -> PartitionLog:
        logs = self._topics.get(topic)
        if logs is None or not 0 <= partition < len(logs):
            raise TopicMissingError(f"{self.folder}: {TopicPartition(topic, partition)}")
        return logs[partition]

    def _refuse(self) -> NoReturn:
        raise TransportReadOnlyError(str(self.folder))


def _options() -> Options:
    options = log_options()
    options.create_if_missing(False)
    # All files are kept open: an open file stays readable when the writer deletes it.
    options.set_max_open_files(-1)
    return options
