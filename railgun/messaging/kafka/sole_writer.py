"""A writer to a Kafka topic that shuts out (fences) all earlier writers, so that there is one at a time.

The catalogue's topic and the topic of the leader's plan are written by it.
"""

import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from confluent_kafka import KafkaError, KafkaException, Message

from railgun.messaging.errors import WriterFencedError
from railgun.messaging.kafka.clients import Producer
from railgun.messaging.kafka.closing import close_transactional
from railgun.messaging.kafka.errors import ClientErrors, as_transport_error, create_client, is_denied
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings
from railgun.messaging.transport import TopicPartition

_FENCED: Final = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.CONCURRENT_TRANSACTIONS,
        # A broker has no better code for fencing at the end of a transaction. The next writer sees how that ended.
        KafkaError.UNKNOWN,
    }
)
# The broker aborts an open transaction after this, unless the next writer does earlier. Until then readers wait.
_TRANSACTION_MS = 30_000


class KafkaSoleWriter:
    """Appends in transactions of one transactional id.

    Making a writer fences every earlier one of the same name: its `append` raises WriterFencedError. By then each of
    its appends is durable or aborted.

    name: the transactional id.
    Raises WriterFencedError and TransportError. After an error another writer has to be made.
    """

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._place, self._timeout_s = name, settings.answer_timeout_s
        self._client_errors = ClientErrors()
        configuration = {
            **settings.producer(),
            "transactional.id": name,
            "transaction.timeout.ms": _TRANSACTION_MS,
            "message.timeout.ms": _TRANSACTION_MS,
            # All records of an append go out with its commit (`batching` says why).
            **LINGERING,
            "error_cb": self._client_errors,
            # Being fenced is expected here, but librdkafka would log it as fatal.
            "log_level": 0,
        }
        self._producer = create_client(settings.broker, lambda: Producer(configuration))
        try:
            self._producer.init_transactions(self._timeout_s)
        except KafkaException as error:
            raise self._as_error(error.args[0]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, where: TopicPartition, records: Sequence[tuple[bytes, bytes]]) -> int:
        """Append (key, record) pairs, all or none. Returns the offset of the last one once they are committed.

        Readers may see them a moment later.
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
            cause = failed[0] if failed and not is_denied(error.args[0]) else error.args[0]
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(self._timeout_s)
            raise self._as_error(cause) from error
        return offsets[-1]

    def close(self) -> None:
        """Abort an open transaction, and close the connection."""
        close_transactional(self._producer)

    def _as_error(self, error: KafkaError) -> Exception:
        if error.code() in _FENCED:
            return WriterFencedError(self._place)
        return as_transport_error(self._place, error, self._client_errors.last, "Write")
