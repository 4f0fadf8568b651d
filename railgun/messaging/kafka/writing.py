"""All that is submitted to Kafka, with a bound on what waits."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from railgun.messaging.errors import (
    TransportClosedError,
    TransportFailedError,
    TransportFullError,
)
from railgun.messaging.kafka.clients import Producer
from railgun.messaging.kafka.errors import Complaints, as_transport_error, made
from railgun.messaging.kafka.lanes import KafkaLanes
from railgun.messaging.kafka.parts import parts_of
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.submission import Delivery, KafkaSubmission
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.transport import Entry

PENDING_LIMIT_BYTES = 64 << 20


class KafkaWriting:
    """Idempotent producers; threads of theirs take delivery reports."""

    def __init__(self, settings: KafkaSettings, topics: KafkaTopics) -> None:
        self._settings, self._place = settings, settings.broker
        self._topics = topics
        self._complaints = Complaints()
        # Held while the records of a submission are handed over, so that they lie together.
        self._handing_over = threading.Lock()
        self._changed = threading.Lock()
        self._pending_bytes = 0
        self._failure: TransportFailedError | None = None
        self._closed = False
        self._lanes = KafkaLanes(self._producer)

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        """As `Transport.submit`."""
        for entry in entries:
            self._topics.check(entry.where)
        divided = [parts_of(entry) for entry in entries]
        held = sum(part.held_bytes for parts in divided for part in parts)
        submission = KafkaSubmission(len(entries), sum(map(len, divided)), held)
        if not entries:
            submission.future.set_result([])
            return submission.future
        with self._handing_over:
            self._reserve(submission.held_bytes)
            for index, parts in enumerate(divided):
                for number, (entry, records, size_bytes) in enumerate(parts):
                    told = None if number else index
                    delivery = Delivery(submission, told, records, size_bytes, entry.where, self._delivered)
                    self._lanes.send(entry, delivery)
        return submission.future

    @property
    def unconfirmed(self) -> int:
        """As `KafkaLanes.unconfirmed`."""
        return self._lanes.unconfirmed

    def close(self, timeout_s: float) -> None:
        """Take nothing more; write what was submitted, or give up after a time, which futures then say."""
        with self._handing_over, self._changed:
            if self._closed:
                return
            self._closed = True
        self._lanes.close(timeout_s)

    def _producer(self, wanted: Mapping[str, Any], defaults: Mapping[str, Any]) -> Producer:
        configuration = {**defaults, **self._settings.producer(), **wanted, "error_cb": self._complaints}
        return made(self._place, lambda: Producer(configuration))

    def _reserve(self, held: int) -> None:
        with self._changed:
            if self._closed:
                raise TransportClosedError(self._place)
            if self._failure is not None:
                raise self._failure
            if self._pending_bytes and self._pending_bytes + held > PENDING_LIMIT_BYTES:
                raise TransportFullError(self._place, self._pending_bytes)
            self._pending_bytes += held

    def _delivered(self, delivery: Delivery) -> None:
        self._lanes.landed(delivery)
        submission = delivery.submission
        with self._changed:
            submission.deliveries_left -= 1
            if submission.deliveries_left:
                return
        self._settle(submission)

    def _settle(self, submission: KafkaSubmission) -> None:
        """Tell whoever waits for a submission."""
        error = submission.error
        raised = None
        if error is not None:
            raised = as_transport_error(submission.place, error, self._complaints.last)
        with self._changed:
            self._pending_bytes -= submission.held_bytes
            if isinstance(raised, TransportFailedError):
                self._failure = raised
            elif raised is None:
                self._complaints.forget()
        if raised is not None:
            self._topics.forget(submission.place.rpartition("-")[0])
            submission.future.set_exception(raised)
        else:
            submission.future.set_result(submission.offsets)
