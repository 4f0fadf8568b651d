"""The protocol for durable logs of topics and partitions, which a broker or this process keeps."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from railgun.messaging.errors import RecordTooLargeError
from railgun.messaging.limits import RECORD_LIMIT_BYTES
from railgun.wire.records import Records


class TopicPartition(NamedTuple):
    """The name of one totally ordered log."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Headers = Sequence[tuple[str, bytes]]


class Entry(NamedTuple):
    """Records to append to one partition, in order.

    keys, headers: one for each record. A broker keeps them for compaction and for its other clients. A transport
    without a broker drops them, and reading through a Transport returns the records alone.

    If all records are empty and have keys, a broker will delete the records with these keys in a compacted topic.
    """

    where: TopicPartition
    records: Records
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """How a broker deletes a topic's records by itself. A transport without a broker keeps them until they are trimmed.

    retention_ms: the age at which they may be deleted, counted from their arrival; None: never.
    is_compacted: all records with a key but the last may be deleted. Such a topic cannot be trimmed.
    is_overwritten: records with the same keys are written many times a second. Older ones have to be deleted soon,
        because each process that starts reads the topic from its beginning.
    """

    retention_ms: int | None = None
    is_compacted: bool = False
    is_overwritten: bool = False


FOREVER = TopicSettings()


@dataclass(frozen=True, slots=True)
class Fetched:
    """Consecutive records of one partition.

    offsets int64[n]: ascending, with gaps for records that a broker has compacted and for transaction markers.
    next_offset: the offset at which to read on.
    appended_ms: when a broker appended the first record, ms since 1970; 0 without a broker or records.
    leader_epoch: the epoch of every record; -1 without a broker or records.
    """

    where: TopicPartition
    offsets: NDArray[np.int64]
    records: Records
    next_offset: int
    appended_ms: int = 0
    leader_epoch: int = -1

    def __len__(self) -> int:
        return len(self.offsets)

    def values(self) -> list[bytes]:
        """Return the records as separate bytes objects."""
        return self.records.to_list()

    def written(self) -> list[bytes]:
        """Return the records as `values` does, without the empty ones, which delete the records with their keys."""
        return [value for value in self.values() if value]

    def parted(self, offset: int) -> "tuple[Fetched, Fetched | None]":
        """Return the records before an offset, and those from it on; None if there are none from it on."""
        n = int(np.searchsorted(self.offsets, offset))
        if n == len(self):
            return self, None
        before = replace(
            self, offsets=self.offsets[:n], records=self.records.part(0, n), next_offset=int(self.offsets[n])
        )
        after = replace(self, offsets=self.offsets[n:], records=self.records.part(n, len(self)))
        return before, after


def checked_bytes(entry: Entry) -> int:
    """Return the bytes of an entry's records. Raises RecordTooLargeError, and ValueError if it has none."""
    where, records, _, _ = entry
    if not len(records):
        raise ValueError(f"nothing to append to {where}")
    size_bytes = records.size_bytes
    if size_bytes > RECORD_LIMIT_BYTES:
        largest = int(np.diff(records.offsets).max())
        if largest > RECORD_LIMIT_BYTES:
            raise RecordTooLargeError(str(where), largest, RECORD_LIMIT_BYTES)
    return size_bytes


class Transport(Protocol):
    """Durable, totally ordered logs by topic and partition. Every method may be called from any thread.

    A record becomes readable when it is acknowledged, not earlier, and a record that was read is never lost.
    All methods raise TransportError: TransportIOError if the storage or the network failed, TransportClosedError
    after `close`, TopicMissingError for a topic or partition that does not exist.
    """

    def create_topic(self, topic: str, partitions: int, settings: TopicSettings = FOREVER) -> None:
        """Create a topic, unless it exists. Raises TopicExistsError if it has another number of partitions."""

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with its records, if it exists."""

    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic."""

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        """Return the ids of those of the topics that exist, with one request. An id is empty without a broker.

        A topic that is deleted and made again under its name has another id.
        """

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        """Append to several partitions. The future gets the offset of each entry's first record, once all records are
        durable.

        Each entry needs a record. Entries to one partition keep the order in which they are submitted. An entry's
        records have consecutive offsets, unless another process writes to the partition meanwhile.

        Raises RecordTooLargeError and TransportFullError at once; nothing is appended then.
        """

    def append(self, topic: str, partition: int, records: Sequence[bytes]) -> int:
        """Append one record or more. Returns the offset of the first one when all are durable."""

    def start_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        """Return the first offset that can be read. within_s: the time limit of each request to a broker; None: that of
        the settings.
        """

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        """Return the offset after the newest record that can be read. within_s: as for `start_offset`."""

    def known_end(self, topic: str, partition: int) -> int:
        """Return the end offset as it was last heard, without a request to a broker; 0 if none was heard."""

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        """Return records from an offset on; none at the end of the log.

        They are within the limits, except that a first record that is larger is returned alone, and all have one
        leader epoch. There may be fewer than the log has. If a broker has only a gap there, there are none, and
        `next_offset` is behind the gap.

        It is fast for a caller that reads on from `next_offset`; at another offset it starts again.
        Raises OffsetOutOfRangeError if the offset was trimmed or is beyond the end.
        """

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        """Wait until a partition has records from its position on, or for the timeout; then return what `read` would
        for each partition that has some.

        A record that was acknowledged a moment ago may come with a later call only. The limits hold for each
        partition. Raises OffsetOutOfRangeError as `read` does.
        """

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        """Wait until a partition has a record from its position on. Returns False after the timeout.

        positions: offsets that `read` takes.
        """

    def release(self, topic: str, partition: int) -> None:
        """Free the buffers of a partition that is not read for now."""

    def release_second_reader(self, topic: str, partition: int) -> None:
        """Free the buffers of a second reader, which calls `read` in a partition that `fetch` follows at another
        offset.
        """

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Delete the records before an offset, if there are any. The offset is at most the end."""

    def sync(self) -> None:
        """Return when all acknowledged records would survive a loss of power."""

    def close(self) -> None:
        """Write what was submitted, then release all resources. A second call does nothing."""
