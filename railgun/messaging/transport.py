"""Topics, partitions and offsets: what the rest needs of a log, whether a broker or this process keeps it."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from railgun.wire.encode import Records


class TopicPartition(NamedTuple):
    """One totally ordered log."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


RECORD_LIMIT_BYTES = 16 << 20

Headers = Sequence[tuple[str, bytes]]


class Entry(NamedTuple):
    """Records to append to one partition, in order: a list of bytes, or many in one buffer.

    keys, headers: one of each record's, for a broker's other readers and for compaction; what is read through a
    Transport is the records alone, and a transport without a broker does not keep them.
    """

    where: TopicPartition
    records: Sequence[bytes] | Records
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a broker does with a topic's records by itself; a transport without one keeps them until they are trimmed.

    retention_ms: how long they are kept; None: for ever.  is_compacted: of records with the same key only the
    last is sure to be kept, and trimming is not possible.  Times of records are always those of their arrival.
    """

    retention_ms: int | None = None
    is_compacted: bool = False


FOREVER = TopicSettings()


@dataclass(frozen=True, slots=True)
class Fetched:
    """Consecutive records of one partition.

    offsets int64[n]: ascending; a broker may leave gaps (compaction, marks of transactions).
    buffer uint8[...], bounds int64[n + 1]: record i is buffer[bounds[i]:bounds[i + 1]].
    next_offset: where to go on.  appended_ms: when a broker took the first of them, ms since 1970; 0 without one.
    """

    where: TopicPartition
    offsets: NDArray[np.int64]
    buffer: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    next_offset: int
    appended_ms: int = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def values(self) -> list[bytes]:
        """Each record as bytes of its own."""
        return Records(self.buffer, self.bounds).to_list()


class Transport(Protocol):
    """Durable, totally ordered logs by topic and partition. Every method may be called from any thread.

    A record can be read once it is acknowledged, not before, and then for good: what was read never vanishes.
    All methods raise TransportError: TransportIOError where the storage or the network failed,
    TransportClosedError after `close`, TopicMissingError for what does not exist.
    """

    def create_topic(self, topic: str, partitions: int, settings: TopicSettings = FOREVER) -> None:
        """Make a topic; nothing happens where it exists. Raises TopicExistsError where it differs."""

    def delete_topic(self, topic: str) -> None:
        """Remove a topic with its records; nothing happens where there is none."""

    def topics(self) -> Mapping[str, int]:
        """The number of partitions by topic."""

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        """Append to several partitions; the future has the offset of each entry's first record once all are
        durable. Entries submitted one after another to a partition keep their order. An entry has one
        record at least. Its records get consecutive offsets where nobody else writes to the partition; those
        that another process writes there may come to lie between them.

        Raises RecordTooLargeError and TransportFullError at once, having taken nothing.
        """

    def append(self, topic: str, partition: int, records: Sequence[bytes] | Records) -> int:
        """Append one record or more; returns the offset of the first once all of them are durable."""

    def start_offset(self, topic: str, partition: int) -> int:
        """The oldest offset that can be read."""

    def end_offset(self, topic: str, partition: int) -> int:
        """The offset after the newest record that can be read."""

    def known_end(self, topic: str, partition: int) -> int:
        """The end as far as is known without asking anybody: 0 where nothing is."""

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        """Records from an offset: none at the end of the log, otherwise at least one, within the limits but
        for a first record that is larger. Fewer than there are may come. None, and a `next_offset` that went on,
        where all that a broker has there is no record.

        Reading on from `next_offset` is what it is made for; elsewhere it begins anew.
        Raises OffsetOutOfRangeError where the offset was trimmed or is beyond the end.
        """

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        """What has arrived at several partitions, asked for once: waits until one of them has a record at its
        position, or for the timeout; then each that has some gives what `read` would. What has been
        acknowledged a moment ago may need another call.

        The limits are each partition's. Raises OffsetOutOfRangeError as `read` does.
        """

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        """Wait until one of the partitions has a record at its position, which is one that `read` could be asked
        for; False after the timeout."""

    def release(self, topic: str, partition: int) -> None:
        """Give back what reading ahead in a partition holds: it is not read for now."""

    def release_beside(self, topic: str, partition: int) -> None:
        """Give back what `read` holds of a partition that `fetch` follows elsewhere; whoever follows it goes on."""

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        """Forget records before an offset, so that their space can be used again; all before the end at most.

        Nothing happens where they are gone already.
        """

    def sync(self) -> None:
        """Return when all that was acknowledged would survive a loss of power."""

    def close(self) -> None:
        """Write what was submitted, then let go of everything. Harmless when done already."""
