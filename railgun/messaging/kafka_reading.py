"""One consumer for all the partitions that are read, shared by all threads that read them."""

import threading
import time
from collections.abc import Callable, Mapping
from itertools import groupby

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import OffsetOutOfRangeError, TransportClosedError
from railgun.messaging.kafka_buffer import PartitionBuffer
from railgun.messaging.kafka_errors import Complaints, as_transport_error, is_passing, made
from railgun.messaging.kafka_settings import KafkaSettings
from railgun.messaging.kafka_topics import KafkaTopics
from railgun.messaging.transport import Fetched, TopicPartition

# Messages taken from librdkafka at once: more would leave the processor's caches before they are read.
_POLL_RECORDS = 1_000
# How long a thread polls before it looks whether another one wants something of the consumer.
_POLL_S = 0.1
# A partition with so much waiting here is not fetched further until it is read.
BUFFER_LIMIT_BYTES = 16 << 20
BUFFER_LIMIT_RECORDS = 50_000


class KafkaReading:
    """Partitions are assigned when they are first read, and fetched ahead from then on.

    Of the threads that wait, one polls for all: it hands out what comes and wakes the others.
    """

    def __init__(self, settings: KafkaSettings, topics: KafkaTopics) -> None:
        self._place = settings.broker
        self._timeout_s = settings.answer_timeout_s
        self._topics = topics
        self._complaints = Complaints()
        configuration = {**settings.consumer(), "error_cb": self._complaints}
        self._consumer = made(settings.broker, lambda: Consumer(configuration))
        self._buffers: dict[TopicPartition, PartitionBuffer] = {}
        self._changed = threading.Condition()
        self._is_polling = False
        self._waiting_to_seek = 0
        self._closed = False

    def read(self, where: TopicPartition, offset: int, max_records: int, max_bytes: int) -> Fetched:
        """As `Transport.read`."""
        buffer = self._at(where, offset)
        if not buffer.is_ready:
            # What has come may be behind what another process was told is there.
            start, end = self._topics.bounds(where)
            if not start <= offset <= end:
                raise OffsetOutOfRangeError(str(where), offset, start, end)
            if offset < end and not self._await(lambda: self._due([buffer]), self._timeout_s):
                late = KafkaError(KafkaError._TIMED_OUT)
                raise as_transport_error(str(where), late, self._complaints.last)
        with self._changed:
            return buffer.take(max_records, max_bytes)

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        """As `Transport.fetch`."""
        buffers = [self._at(where, offset) for where, offset in positions.items()]
        if not self._await(lambda: self._due(buffers), timeout_s):
            self._topics.refresh()
            return []
        with self._changed:
            return [buffer.take(max_records, max_bytes) for buffer in buffers if buffer.is_ready]

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        """As `Transport.wait`."""
        buffers = [self._at(where, offset) for where, offset in positions.items()]
        return self._await(lambda: self._due(buffers) and any(map(len, buffers)), timeout_s)

    def drop(self, where: TopicPartition) -> None:
        """Forget what has come from a partition, and fetch no more of it."""
        with self._changed:
            self._quiet()
            buffer = self._buffers.pop(where, None)
            if buffer is not None:
                self._unassign(buffer)

    def drop_topic(self, topic: str) -> None:
        """Drop all of a topic's partitions."""
        for where in [each for each in self._buffers if each.topic == topic]:
            self.drop(where)

    def close(self) -> None:
        """Wake whoever waits, and end."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
            self._quiet()
            self._consumer.close()

    def _at(self, where: TopicPartition, offset: int) -> PartitionBuffer:
        """The buffer of a partition, which goes on at an offset."""
        self._check_open()
        self._topics.check(where)
        buffer = self._buffers.get(where)
        if buffer is not None and buffer.position == offset and buffer.error is None:
            if not buffer.is_fetched and not _holds(buffer, 0.5):
                with self._changed:
                    self._assign(buffer)
            return buffer
        start, end = self._topics.bounds(where)
        if not start <= offset <= end:
            raise OffsetOutOfRangeError(str(where), offset, start, end)
        with self._changed:
            # What a thread has polled and not handed out yet is of the old position.
            self._quiet()
            self._check_open()
            buffer = self._buffers.get(where)
            if buffer is None:
                buffer = self._buffers[where] = PartitionBuffer(where, offset)
            self._unassign(buffer)
            buffer.seek(offset)
            self._assign(buffer)
        return buffer

    def _quiet(self) -> None:
        """Wait until no thread polls; none does while the condition is held."""
        self._waiting_to_seek += 1
        try:
            while self._is_polling:
                self._changed.wait()
        finally:
            self._waiting_to_seek -= 1
            self._changed.notify_all()

    def _assign(self, buffer: PartitionBuffer) -> None:
        if not buffer.is_fetched and not self._closed:
            self._consumer.incremental_assign([KafkaTopicPartition(*buffer.where, buffer.end)])
            buffer.is_fetched = True

    def _unassign(self, buffer: PartitionBuffer) -> None:
        if buffer.is_fetched and not self._closed:
            self._consumer.incremental_unassign([KafkaTopicPartition(*buffer.where)])
            buffer.is_fetched = False

    def _due(self, buffers: list[PartitionBuffer]) -> bool:
        """Whether there is something to be said of one of the partitions. Raises what is wrong with one."""
        for buffer in buffers:
            if buffer.error is not None and not len(buffer):
                self._raise(buffer, buffer.error)
        return any(buffer.is_ready for buffer in buffers)

    def _raise(self, buffer: PartitionBuffer, error: KafkaError) -> None:
        """Say what is wrong with a partition, unless it has passed by now."""
        where = buffer.where
        self._topics.forget(where.topic)
        start, end = self._topics.bounds(where)
        if not start <= buffer.position <= end:
            raise OffsetOutOfRangeError(str(where), buffer.position, start, end)
        if not is_passing(error):
            raise as_transport_error(str(where), error, self._complaints.last)
        self._quiet()
        self._unassign(buffer)
        buffer.seek(buffer.position)
        self._assign(buffer)

    def _await(self, is_due: Callable[[], bool], timeout_s: float) -> bool:
        """Poll, or wait for the thread that does, until something is due; False after the timeout."""
        deadline = time.monotonic() + timeout_s
        is_last = False
        with self._changed:
            while True:
                self._check_open()
                if is_due():
                    return True
                left_s = deadline - time.monotonic()
                if is_last:
                    return False
                is_last = left_s <= 0
                if self._is_polling or self._waiting_to_seek:
                    self._changed.wait(max(left_s, 0))
                    continue
                self._is_polling = True
                self._changed.release()
                messages: list[Message] = []
                try:
                    messages = self._poll(min(max(left_s, 0), _POLL_S))
                finally:
                    self._changed.acquire()
                    self._is_polling = False
                    self._hand_out(messages)
                    self._changed.notify_all()

    def _poll(self, timeout_s: float) -> list[Message]:
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        # Asked for several with a timeout, it would wait for all of them.
        return [first, *self._consumer.consume(_POLL_RECORDS - 1, 0)]

    def _hand_out(self, messages: list[Message]) -> None:
        for topic, of_topic in groupby(messages, Message.topic):
            for partition, of_partition in groupby(of_topic, Message.partition):
                buffer = self._buffers.get(
                    TopicPartition(topic or "", -1 if partition is None else partition)
                )
                if buffer is not None and buffer.is_fetched:
                    self._give(buffer, list(of_partition))

    def _give(self, buffer: PartitionBuffer, messages: list[Message]) -> None:
        errors = [each for each in map(Message.error, messages) if each is not None]
        if errors:
            records = [each for each in messages if each.error() is None]
            if records:
                buffer.add(records)
            for message, error in zip((m for m in messages if m.error() is not None), errors):
                if error.code() == KafkaError._PARTITION_EOF:
                    buffer.reached_end(message.offset() or 0)
                else:
                    buffer.error = error
        else:
            buffer.add(messages)
        if _holds(buffer, 1.0):
            # Whoever reads it next has it fetched again.
            self._unassign(buffer)

    def _check_open(self) -> None:
        if self._closed:
            raise TransportClosedError(self._place)


def _holds(buffer: PartitionBuffer, share: float) -> bool:
    """Whether so much of the limits waits to be read."""
    return len(buffer) > share * BUFFER_LIMIT_RECORDS or buffer.size_bytes > share * BUFFER_LIMIT_BYTES
