"""One consumer for all the partitions that are read, shared by all threads that read them."""

import threading
import time
from collections.abc import Callable, Mapping
from itertools import groupby

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import OffsetOutOfRangeError, TransportClosedError
from railgun.messaging.kafka.buffer import PartitionBuffer
from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import Complaints, as_transport_error, is_passing, made
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
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
        # Partitions that a thread is reading: nobody else moves their buffers.
        self._reading: set[TopicPartition] = set()
        self._followed: set[TopicPartition] = set()
        self._closed = False

    def read(self, where: TopicPartition, offset: int, max_records: int, max_bytes: int) -> Fetched:
        """As `Transport.read`. One thread at a time reads a partition; whoever fetches it elsewhere is held up."""
        with self._changed:
            self._await_readers(where)
            self._reading.add(where)
        try:
            return self._read(self._at(where, offset, reads=True), offset, max_records, max_bytes)
        finally:
            with self._changed:
                self._reading.discard(where)
                self._changed.notify_all()

    def _read(self, buffer: PartitionBuffer, offset: int, max_records: int, max_bytes: int) -> Fetched:
        where = buffer.where
        if not buffer.is_ready:
            # What has come may be behind what another process was told is there.
            start, end = self._topics.bounds(where)
            if not start <= offset <= end:
                raise OffsetOutOfRangeError(str(where), offset, start, end)
            if offset < end and not self._await(lambda: self._due(buffer), self._timeout_s):
                late = KafkaError(KafkaError._TIMED_OUT)
                raise as_transport_error(str(where), late, self._complaints.last)
        with self._changed:
            return buffer.take(max_records, max_bytes)

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        """As `Transport.fetch`; ends early where another thread reads one of the partitions elsewhere."""
        followed = self._follow(positions)
        if not self._await(lambda: self._any_due(followed), timeout_s):
            self._topics.refresh()
            return []
        with self._changed:
            return [
                buffer.take(max_records, max_bytes)
                for buffer, offset in followed
                if buffer.is_ready and not self._is_elsewhere(buffer, offset)
            ]

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        """As `Transport.wait`."""
        followed = self._follow(positions)
        return self._await(lambda: self._any_due(followed) and self._any_record(followed), timeout_s)

    def _follow(self, positions: Mapping[TopicPartition, int]) -> list[tuple[PartitionBuffer, int]]:
        """Buffers that go on at these offsets, once no thread is reading them."""
        followed = []
        self._followed.update(positions)
        for where, offset in positions.items():
            with self._changed:
                self._await_readers(where)
            followed.append((self._at(where, offset), offset))
        return followed

    def _is_elsewhere(self, buffer: PartitionBuffer, offset: int) -> bool:
        """Whether another thread took a buffer to another place, or is about to."""
        where = buffer.where
        return where in self._reading or buffer.position != offset or self._buffers.get(where) is not buffer

    def _any_due(self, followed: list[tuple[PartitionBuffer, int]]) -> bool:
        # Each is looked at: what is wrong with one must not wait for the others to fall silent.
        due = [self._is_elsewhere(*each) or self._due(each[0]) for each in followed]
        return any(due)

    def _any_record(self, followed: list[tuple[PartitionBuffer, int]]) -> bool:
        return any(len(each[0]) and not self._is_elsewhere(*each) for each in followed)

    def followed_at(self, where: TopicPartition) -> int | None:
        """Where `fetch` goes on with a partition; None where it is not followed."""
        buffer = self._buffers.get(where)
        return buffer.position if buffer is not None and where in self._followed else None

    def known_end(self, where: TopicPartition) -> int:
        """As `Transport.known_end`: what the newest fetch of the partition said."""
        known = self._consumer.get_watermark_offsets(KafkaTopicPartition(*where), cached=True)
        return 0 if known is None else max(0, known[1])

    def drop(self, where: TopicPartition) -> None:
        """Forget what has come from a partition, and fetch no more of it."""
        with self._changed:
            self._await_readers(where)
            self._quiet()
            self._followed.discard(where)
            buffer = self._buffers.pop(where, None)
            if buffer is not None:
                self._unassign(buffer)

    def trimmed(self, where: TopicPartition, before_offset: int) -> None:
        """Forget what has come and lies before an offset."""
        buffer = self._buffers.get(where)
        if buffer is not None and buffer.position < before_offset:
            self.drop(where)

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

    def _await_readers(self, where: TopicPartition) -> None:
        while where in self._reading:
            self._changed.wait()

    def _at(self, where: TopicPartition, offset: int, reads: bool = False) -> PartitionBuffer:
        """The buffer of a partition, which goes on at an offset. reads: this thread is the one that reads it."""
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
            if not reads and where in self._reading:
                return PartitionBuffer(where, offset)
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

    def _due(self, buffer: PartitionBuffer) -> bool:
        """Whether there is something to be said of a partition. Raises what is wrong with it."""
        if buffer.error is not None and not len(buffer):
            self._raise(buffer, buffer.error)
        return buffer.is_ready

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
