"""Buffers the messages of one Kafka partition between the consumer's poll and the threads that read.

`KafkaConsumer` has one for each partition.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, Message

from railgun.messaging.transport import Fetched, TopicPartition
from railgun.wire.records import Records

# The consumer stops fetching a partition that has more than this buffered, until it is read.
BUFFER_LIMIT_BYTES = 16 << 20
BUFFER_LIMIT_RECORDS = 50_000


class PartitionBuffer:
    """Messages of a partition in the order of their offsets. Not thread-safe.

    position: the offset at which `take` continues.
    end: the offset at which the next message is expected.
    error: why no further message will come.
    is_fetched: whether the partition is assigned to a consumer.
    is_far: whether it is assigned to the consumer of partitions that are far behind their ends.
    heard_end: the end of the partition that the broker had told before the assignment; None once a message or an end
        has come since.
    """

    __slots__ = (
        *("_messages", "end", "error", "heard_end", "is_far", "is_fetched", "position", "size_bytes"),
        "where",
    )

    def __init__(self, where: TopicPartition, position: int) -> None:
        self.where = where
        self._messages: list[Message] = []
        self.error: KafkaError | None = None
        self.is_fetched = self.is_far = False
        self.heard_end: int | None = None
        self.seek(position)

    def __len__(self) -> int:
        return len(self._messages)

    def seek(self, position: int) -> None:
        """Drop all messages and any error, and go on at another offset."""
        self._messages.clear()
        self.size_bytes = 0
        self.position = self.end = position
        self.error = None

    def receive(self, messages: Sequence[Message]) -> None:
        """Take messages of the consumer: errors, and records that follow the buffered ones."""
        errors = [each for each in map(Message.error, messages) if each is not None]
        if not errors:
            self._append(messages)
            return
        records = [each for each in messages if each.error() is None]
        if records:
            self._append(records)
        for message, error in zip((each for each in messages if each.error() is not None), errors):
            if error.code() == KafkaError._PARTITION_EOF:
                # All messages before this offset have come.
                self.end = max(self.end, message.offset() or 0)
                self.heard_end = None
            else:
                self.error = error

    def _append(self, messages: Sequence[Message]) -> None:
        self._messages += messages
        self.size_bytes += sum(map(len, messages))
        self.end = _offset(messages[-1]) + 1
        self.heard_end = None

    def holds_over(self, share: float) -> bool:
        """Whether more than this share of a limit is buffered."""
        return len(self) > share * BUFFER_LIMIT_RECORDS or self.size_bytes > share * BUFFER_LIMIT_BYTES

    @property
    def is_ready(self) -> bool:
        """Whether `take` would move the position: there are records, or a gap without any."""
        return self.end > self.position

    def take(self, max_records: int, max_bytes: int) -> Fetched:
        """Remove and return records, and move the position behind them.

        They are within both limits, except that a first record that is larger is returned alone, and have one leader
        epoch.
        """
        messages = _of_one_epoch(self._messages[: max(max_records, 1)])
        values: list[Any] = list(map(Message.value, messages))
        if None in values:
            values = [value or b"" for value in values]
        if self.size_bytes > max_bytes:
            ends = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
            fitting = max(int(np.searchsorted(ends, max_bytes, "right")), 1)
            messages, values = messages[:fitting], values[:fitting]
        records = Records.of(values)
        offsets: Any = np.fromiter(map(_offset, messages), np.int64, len(messages))
        del self._messages[: len(messages)]
        self.size_bytes -= records.size_bytes
        self.position = int(offsets[-1]) + 1 if self._messages else self.end
        appended_ms = messages[0].timestamp()[1] if messages else 0
        epoch = _epoch(messages[0]) if messages else -1
        return Fetched(self.where, offsets, records, self.position, appended_ms, epoch)


# A message without an error has an offset.
_offset: Any = Message.offset


def _epoch(message: Message) -> int:
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch


def _of_one_epoch(messages: list[Message]) -> list[Message]:
    """Return the first messages, as far as they have the leader epoch of the first one. Epochs never fall in a log."""
    if not messages or _epoch(messages[-1]) == _epoch(messages[0]):
        return messages
    return messages[: bisect_right(messages, _epoch(messages[0]), key=_epoch)]
