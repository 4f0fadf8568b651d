"""Writes records to Kafka with the positions of the input that they were made from: in a transaction, or without.

Front-ends write output topics by it.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import TransportFailedError
from railgun.messaging.kafka.clients import Producer, produce_all
from railgun.messaging.kafka.closing import close_transactional
from railgun.messaging.kafka.errors import (
    ClientErrors,
    as_transport_error,
    create_client,
    is_denied,
    raised_error,
    text_of,
)
from railgun.messaging.kafka.group import GroupMember
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings
from railgun.messaging.transport import Headers, TopicPartition

# A transaction whose writer died blocks readers, and the members that take its partitions over, until the broker aborts
# it. The broker looks every ten seconds, so that is after one to two times this.
TRANSACTION_MS = 10_000
# The limit for sending positions. Later ones would be refused, as the transaction has timed out.
_POSITIONS_S = TRANSACTION_MS / 1000
# A call of librdkafka that is overdue by this will not return. When the group's coordinator leaves the cluster for a
# moment, as in a restart, sending positions blocks forever (2.16; its issues 5456 and 5511).
_STUCK_S = 5.0
_FLUSH_S = 0.5
_RETRY_S = 0.05
_BY_KEY = -1
# Half of a topic's default max.message.bytes; and about the size of a record's headers and frame.
_REQUEST_BYTES, _RECORD_BYTES = 500_000, 150


class Outgoing(NamedTuple):
    """Records for a topic. The key decides a record's partition; without a key it is any."""

    topic: str
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    headers: Sequence[Headers] | None = None


class OutputAbortedError(Exception):
    """Nothing was written; it may be tried again.

    kind: identifies the cause, if the text varies; None: the text does.
    """

    def __init__(self, text: str, kind: object = None) -> None:
        super().__init__(text)
        self.kind = text if kind is None else kind


class Output(Protocol):
    """Writes records durably. One thread writes; any may ask `is_stuck`.

    commits: whether `write` commits the positions with the records. If not, the caller must commit them afterwards.
    """

    commits: bool

    @property
    def is_stuck(self) -> bool:
        """Whether `write` will never return. Another output has to be made then, and this one must not be closed."""

    def write(
        self,
        select: Callable[[], tuple[Sequence[Outgoing], Mapping[TopicPartition, int]]],
        member: GroupMember,
    ) -> None:
        """Call `select`, and write what it returns: records, and by partition the group's position after them.

        Returns when all is durable. Raises OutputAbortedError; TransportError if another output has to be made.
        """

    def close(self) -> None:
        """Close the connection."""


class PlainOutput:
    """Writes records only. After a crash before the positions are committed, the records are written again.

    is_stopping: asked while the broker does not answer; when it returns True, `write` gives up.
    """

    commits = False
    is_stuck = False

    def __init__(self, settings: KafkaSettings, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping
        self._failed: list[KafkaError] = []
        self._client_errors = ClientErrors()
        configuration = {
            **settings.producer(),
            # Records go out with `flush`, all of a request at once (`batching` says why).
            **LINGERING,
            "delivery.report.only.error": True,
            "on_delivery": self._report,
            "error_cb": self._client_errors,
        }
        self._producer = create_client(settings.broker, lambda: Producer(configuration))

    def write(
        self,
        select: Callable[[], tuple[Sequence[Outgoing], Mapping[TopicPartition, int]]],
        member: GroupMember,
    ) -> None:
        outgoing, _ = select()
        topics = ", ".join(sorted({each.topic for each in outgoing}))
        self._failed.clear()
        try:
            for part in _requests(outgoing):
                _enqueue(self._producer, part)
                while self._producer.flush(_FLUSH_S):
                    if self._is_stopping():
                        raise OutputAbortedError("stopping")
                if self._failed:
                    break
        except (KafkaException, SystemError) as error:
            raised = as_transport_error(topics, raised_error(error), self._client_errors.last, "Write")
            raise raised from error
        if self._failed:
            raised = as_transport_error(topics, self._failed[0], self._client_errors.last, "Write")
            if isinstance(raised, TransportFailedError):
                raise raised
            raise OutputAbortedError(str(raised))

    def close(self) -> None:
        self._producer.purge()
        self._producer.close()

    def _report(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)


class TransactionalOutput:
    """Writes records and positions in one transaction, so that a reader of committed records sees each once.

    name: the transactional id; an earlier producer that has it is fenced.  Raises TransportError.
    """

    commits = True

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._place, self._timeout_s = name, settings.answer_timeout_s
        # When the present call of librdkafka has to have returned.
        self._deadline_s = math.inf
        self._client_errors = ClientErrors()
        configuration = {
            **settings.producer(),
            "transactional.id": name,
            "transaction.timeout.ms": TRANSACTION_MS,
            "message.timeout.ms": TRANSACTION_MS,
            # As in PlainOutput; the last request goes out with the commit.
            **LINGERING,
            "error_cb": self._client_errors,
        }
        self._producer = create_client(settings.broker, lambda: Producer(configuration))
        self._call(lambda: self._producer.init_transactions(self._timeout_s))

    @property
    def is_stuck(self) -> bool:
        return time.monotonic() > self._deadline_s

    def write(
        self,
        select: Callable[[], tuple[Sequence[Outgoing], Mapping[TopicPartition, int]]],
        member: GroupMember,
    ) -> None:
        # Read before `select`: if a partition goes to another member after this, the generation in the metadata is an
        # old one, and the broker refuses the transaction.
        metadata = member.metadata
        if metadata is None:
            raise OutputAbortedError("no member of the group for now")
        outgoing, positions = select()
        if not positions:
            return
        offsets = [KafkaTopicPartition(*where, offset) for where, offset in positions.items()]
        self._producer.begin_transaction()
        try:
            for number, part in enumerate(_requests(outgoing)):
                # Ends in time: records that cannot be sent fail after message.timeout.ms, and with them the commit.
                while number and self._producer.flush(_FLUSH_S):
                    pass
                _enqueue(self._producer, part)
            self._call(
                lambda: self._producer.send_offsets_to_transaction(offsets, metadata, _POSITIONS_S),
                _POSITIONS_S,
            )
            self._call(lambda: self._producer.commit_transaction(self._timeout_s))
        except OutputAbortedError:
            self._call(lambda: self._producer.abort_transaction(self._timeout_s))
            raise
        except KafkaException as error:
            self._call(lambda: self._producer.abort_transaction(self._timeout_s))
            raise OutputAbortedError(str(error)) from error

    def close(self) -> None:
        close_transactional(self._producer)

    def _call(self, call: Callable[[], None], limit_s: float | None = None) -> None:
        """Call until the outcome is known, as a call that timed out may have taken effect.

        limit_s: the timeout that `call` passes to librdkafka; None: that of any request.
        Raises OutputAbortedError if the transaction has to be aborted, TransportError after the timeout.
        """
        retry_until_s = time.monotonic() + self._timeout_s
        while True:
            self._deadline_s = time.monotonic() + (limit_s or self._timeout_s) + _STUCK_S
            try:
                call()
                return
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.txn_requires_abort() and not is_denied(cause):
                    raise OutputAbortedError(text_of(cause), cause.code()) from error
                if not cause.retriable() or time.monotonic() > retry_until_s:
                    raise as_transport_error(self._place, cause, self._client_errors.last, "Write") from error
            finally:
                self._deadline_s = math.inf
            time.sleep(_RETRY_S)


def _requests(outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Split records into parts, each of which fits one request to each partition."""
    part: list[Outgoing] = []
    size_bytes = 0
    for topic, values, keys, headers in outgoing:
        first = 0
        for number, (value, key) in enumerate(zip(values, keys, strict=True)):
            size_bytes += len(value or b"") + len(key or b"") + _RECORD_BYTES
            if size_bytes >= _REQUEST_BYTES:
                after = number + 1
                part.append(
                    Outgoing(topic, values[first:after], keys[first:after], headers and headers[first:after])
                )
                yield part
                part, size_bytes, first = [], 0, after
        if first < len(values):
            part.append(Outgoing(topic, values[first:], keys[first:], headers and headers[first:]))
    if part:
        yield part


def _enqueue(producer: Producer, outgoing: Sequence[Outgoing]) -> None:
    for topic, values, keys, headers in outgoing:
        refused = produce_all(producer, topic, _BY_KEY, values, keys, headers)
        if refused:
            raise KafkaException(refused[0])
