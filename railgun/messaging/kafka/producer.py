"""Appends to Kafka, as a half of `KafkaTransport`: splits entries into requests, bounds the unacknowledged bytes, and
maps errors.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from railgun.messaging.errors import (
    TransportClosedError,
    TransportFailedError,
    TransportFullError,
)
from railgun.messaging.kafka.batching import REQUEST_LIMIT_BYTES, BatchingProducer, Delivery, Submission
from railgun.messaging.kafka.clients import Producer
from railgun.messaging.kafka.errors import ClientErrors, as_transport_error, create_client
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.transport import Entry, checked_bytes

PENDING_LIMIT_BYTES = 64 << 20
"""Back-pressure: a submission that would make more than this unacknowledged is refused."""

# The memory that a record takes in librdkafka and in this process, beyond its bytes.
_RECORD_OVERHEAD_BYTES = 128


class KafkaProducer:
    """The writing half of a KafkaTransport: idempotent producers with acks=all.

    Threads: any may call every method. Futures complete in a thread of BatchingProducer, in the one that submits
    where librdkafka refuses a record, or in the one that closes.
    Errors: of a submission, in its future. After a fatal one of librdkafka's, `submit` raises it from then on.
    """

    def __init__(self, settings: KafkaSettings, topics: KafkaTopics) -> None:
        self._settings, self._topics = settings, topics
        self._client_errors = ClientErrors()
        # Held while a submission's deliveries are sent, so that its records lie together.
        self._sending = threading.Lock()
        # Guards the attributes below.
        self._lock = threading.Lock()
        self._pending_bytes = 0
        self._failure: TransportFailedError | None = None
        self._closed = False
        self._batching = BatchingProducer(self._create)

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        """Submit as `Transport.submit` does. Does not wait for the broker, except to ask for a topic's partitions."""
        for entry in entries:
            self._topics.check(entry.where)
        split = [split_entry(entry) for entry in entries]
        held_bytes = sum(part.held_bytes for parts in split for part in parts)
        submission = Submission([0] * len(entries), sum(map(len, split)), held_bytes)
        if not entries:
            submission.future.set_result([])
            return submission.future
        with self._sending:
            self._reserve(held_bytes)
            for index, parts in enumerate(split):
                for number, part in enumerate(parts):
                    first_of = None if number else index
                    self._batching.send(Delivery(submission, first_of, *part, self._delivered))
        return submission.future

    @property
    def unconfirmed(self) -> int:
        """The number of records of which it is not known whether the broker has them."""
        return self._batching.unconfirmed

    def close(self, timeout_s: float) -> None:
        """Refuse further submissions and wait for the pending ones. Those that take longer than the timeout fail."""
        with self._sending, self._lock:
            if self._closed:
                return
            self._closed = True
        self._batching.close(timeout_s)

    def _create(self, overrides: Mapping[str, Any], defaults: Mapping[str, Any]) -> Producer:
        configuration = {
            **defaults,
            **self._settings.producer(),
            **overrides,
            "error_cb": self._client_errors,
        }
        return create_client(self._settings.broker, lambda: Producer(configuration))

    def _reserve(self, held_bytes: int) -> None:
        """Count a submission as pending. Raises TransportError if it cannot be taken."""
        with self._lock:
            if self._closed:
                raise TransportClosedError(self._settings.broker)
            if self._failure is not None:
                raise self._failure
            if self._pending_bytes and self._pending_bytes + held_bytes > PENDING_LIMIT_BYTES:
                raise TransportFullError(self._settings.broker, self._pending_bytes)
            self._pending_bytes += held_bytes

    def _delivered(self, delivery: Delivery) -> None:
        self._batching.finished(delivery)
        submission = delivery.submission
        with self._lock:
            submission.deliveries_left -= 1
            if submission.deliveries_left:
                return
        self._complete(submission)

    def _complete(self, submission: Submission) -> None:
        """Release a submission's share of the limit and complete its future: none of its deliveries is left."""
        raised = None
        if submission.error is not None:
            cause = self._batching.failure or self._client_errors.last
            raised = as_transport_error(str(submission.error_at), submission.error, cause, "Write")
        with self._lock:
            self._pending_bytes -= submission.held_bytes
            if isinstance(raised, TransportFailedError):
                self._failure = raised
            elif raised is None:
                self._client_errors.clear()
        if raised is None:
            submission.future.set_result(submission.offsets)
            return
        if submission.error_at is not None:
            self._topics.forget(submission.error_at.topic)
        submission.future.set_exception(raised)


class Part(NamedTuple):
    """A part of an entry that fits one request.

    records: how many.  held_bytes: the memory that they take until they are acknowledged.
    """

    entry: Entry
    records: int
    held_bytes: int


def split_entry(entry: Entry) -> list[Part]:
    """Split an entry into parts of at most REQUEST_LIMIT_BYTES, in order. A larger record is a part of its own.

    Raises RecordTooLargeError, and ValueError if the entry has no records, or keys or headers of another number.
    """
    size_bytes, n = checked_bytes(entry), len(entry.records)
    for each in (entry.keys, entry.headers):
        if each is not None and len(each) != n:
            raise ValueError(f"{n} records to {entry.where} have {len(each)} keys or headers")
    held_bytes = size_bytes + n * _RECORD_OVERHEAD_BYTES
    return [Part(entry, n, held_bytes)] if held_bytes <= REQUEST_LIMIT_BYTES else list(_split(entry))


def _split(entry: Entry) -> Iterator[Part]:
    ends = np.cumsum(np.diff(entry.records.offsets) + _RECORD_OVERHEAD_BYTES)
    first, base = 0, 0
    while first < len(ends):
        after = max(first + 1, int(np.searchsorted(ends, base + REQUEST_LIMIT_BYTES, "right")))
        end = int(ends[after - 1])
        part = Entry(
            entry.where,
            entry.records.part(first, after),
            entry.keys and entry.keys[first:after],
            entry.headers and entry.headers[first:after],
        )
        yield Part(part, after - first, end - base)
        first, base = after, end
