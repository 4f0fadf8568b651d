"""Reads Kafka's partitions through librdkafka consumers that all threads share.

It is the reading half of `KafkaTransport`.
"""

import threading
import time
from collections.abc import Callable, Mapping
from itertools import groupby

from confluent_kafka import KafkaError, Message

from railgun.messaging.errors import OffsetOutOfRangeError, TopicMissingError, TransportClosedError
from railgun.messaging.kafka.buffer import PartitionBuffer
from railgun.messaging.kafka.errors import (
    ClientErrors,
    as_transport_error,
    is_elsewhere,
    is_missing,
    is_transient,
)
from railgun.messaging.kafka.queue import POLL_RECORDS, ConsumerQueue
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.transport import Fetched, TopicPartition

# A thread polls for this long at most, because other threads may have to change the consumers' assignments.
_POLL_S = 0.1
# The time of a poll while both consumers have partitions: only after it the other consumer's records are noticed.
_BOTH_POLL_S = 0.005
# A partition is far behind if it has more than FAR_RECORDS records to its end, and until it has NEAR_RECORDS.
FAR_RECORDS, NEAR_RECORDS = 10_000, 1_000


class KafkaConsumer:
    """The reading half of a KafkaTransport.

    A partition is assigned to a consumer when it is first read. From then on its records are fetched ahead into its
    buffer.

    Partitions that are far behind their ends are read through a consumer of their own. In a queue that they shared with
    the others, everything that was fetched ahead for them would come before the newest records of the others.

    Threads: any thread may call every method. Among the threads that wait for records, one polls for all of them: it
        puts the records into the buffers and wakes the others. `_changed` guards the buffers; it is not held while a
        poll waits.
    """

    def __init__(self, settings: KafkaSettings, topics: KafkaTopics) -> None:
        self._place = settings.broker
        self._timeout_s = settings.answer_timeout_s
        self._topics = topics
        self._client_errors = ClientErrors()
        self._settings = settings
        self._near = ConsumerQueue(settings, self._client_errors)
        # Made when it is first needed.
        self._far: ConsumerQueue | None = None
        self._buffers: dict[TopicPartition, PartitionBuffer] = {}
        self._changed = threading.Condition()
        self._is_polling = False
        self._waiting_to_seek = 0
        # Partitions that a thread is reading in `read`. No other thread moves their buffers.
        self._reading: set[TopicPartition] = set()
        # Topics that were gone while they were read.
        self._missed: set[str] = set()
        # Partitions that `fetch` or `wait` were called for.
        self._followed: set[TopicPartition] = set()
        self._closed = False

    def read(self, where: TopicPartition, offset: int, max_records: int, max_bytes: int) -> Fetched:
        """Read as `Transport.read` does. Only one thread at a time reads a partition; a `fetch` of it waits."""
        with self._changed:
            self._await_readers(where)
            self._reading.add(where)
        try:
            return self._read(self._buffer_at(where, offset, is_reader=True), offset, max_records, max_bytes)
        finally:
            with self._changed:
                self._reading.discard(where)
                self._changed.notify_all()

    def _read(self, buffer: PartitionBuffer, offset: int, max_records: int, max_bytes: int) -> Fetched:
        where = buffer.where
        if not buffer.is_ready:
            # The broker may have reported an end to another process that the buffer has not reached yet.
            start, end = self._topics.bounds(where)
            if not start <= offset <= end:
                raise OffsetOutOfRangeError(str(where), offset, start, end)
            if offset < end and not self._await(lambda: self._due(buffer), self._timeout_s):
                late = KafkaError(KafkaError._TIMED_OUT)
                raise as_transport_error(str(where), late, self._client_errors.last)
        with self._changed:
            return buffer.take(max_records, max_bytes)

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        """Fetch as `Transport.fetch` does. Returns early if another thread reads one of the partitions elsewhere."""
        followed = self._follow(positions)
        self._take_near()
        if not self._await(lambda: self._any_due(followed), timeout_s):
            self._topics.refresh()
            return []
        with self._changed:
            return [
                buffer.take(max_records, max_bytes)
                for buffer, offset in followed
                if buffer.is_ready and not self._has_moved(buffer, offset)
            ]

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        """Wait as `Transport.wait` does."""
        followed = self._follow(positions)
        return self._await(lambda: self._any_due(followed) and self._any_record(followed), timeout_s)

    def _follow(self, positions: Mapping[TopicPartition, int]) -> list[tuple[PartitionBuffer, int]]:
        """Return each partition's buffer, moved to the offset, with the offset. Waits for calls of `read`."""
        followed = []
        self._followed.update(positions)
        for where, offset in positions.items():
            with self._changed:
                self._await_readers(where)
            followed.append((self._buffer_at(where, offset), offset))
        return followed

    def _has_moved(self, buffer: PartitionBuffer, offset: int) -> bool:
        """Whether another thread has moved or dropped a buffer, or is about to."""
        where = buffer.where
        return where in self._reading or buffer.position != offset or self._buffers.get(where) is not buffer

    def _any_due(self, followed: list[tuple[PartitionBuffer, int]]) -> bool:
        # All are checked, because `_due` raises a partition's error. The error must not wait until the other
        # partitions have no records.
        due = [self._has_moved(*each) or self._due(each[0]) for each in followed]
        return any(due)

    def _any_record(self, followed: list[tuple[PartitionBuffer, int]]) -> bool:
        return any(len(each[0]) and not self._has_moved(*each) for each in followed)

    def followed_at(self, where: TopicPartition) -> int | None:
        """Return the offset at which `fetch` continues with a partition; None if it was not called for it."""
        buffer = self._buffers.get(where)
        return buffer.position if buffer is not None and where in self._followed else None

    def known_end(self, where: TopicPartition) -> int:
        """Return the end of a partition as of its last fetch, for `Transport.known_end`."""
        buffer = self._buffers.get(where)
        if buffer is None:
            return self._near.known_end(where)
        return self._queue_of(buffer).known_end(where) if buffer.heard_end is None else buffer.heard_end

    def drop(self, where: TopicPartition) -> None:
        """Drop a partition's buffer, and stop fetching it."""
        with self._changed:
            self._await_readers(where)
            self._await_poll()
            self._followed.discard(where)
            buffer = self._buffers.pop(where, None)
            if buffer is not None:
                self._unassign(buffer)

    def trimmed(self, where: TopicPartition, before_offset: int) -> None:
        """Drop a partition's buffer if it has records before an offset, which were trimmed."""
        buffer = self._buffers.get(where)
        if buffer is not None and buffer.position < before_offset:
            self.drop(where)

    def drop_topic(self, topic: str) -> None:
        """Drop the buffers of all partitions of a topic."""
        for where in [each for each in self._buffers if each.topic == topic]:
            self.drop(where)

    def close(self) -> None:
        """Close the consumers. Threads that wait are woken, and raise TransportClosedError."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
            self._await_poll()
            self._near.close()
            if self._far is not None:
                self._far.close()

    def _await_readers(self, where: TopicPartition) -> None:
        while where in self._reading:
            self._changed.wait()

    def _buffer_at(self, where: TopicPartition, offset: int, is_reader: bool = False) -> PartitionBuffer:
        """Return the buffer of a partition, moved to an offset and being fetched.

        is_reader: whether this thread is the one in `read`. While one thread is in `read`, any other thread gets a
            buffer that nothing is put into: `_has_moved` is true of it.
        """
        self._check_open()
        buffer = self._buffers.get(where)
        try:
            self._topics.check(where)
        except TopicMissingError:
            if buffer is not None:
                self._missed.add(where.topic)
            raise
        is_missed = where.topic in self._missed
        if buffer is not None and buffer.position == offset and buffer.error is None and not is_missed:
            if not buffer.is_fetched and not buffer.holds_over(0.5):
                with self._changed:
                    self._assign(buffer)
            return buffer
        start, end = self._topics.bounds(where)
        if not start <= offset <= end:
            raise OffsetOutOfRangeError(str(where), offset, start, end)
        with self._changed:
            # A poll in progress may return messages of the old offset.
            self._await_poll()
            self._check_open()
            if where.topic in self._missed:
                self._renew()
            if not is_reader and where in self._reading:
                return PartitionBuffer(where, offset)
            buffer = self._buffers.get(where)
            if buffer is None:
                buffer = self._buffers[where] = PartitionBuffer(where, offset)
            self._unassign(buffer)
            buffer.seek(offset)
            buffer.heard_end = end
            self._assign(buffer)
        return buffer

    def _renew(self) -> None:
        """Have new clients read all partitions. No thread polls meanwhile.

        A topic that was gone is there again. librdkafka may never return records of it again, and say nothing.
        """
        old = [each for each in (self._near, self._far) if each is not None]
        fresh = ConsumerQueue(self._settings, self._client_errors)
        for buffer in self._buffers.values():
            buffer.heard_end = self.known_end(buffer.where)
            # The next call that reads the partition assigns it again.
            buffer.is_fetched = False
        self._missed.clear()
        self._near, self._far = fresh, None
        for each in old:
            each.close()

    def _await_poll(self) -> None:
        """Wait until no thread polls. No thread starts to poll while `_changed` is held."""
        self._waiting_to_seek += 1
        try:
            while self._is_polling:
                self._changed.wait()
        finally:
            self._waiting_to_seek -= 1
            self._changed.notify_all()

    def _assign(self, buffer: PartitionBuffer) -> None:
        if not buffer.is_fetched and not self._closed:
            buffer.is_far = self._belongs_far(buffer)
            self._queue_of(buffer).assign(buffer.where, buffer.end)
            buffer.is_fetched = True

    def _unassign(self, buffer: PartitionBuffer) -> None:
        if buffer.is_fetched and not self._closed:
            self._queue_of(buffer).unassign(buffer.where)
            buffer.is_fetched = False

    def _move(self, buffer: PartitionBuffer) -> None:
        """Assign a partition to the other consumer if it belongs there by now. No thread polls meanwhile."""
        if buffer.is_fetched and self._belongs_far(buffer) != buffer.is_far:
            # The other consumer has not heard of the end yet, or not lately.
            buffer.heard_end = self.known_end(buffer.where)
            self._unassign(buffer)
            self._assign(buffer)

    def _belongs_far(self, buffer: PartitionBuffer) -> bool:
        """Whether a partition is to be read through the consumer of those that are far behind."""
        behind = self.known_end(buffer.where) - buffer.end
        if buffer.is_far:
            return behind >= NEAR_RECORDS
        # A partition that is alone keeps no other waiting.
        return behind > FAR_RECORDS and len(self._buffers) > 1

    def _queue_of(self, buffer: PartitionBuffer) -> ConsumerQueue:
        if not buffer.is_far:
            return self._near
        if self._far is None:
            self._far = ConsumerQueue(self._settings, self._client_errors)
        return self._far

    def _due(self, buffer: PartitionBuffer) -> bool:
        """Whether a partition has something to return. Raises its error once its records are taken."""
        if buffer.error is not None and not len(buffer):
            self._raise(buffer, buffer.error)
        return buffer.is_ready

    def _raise(self, buffer: PartitionBuffer, error: KafkaError) -> None:
        """Raise a partition's error; if it is a transient one, read on instead."""
        where = buffer.where
        if is_missing(error):
            self._missed.add(where.topic)
        self._topics.forget(where.topic)
        start, end = self._topics.bounds(where)
        if is_elsewhere(error) or not start <= buffer.position <= end:
            raise OffsetOutOfRangeError(str(where), buffer.position, start, end)
        if not is_transient(error):
            raise as_transport_error(str(where), error, self._client_errors.last, "Read")
        self._await_poll()
        self._unassign(buffer)
        buffer.seek(buffer.position)
        buffer.heard_end = end
        self._assign(buffer)

    def _await(self, is_due: Callable[[], bool], timeout_s: float) -> bool:
        """Poll, or wait for the thread that does, until `is_due`; False after the timeout.

        `is_due` is called with `_changed` held.
        """
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
                near: list[Message] = []
                far: list[Message] = []
                try:
                    near, far = self._poll(min(max(left_s, 0), _POLL_S))
                finally:
                    self._changed.acquire()
                    self._is_polling = False
                    self._distribute(near, is_far=False)
                    self._distribute(far, is_far=True)
                    self._changed.notify_all()

    def _poll(self, timeout_s: float) -> tuple[list[Message], list[Message]]:
        """Return the messages of the two consumers: of partitions near their ends, and of those far behind."""
        if self._far is None or not self._far.partitions:
            return self._near.poll(timeout_s), []
        near, far = self._near.poll(0), self._far.poll(0)
        if near or far:
            return near, far
        timeout_s = min(timeout_s, _BOTH_POLL_S)
        if self._near.partitions:
            return self._near.poll(timeout_s), []
        return [], self._far.poll(timeout_s)

    def _take_near(self) -> None:
        """Take messages of the partitions near their ends, while others are far behind.

        Partitions that are far behind are due in every call. Without this, no thread would poll for the near ones.
        """
        if self._far is None or not self._far.partitions:
            return
        with self._changed:
            # A thread that is polling takes these messages too.
            if not self._is_polling and not self._closed:
                self._distribute(self._near.poll(0), is_far=False)
                self._changed.notify_all()

    def _distribute(self, messages: list[Message], *, is_far: bool) -> None:
        """Put messages of one of the consumers into the buffers of their partitions."""
        received: dict[TopicPartition, PartitionBuffer] = {}
        for topic, of_topic in groupby(messages, Message.topic):
            for partition, of_partition in groupby(of_topic, Message.partition):
                where = TopicPartition(topic or "", -1 if partition is None else partition)
                buffer = self._buffers.get(where)
                if buffer is not None and buffer.is_fetched and buffer.is_far == is_far:
                    buffer.receive(list(of_partition))
                    received[where] = buffer
                    if buffer.holds_over(1.0):
                        # The next call that reads the partition assigns it again.
                        self._unassign(buffer)
        # If fewer messages came, the queue is empty, so no partition keeps another one waiting.
        if is_far or len(messages) >= POLL_RECORDS:
            for buffer in received.values():
                self._move(buffer)

    def _check_open(self) -> None:
        if self._closed:
            raise TransportClosedError(self._place)
