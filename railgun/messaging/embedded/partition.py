"""One partition of the embedded log. Its blocks are in the database, the newest of them in memory too.

`EmbeddedLog` has one for each partition.
"""

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
from rocksdict import WriteBatch

from railgun.messaging.block import check_block, make_blocks, open_blocks
from railgun.messaging.embedded.database import LogDatabase, block_key, block_offset, blocks_prefix, start_key
from railgun.messaging.errors import OffsetOutOfRangeError, TransportCorruptionError
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.wire.records import Records

# A write holds the interpreter lock while the batch is copied, so batches are small.
BATCH_LIMIT_BYTES = 256 * 1024
_LAST_OFFSET = (1 << 64) - 1

# (offset of the first record, how many records, the encoded block)
Block = tuple[int, int, bytes]


class PartitionLog:
    """A partition of which the offsets from `start` up to `end` can be read.

    Threads: one at a time writes (`write`, `next_offset`, `trim`, `delete`); any may read. The caller must hold
    one lock around `publish`, `forget_oldest` and `recent_from`.
    """

    def __init__(self, database: LogDatabase, where: TopicPartition, topic_id: int) -> None:
        self.where = where
        self.deleted = False
        self._database = database
        self._topic_id = topic_id
        self._prefix = blocks_prefix(topic_id, where.partition)
        stored = database.get(start_key(topic_id, where.partition))
        self.start = 0 if stored is None else int.from_bytes(stored, "big")
        self.end = self._next = max(self.start, self._stored_end())
        # Two deques, as tuples of both would be tracked by the garbage collector, one for each event.
        self._recent_firsts: deque[int] = deque()
        self._recent_values: deque[bytes] = deque()

    def _stored_end(self) -> int:
        key = self._database.last_key(self._key(_LAST_OFFSET), self._prefix)
        if key is None:
            return 0
        value = self._database.get(key)
        return block_offset(key) + self._checked(key, value or b"")

    def _key(self, offset: int) -> bytes:
        return block_key(self._topic_id, self.where.partition, offset)

    def _checked(self, key: bytes, value: bytes) -> int:
        n = check_block(value)
        if n == 0:
            reason = f"the block at offset {block_offset(key)} is damaged"
            raise TransportCorruptionError(f"{self._database.folder}: {self.where}", reason)
        return n

    def write(self, appended: Sequence[Records], batch: WriteBatch) -> tuple[list[Block], WriteBatch]:
        """Encode records as blocks at the next offsets. Full batches are written to the database.

        Returns the new blocks, and the last batch, which the caller must write.
        """
        blocks: list[Block] = []
        for n, value in make_blocks(appended):
            if batch.size_in_bytes() + len(value) > BATCH_LIMIT_BYTES and not batch.is_empty():
                self._database.write(batch)
                batch = WriteBatch(raw_mode=True)
            batch.put(self._key(self._next), value)
            blocks.append((self._next, n, value))
            self._next += n
        return blocks, batch

    @property
    def next_offset(self) -> int:
        """The offset of the next record to be written. Only for the thread that writes."""
        return self._next

    def publish(self, blocks: Sequence[Block]) -> None:
        """Make blocks readable, which are durable now."""
        for first, n, value in blocks:
            self._recent_firsts.append(first)
            self._recent_values.append(value)
            self.end = first + n

    def forget_oldest(self) -> int:
        """Drop the oldest block in memory. Returns its size in bytes."""
        self._recent_firsts.popleft()
        return len(self._recent_values.popleft())

    def recent_from(self, offset: int) -> list[Block]:
        """Return the blocks in memory from the one that has this offset on; none if it is older than all of them."""
        if not self._recent_firsts or self._recent_firsts[0] > offset:
            return []
        found: list[Block] = []
        after = self.end
        for first, value in zip(reversed(self._recent_firsts), reversed(self._recent_values)):
            found.append((first, after - first, value))
            if first <= offset:
                break
            after = first
        return found[::-1]

    def read(
        self, recent: list[Block], offset: int, start: int, end: int, max_records: int, max_bytes: int
    ) -> Fetched:
        """Return records from an offset on, within the limits.

        recent: the result of `recent_from` for the offset.  start, end: those of the partition at that call.
        """
        if not start <= offset <= end:
            raise OffsetOutOfRangeError(str(self.where), offset, start, end)
        first, values = self._collect(
            recent or self._stored_from(offset), offset, end, max_records, max_bytes
        )
        if not values:
            nothing = np.zeros(0, np.int64)
            return Fetched(self.where, nothing, Records.of(()), offset)
        records = open_blocks(values, offset - first, min(max_records, end - offset), max_bytes)
        after = offset + len(records)
        return Fetched(self.where, np.arange(offset, after, dtype=np.int64), records, after)

    def _collect(
        self,
        blocks: Sequence[Block] | Iterator[Block],
        offset: int,
        end: int,
        max_records: int,
        max_bytes: int,
    ) -> tuple[int, list[bytes]]:
        """Return (the first block's offset, encoded blocks): those that hold the requested records.

        Raises TransportCorruptionError if an offset between them is missing.
        """
        values: list[bytes] = []
        first = expected = -1
        size_bytes = 0
        for block_first, n, value in () if offset == end else blocks:
            if not values:
                first = block_first
            elif block_first != expected:
                self._raise_missing(expected, block_first)
            # Records of the first block that lie before the offset count too: a call may return fewer than it could.
            size_bytes += len(value)
            expected = block_first + n
            values.append(value)
            # Ends before the iterator reads a block from the disk that is not needed.
            if expected >= min(end, offset + max_records) or size_bytes >= max_bytes:
                break
        if offset < end and not first <= offset < expected:
            self._raise_missing(offset, first)
        return first, values

    def _stored_from(self, offset: int) -> Iterator[Block]:
        for key, value in self._database.around_key(self._key(offset), self._prefix):
            yield block_offset(key), self._checked(key, value), value

    def _raise_missing(self, expected: int, found: int) -> None:
        reason = f"offset {expected} is missing" + (f", the next one is {found}" if found > expected else "")
        raise TransportCorruptionError(f"{self._database.folder}: {self.where}", reason)

    def trim(self, before_offset: int) -> None:
        """Store an offset as the start, and delete the blocks whose records all lie before it."""
        batch = WriteBatch(raw_mode=True)
        batch.put(start_key(self._topic_id, self.where.partition), before_offset.to_bytes(8, "big"))
        first_kept = self._database.last_key(self._key(before_offset), self._prefix)
        if first_kept is not None:
            batch.delete_range(self._key(0), first_kept)
        self._database.write(batch)

    def delete(self, batch: WriteBatch) -> None:
        """Add the deletion of all blocks and of the start to a batch."""
        batch.delete(start_key(self._topic_id, self.where.partition))
        batch.delete_range(self._key(0), self._key(_LAST_OFFSET))
