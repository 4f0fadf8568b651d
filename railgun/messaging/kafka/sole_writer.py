"""One writer at a time to a topic of Kafka: whoever takes over shuts out whoever wrote before."""

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Message

from railgun.messaging.errors import WriterFencedError
from railgun.messaging.kafka.clients import Producer
from railgun.messaging.kafka.closing import close_writer
from railgun.messaging.kafka.errors import Complaints, as_transport_error, made
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings
from railgun.messaging.transport import TopicPartition

_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.CONCURRENT_TRANSACTIONS,
        # All a broker says where a takeover meets the end of a transaction; the next writer sees what became of it.
        KafkaError.UNKNOWN,
    }
)
# A transaction that its writer left open holds up readers for so long, unless another writer takes over.
_TRANSACTION_MS = 30_000


class KafkaSoleWriter:
    """Appends as transactions of one transactional id. Once made, no writer of the same name that was made before
    can append any more: it gets WriterFencedError. What was appended before is then there for good, or not at all.

    name: the transactional id.  Raises WriterFencedError and TransportError; after an error make another one.
    """

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._place, self._timeout_s = name, settings.answer_timeout_s
        self._complaints = Complaints()
        configuration = {
            **settings.producer(),
            "transactional.id": name,
            "transaction.timeout.ms": _TRANSACTION_MS,
            "message.timeout.ms": _TRANSACTION_MS,
            # All of an append goes out when it is committed: records that wait behind others keep a core busy.
            **LINGERING,
            "error_cb": self._complaints,
            # Being shut out is no accident here, and librdkafka would call it fatal.
            "log_level": 0,
        }
        self._producer = made(settings.broker, lambda: Producer(configuration))
        try:
            self._producer.init_transactions(self._timeout_s)
        except KafkaException as error:
            raise self._raised(error.args[0]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, where: TopicPartition, records: Sequence[tuple[bytes, bytes]]) -> int:
        """Append (key, record) pairs, all or none; returns the offset of the last once they are sure to be there.

        The broker may show them to readers a moment later.
        """
        failed: list[KafkaError] = []
        offsets: list[int] = []

        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)
            else:
                offsets.append(message.offset() or 0)

        try:
            self._producer.begin_transaction()
            for key, record in records:
                self._producer.produce(where.topic, record, key, where.partition, report)
            self._producer.commit_transaction(self._timeout_s)
        except KafkaException as error:
            cause = failed[0] if failed else error.args[0]
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(self._timeout_s)
            raise self._raised(cause) from error
        return offsets[-1]

    def close(self) -> None:
        """Let go of the connection."""
        close_writer(self._producer)

    def _raised(self, error: KafkaError) -> Exception:
        if error.code() in _FENCED:
            return WriterFencedError(self._place)
        return as_transport_error(self._place, error, self._complaints.last)
