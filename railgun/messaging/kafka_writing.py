"""One idempotent producer for all that is submitted, with a bound on what waits."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, Producer

from railgun.messaging.block import sizes_of
from railgun.messaging.errors import (
    RecordTooLargeError,
    TransportClosedError,
    TransportFailedError,
    TransportFullError,
)
from railgun.messaging.kafka_errors import Complaints, as_transport_error, made
from railgun.messaging.kafka_handing import hand_over
from railgun.messaging.kafka_settings import KafkaSettings
from railgun.messaging.kafka_submission import Delivery, KafkaSubmission, held_bytes
from railgun.messaging.kafka_topics import KafkaTopics
from railgun.messaging.transport import RECORD_LIMIT_BYTES, Entry
from railgun.wire.encode import Records

PENDING_LIMIT_BYTES = 64 << 20
_POLL_S = 0.1


class KafkaWriting:
    """Submissions are handed to librdkafka at once; one thread takes its delivery reports."""

    def __init__(self, settings: KafkaSettings, topics: KafkaTopics) -> None:
        self._place = settings.broker
        self._topics = topics
        self._complaints = Complaints()
        configuration = {**settings.producer(), "error_cb": self._complaints}
        self._producer = made(settings.broker, lambda: Producer(configuration))
        # Held while the records of a submission are handed over, so that they lie together.
        self._handing_over = threading.Lock()
        self._changed = threading.Condition()
        self._pending_bytes = 0
        self._failure: TransportFailedError | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._take_reports, name="kafka-delivery", daemon=True)
        self._thread.start()

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        """As `Transport.submit`."""
        held = sum(self._held(entry) for entry in entries)
        submission = KafkaSubmission(len(entries), held)
        if not entries:
            submission.future.set_result([])
            return submission.future
        with self._handing_over:
            self._reserve(held)
            for index, entry in enumerate(entries):
                self._hand_over(entry, submission, index)
        return submission.future

    def close(self, timeout_s: float) -> None:
        """Take nothing more; write what was submitted, or give up after a time, which futures then say."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
        with self._handing_over:
            self._producer.flush(timeout_s)
            self._producer.purge()
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._pending_bytes and time.monotonic() < deadline:
                self._changed.wait(_POLL_S)
        self._thread.join()
        self._producer.close()

    def _held(self, entry: Entry) -> int:
        """Check an entry; returns what it takes while it waits."""
        self._topics.check(entry.where)
        n, size_bytes, largest = sizes_of(entry.records)
        if n == 0:
            raise ValueError(f"nothing to append to {entry.where}")
        if largest > RECORD_LIMIT_BYTES:
            raise RecordTooLargeError(str(entry.where), largest, RECORD_LIMIT_BYTES)
        for each in (entry.keys, entry.headers):
            if each is not None and len(each) != n:
                raise ValueError(f"{n} records to {entry.where} have {len(each)} keys or headers")
        return held_bytes(n, size_bytes)

    def _reserve(self, held: int) -> None:
        with self._changed:
            if self._closed:
                raise TransportClosedError(self._place)
            if self._failure is not None:
                raise self._failure
            if self._pending_bytes and self._pending_bytes + held > PENDING_LIMIT_BYTES:
                raise TransportFullError(self._place, self._pending_bytes)
            self._pending_bytes += held

    def _hand_over(self, entry: Entry, submission: KafkaSubmission, index: int) -> None:
        topic, partition = entry.where
        records = entry.records.to_list() if isinstance(entry.records, Records) else entry.records
        report = Delivery(submission, index, len(records), str(entry.where), self._settle)
        if entry.headers is None:
            refused = hand_over(self._producer, topic, records, entry.keys, partition, report)
            if refused:
                report.not_sent(len(refused), refused[0])
            return
        taken = 0
        keys = entry.keys or [None] * len(records)
        try:
            for record, key, headers in zip(records, keys, entry.headers):
                self._producer.produce(topic, record, key, partition, report, headers=list(headers))
                taken += 1
        except BufferError:
            report.not_sent(len(records) - taken, KafkaError(KafkaError._QUEUE_FULL))
        except KafkaException as error:
            report.not_sent(len(records) - taken, error.args[0])

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
            if not self._pending_bytes:
                self._changed.notify_all()
        if raised is not None:
            self._topics.forget(submission.place.rpartition("-")[0])
            submission.future.set_exception(raised)
        else:
            submission.future.set_result(submission.offsets)

    def _take_reports(self) -> None:
        while not (self._closed and not self._pending_bytes):
            self._producer.poll(_POLL_S)
