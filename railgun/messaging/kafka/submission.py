"""Records on their way to Kafka, and what is told when all of them are there."""

from collections.abc import Callable
from concurrent.futures import Future

from confluent_kafka import KafkaError, Message

from railgun.messaging.transport import TopicPartition

# A message costs librdkafka and this process memory beyond its bytes.
_RECORD_OVERHEAD_BYTES = 128


def held_bytes(records: int, size_bytes: int) -> int:
    """What records take while they wait."""
    return size_bytes + records * _RECORD_OVERHEAD_BYTES


class KafkaSubmission:
    """Entries that were submitted together, on their way in so many deliveries.

    future: gets the offset of each entry's first record, or the first error.  Running from the start: a waiter that
    gives up cannot take back what is on its way.
    """

    __slots__ = ("deliveries_left", "error", "future", "held_bytes", "offsets", "place")

    def __init__(self, entries: int, deliveries: int, held: int) -> None:
        self.deliveries_left = deliveries
        self.held_bytes = held
        self.offsets = [0] * entries
        self.error: KafkaError | None = None
        self.place = ""
        self.future: Future[list[int]] = Future()
        self.future.set_running_or_notify_cancel()


class Delivery:
    """The delivery reports of an entry, or of a part of one. Called by librdkafka for each of its records, in order.

    index: of the entry; None for a part that is not its first.  records, held_bytes: of the entry or part.  done:
    called when the last report is in.
    """

    __slots__ = ("_done", "_first", "_index", "_left", "held_bytes", "records", "submission", "where")

    def __init__(
        self,
        submission: KafkaSubmission,
        index: int | None,
        records: int,
        held: int,
        where: TopicPartition,
        done: "Callable[[Delivery], None]",
    ) -> None:
        self.submission = submission
        self.records, self.held_bytes = records, held
        self.where = where
        self._index = index
        self._left = records
        self._done = done
        self._first = -1

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed(error)
        elif self._first < 0:
            self._first = message.offset() or 0
        self._left -= 1
        if self._left == 0:
            self._complete()

    def not_sent(self, records: int, error: KafkaError) -> None:
        """So many records were not even taken: no report of them will come."""
        self._failed(error)
        self._left -= records
        if self._left == 0:
            self._complete()

    def drop(self) -> None:
        """None of its records is sent, since its submission has failed."""
        self._left = 0
        self._complete()

    def _failed(self, error: KafkaError) -> None:
        if self.submission.error is None:
            self.submission.error, self.submission.place = error, str(self.where)

    def _complete(self) -> None:
        if self._index is not None:
            self.submission.offsets[self._index] = self._first
        self._done(self)
