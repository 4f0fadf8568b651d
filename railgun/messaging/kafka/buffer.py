"""What has come from one partition of Kafka and was not read yet."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, Message

from railgun.messaging.transport import Fetched, TopicPartition


class PartitionBuffer:
    """Messages in the order of their offsets, between two positions.

    position: where reading goes on.  end: where the next message comes from.  error: why none will.
    is_fetched: whether the consumer asks for more of this partition.
    """

    __slots__ = ("_messages", "end", "error", "is_fetched", "position", "size_bytes", "where")

    def __init__(self, where: TopicPartition, position: int) -> None:
        self.where = where
        self._messages: list[Message] = []
        self.error: KafkaError | None = None
        self.is_fetched = False
        self.seek(position)

    def __len__(self) -> int:
        return len(self._messages)

    def seek(self, position: int) -> None:
        """Begin anew elsewhere."""
        self._messages.clear()
        self.size_bytes = 0
        self.position = self.end = position
        self.error = None

    def add(self, messages: Sequence[Message]) -> None:
        """Take messages that follow on what is there."""
        self._messages += messages
        self.size_bytes += sum(map(len, messages))
        self.end = _offset(messages[-1]) + 1

    def reached_end(self, offset: int) -> None:
        """There is no message before this offset that has not come."""
        self.end = max(self.end, offset)

    @property
    def is_ready(self) -> bool:
        """Whether `take` would say anything: records, or that there are none up to a later position."""
        return self.end > self.position

    def take(self, max_records: int, max_bytes: int) -> Fetched:
        """Records from the position on, within the limits but for a first one that is larger, and go on after
        them."""
        messages = self._messages[: max(max_records, 1)]
        values: list[Any] = list(map(Message.value, messages))
        if None in values:
            values = [value or b"" for value in values]
        if len(values) == 1:
            bounds = np.array((0, len(values[0])), np.int64)
        else:
            bounds = np.zeros(len(values) + 1, np.int64)
            np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=bounds[1:])
        if bounds[-1] > max_bytes:
            fitting = max(int(np.searchsorted(bounds, max_bytes, "right")) - 1, 1)
            messages, values, bounds = messages[:fitting], values[:fitting], bounds[: fitting + 1]
        offsets: Any = np.fromiter(map(_offset, messages), np.int64, len(messages))
        del self._messages[: len(messages)]
        self.size_bytes -= int(bounds[-1])
        self.position = int(offsets[-1]) + 1 if self._messages else self.end
        buffer = np.frombuffer(b"".join(values), np.uint8)
        appended_ms = messages[0].timestamp()[1] if messages else 0
        return Fetched(self.where, offsets, buffer, bounds, self.position, appended_ms)


# A message without an error has an offset.
_offset: Any = Message.offset
