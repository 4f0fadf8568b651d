"""Pipelines few records and batches many, so that librdkafka is never given more than it can send.

librdkafka's idempotent producer has at most five requests of a partition in flight. While more records wait in its
queue, its broker thread spins and takes a whole core (2.16). So records wait here, in front of librdkafka.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from railgun.messaging.kafka.clients import produce_all
from railgun.messaging.kafka.errors import raised_error
from railgun.messaging.kafka.settings import LINGERING
from railgun.messaging.transport import Entry, TopicPartition
from railgun.wording import counted

IN_FLIGHT_LIMIT = 5
"""Records of a partition that are pipelined. Each of them may become a request of its own."""
REQUEST_LIMIT_BYTES = 4 << 20
"""The greatest size of a request to a partition, unless a single record is larger."""

# A batch of REQUEST_LIMIT_BYTES is one request.
_BATCH_SETTINGS: dict[str, Any] = {"batch.size": 16 << 20, "batch.num.messages": 100_000}
# A broker that does not answer delays the batches for other brokers by at most this.
_FLUSH_S = 0.05
_POLL_S, _JOIN_S = 0.1, 2.0
_log = logging.getLogger("railgun.kafka")


@dataclass(slots=True, eq=False)
class Submission:
    """Entries that were submitted together and are sent as `deliveries_left` deliveries.

    offsets: the offsets of each entry's first record.
    held_bytes: the memory that the records take until all deliveries are done.
    error, error_at: the first error, and the partition that it came from.
    future: gets the offsets, or the first error. It counts as running from the start: a caller that gives up cannot
    cancel what may be in flight.
    """

    offsets: list[int]
    deliveries_left: int
    held_bytes: int
    error: KafkaError | None = None
    error_at: TopicPartition | None = None
    future: Future[list[int]] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()

    def fail(self, error: KafkaError, where: TopicPartition) -> None:
        """Keep the error, unless there was an earlier one."""
        if self.error is None:
            self.error, self.error_at = error, where


@dataclass(slots=True, eq=False)
class Delivery:
    """Records of an entry on their way to Kafka, and librdkafka's callback for each of them, in order.

    index: the entry's position in its submission; None for a part that is not the entry's first.
    entry: the entry, or the part of it, until librdkafka has it.  held_bytes: the memory that its records take.
    on_done: is called once, when no more delivery reports will come, in the thread that reports, sends or drops.
    """

    submission: Submission
    index: int | None
    entry: Entry | None
    records: int
    held_bytes: int
    on_done: "Callable[[Delivery], None]"
    where: TopicPartition = field(init=False)
    reports_left: int = field(init=False)
    first_offset: int = -1

    def __post_init__(self) -> None:
        assert self.entry is not None
        self.where, self.reports_left = self.entry.where, self.records

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.submission.fail(error, self.where)
        elif self.first_offset < 0:
            self.first_offset = message.offset() or 0
        self.reports_left -= 1
        if self.reports_left == 0:
            self._complete()

    def enqueue(self, producer: Producer) -> None:
        """Give librdkafka all records, which it copies. Records that it does not take count as failed and reported."""
        assert self.entry is not None
        where, records, keys, headers = self.entry
        self.entry = None
        values: list[bytes | None] = [*records.to_list()]
        if keys is not None and not records.size_bytes:
            # In Kafka a null value deletes the records with its key.
            values = [None] * len(records)
        refused = produce_all(producer, where.topic, where.partition, values, keys, headers, self)
        if refused:
            self.submission.fail(refused[0], where)
            self.reports_left -= len(refused)
            if self.reports_left == 0:
                self._complete()

    def drop(self) -> None:
        """End without sending, since the submission has failed."""
        self._complete()

    def _complete(self) -> None:
        if self.index is not None:
            self.submission.offsets[self.index] = self.first_offset
        self.on_done(self)


@dataclass(slots=True)
class _Partition:
    """The state of a partition.

    in_flight: how many records librdkafka has and has not reported.
    is_batch: whether these were sent as a batch.
    waiting: the deliveries that are sent, in order, once these records have been reported.
    """

    in_flight: int = 0
    is_batch: bool = False
    waiting: deque[Delivery] = field(default_factory=deque)


class BatchingProducer:
    """Sends deliveries. Those to one partition are sent in the order of the calls of `send`.

    Pipelining: up to IN_FLIGHT_LIMIT records of a partition go out at once, by a producer that does not linger.
    Batching: further records wait until nothing of the partition is in flight. Then they go out as one request of at
    most REQUEST_LIMIT_BYTES, by a second producer, which sends when it is flushed.

    create(overrides, defaults): makes a producer. `overrides` outrank the user's settings, which outrank `defaults`.
    Threads: any may call `send`. One of this class takes the reports of the first producer. Another one, started with
    the first record, sends batches and takes their reports.
    Errors go to the submissions. Once one has failed, its deliveries that still wait are dropped.
    failure: why a producer will never send again; None while it may.
    """

    def __init__(self, create: Callable[[Mapping[str, Any], Mapping[str, Any]], Producer]) -> None:
        self._create = create
        self.failure: KafkaError | None = None
        self._pipelining = create({}, {})
        self._batching: Producer | None = None
        self._changed = threading.Condition()
        # The partitions with records in flight or waiting. `_due` are those whose next batch can go out.
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._due: set[TopicPartition] = set()
        self._is_closing = False
        self._threads: list[threading.Thread] = []
        self._start("kafka-delivery", self._take_reports)

    def send(self, delivery: Delivery) -> None:
        """Send at once, or have it sent when its turn comes. Does not wait for the broker."""
        with self._changed:
            if len(self._threads) == 1:
                self._start("kafka-batches", self._send_batches)
            partition = self._partitions.setdefault(delivery.where, _Partition())
            is_full = partition.is_batch or partition.in_flight + delivery.records > IN_FLIGHT_LIMIT
            # A delivery of a failed submission waits too, to be dropped: the log must not get only a submission's end.
            if partition.waiting or is_full or delivery.submission.error is not None:
                partition.waiting.append(delivery)
                if not partition.in_flight:
                    self._mark_due(delivery.where)
            else:
                partition.in_flight += delivery.records
                delivery.enqueue(self._pipelining)

    def finished(self, delivery: Delivery) -> None:
        """Note that no more reports of a delivery will come. Its `on_done` has to call this."""
        where = delivery.where
        with self._changed:
            partition = self._partitions[where]
            partition.in_flight -= delivery.records
            if partition.in_flight:
                return
            partition.is_batch = False
            if partition.waiting:
                self._mark_due(where)
            else:
                del self._partitions[where]
                if self._is_closing:
                    self._changed.notify_all()

    @property
    def unconfirmed(self) -> int:
        """The number of records in flight or waiting. It is not known whether the broker has them."""
        with self._changed:
            partitions = self._partitions.values()
            return sum(each.in_flight + sum(one.records for one in each.waiting) for each in partitions)

    def close(self, timeout_s: float) -> None:
        """Send the waiting records, and wait for all reports. Submissions without all reports at the timeout fail.

        A thread that does not return from librdkafka is abandoned, with the producers.
        """
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._partitions, timeout_s)
            given_up = self.unconfirmed
            dropped = _abandon(self._partitions.values(), KafkaError(KafkaError._PURGE_QUEUE))
            self._due.clear()
        for delivery in dropped:
            delivery.drop()
        for producer in self._producers():
            producer.purge()
        with self._changed:
            self._changed.wait_for(lambda: not self._partitions, max(_POLL_S, deadline_s - time.monotonic()))
        if given_up:
            _log.warning("given up, as the broker has not confirmed it: %s", counted(given_up, "record"))
        for thread in self._threads:
            thread.join(_JOIN_S)
        if not any(thread.is_alive() for thread in self._threads):
            for producer in self._producers():
                # A producer that has failed for good raises its error again, which submissions have got already.
                with contextlib.suppress(KafkaException):
                    producer.close()

    def _start(self, name: str, target: Callable[[], None]) -> None:
        self._threads.append(threading.Thread(target=target, name=name, daemon=True))
        self._threads[-1].start()

    def _producers(self) -> list[Producer]:
        return [each for each in (self._pipelining, self._batching) if each is not None]

    def _mark_due(self, where: TopicPartition) -> None:
        self._due.add(where)
        self._changed.notify_all()

    def _take_reports(self) -> None:
        while not self._is_closing or self._partitions:
            try:
                self._pipelining.poll(_POLL_S)
            except KafkaException as error:
                # A producer that has failed for good raises its error here, once. The reports of its records follow.
                self.failure = raised_error(error)

    def _send_batches(self) -> None:
        # A new producer cannot send for half a second, so it is made before the first batch needs it.
        with contextlib.suppress(Exception):
            self._batching_producer()
        while True:
            with self._changed:
                if not self._await_due():
                    return
                due, self._due = self._due, set()
                dropped = self._start_batches(due)
            # Without the lock, as a callback of a submission's future may send.
            for delivery in dropped:
                delivery.drop()
            if self._batching is not None:
                try:
                    self._batching.flush(_FLUSH_S)
                except (KafkaException, SystemError) as error:
                    self.failure = raised_error(error)

    def _batching_producer(self) -> Producer:
        if self._batching is None:
            self._batching = self._create(LINGERING, _BATCH_SETTINGS)
        return self._batching

    def _await_due(self) -> bool:
        """Wait for a due batch, unless delivery reports are pending. Returns False if the producer is closed and
        empty.
        """
        if self._batching is not None and len(self._batching):
            return True
        self._changed.wait_for(lambda: self._due or (self._is_closing and not self._partitions))
        return bool(self._due)

    def _start_batches(self, due: set[TopicPartition]) -> list[Delivery]:
        """Send a batch to each of these partitions; returns deliveries of failed submissions, to be dropped."""
        partitions = [self._partitions[where] for where in due]
        if self.failure is not None:
            return _abandon(partitions, self.failure)
        try:
            producer = self._batching_producer()
        except Exception as error:  # noqa: BLE001 - the submissions fail with it, whatever it is
            return _abandon(partitions, KafkaError(KafkaError._FAIL, str(error)))
        return [delivery for each in partitions for delivery in _send_batch(producer, each)]


def _send_batch(producer: Producer, partition: _Partition) -> list[Delivery]:
    """Take one request's deliveries off the queue and send them; returns those to be dropped."""
    batch, dropped = list[Delivery](), list[Delivery]()
    left_bytes = REQUEST_LIMIT_BYTES
    while partition.waiting:
        delivery = partition.waiting[0]
        if delivery.submission.error is not None:
            dropped.append(delivery)
        elif not batch or delivery.held_bytes <= left_bytes:
            batch.append(delivery)
            left_bytes -= delivery.held_bytes
        else:
            break
        partition.waiting.popleft()
    partition.is_batch = True
    partition.in_flight = sum(each.records for each in (*dropped, *batch))
    for delivery in batch:
        delivery.enqueue(producer)
    return dropped


def _abandon(partitions: Iterable[_Partition], cause: KafkaError) -> list[Delivery]:
    """Fail the waiting deliveries and return them, to be dropped. Until then they count as in flight."""
    abandoned: list[Delivery] = []
    for partition in partitions:
        for delivery in partition.waiting:
            delivery.submission.fail(cause, delivery.where)
            partition.in_flight += delivery.records
        abandoned += partition.waiting
        partition.waiting.clear()
    return abandoned
