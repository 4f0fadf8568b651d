"""Records that go out together with the positions of what they were made from: one after the other, or as one."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from confluent_kafka import KafkaError, KafkaException, Message

from railgun.messaging.errors import TransportFailedError
from railgun.messaging.kafka.clients import Producer, produce_all
from railgun.messaging.kafka.closing import close_writer
from railgun.messaging.kafka.errors import Complaints, as_transport_error, made, text_of
from railgun.messaging.kafka.group import GroupReading
from railgun.messaging.kafka.settings import LINGERING, KafkaSettings
from railgun.messaging.transport import Headers

# A transaction that its writer left open holds up readers, and whoever takes its partitions over, for so long and up
# to as long again: a broker looks every ten seconds.
TRANSACTION_MS = 10_000
# How long positions may take to be sent: what comes after that is refused.
_POSITIONS_S = TRANSACTION_MS / 1000
# Later than it should have by so much, librdkafka will not come back: where the group's broker left the cluster for a
# moment, as when it starts again, it waits without end to send positions (2.16; its issues 5456 and 5511).
_STUCK_S = 5.0
_FLUSH_S = 0.5
_AGAIN_S = 0.05
_BY_KEY = -1
# Half of what topics take in one request unless told otherwise; a record's key and frame come to about so much.
_PART_BYTES, _RECORD_BYTES = 500_000, 100


class Outgoing(NamedTuple):
    """Records for a topic, each at the partition that its key says, any where it has none."""

    topic: str
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    headers: Sequence[Headers] | None = None


class OutputAbortedError(Exception):
    """Nothing of it was written; it may be tried again. kind: the same for the same cause, however it is told."""

    def __init__(self, text: str, kind: object = None) -> None:
        super().__init__(text)
        self.kind = text if kind is None else kind


class Output(Protocol):
    """Where `write` returns, all is durable.

    commits: whether the positions are committed with the records; else whoever writes commits them afterwards.
    """

    commits: bool

    @property
    def is_stuck(self) -> bool:
        """Whether `write` does not return: another one has to be made, and this one left as it is."""

    def write(
        self, select: Callable[[], tuple[Sequence[Outgoing], Mapping[int, int]]], reading: GroupReading
    ) -> None:
        """Write what `select` gives: records, and by partition where the group goes on after them.

        Raises OutputAbortedError, or TransportError where another one has to be made.
        """

    def close(self) -> None:
        """Let go of the connection."""


class PlainOutput:
    """Records only: what is committed afterwards may be lost in a crash, and they are written again."""

    commits = False
    is_stuck = False

    def __init__(self, settings: KafkaSettings, is_stopping: Callable[[], bool]) -> None:
        self._place, self._is_stopping = settings.broker, is_stopping
        self._failed: list[KafkaError] = []
        self._complaints = Complaints()
        configuration = {
            **settings.producer(),
            # Records go out with `flush`, all of a request at once (`kafka_batching` says why).
            **LINGERING,
            "delivery.report.only.error": True,
            "on_delivery": self._report,
            "error_cb": self._complaints,
        }
        self._producer = made(settings.broker, lambda: Producer(configuration))

    def write(
        self, select: Callable[[], tuple[Sequence[Outgoing], Mapping[int, int]]], reading: GroupReading
    ) -> None:
        outgoing, _ = select()
        self._failed.clear()
        try:
            for part in _parts(outgoing):
                _enqueue(self._producer, part)
                while self._producer.flush(_FLUSH_S):
                    if self._is_stopping():
                        raise OutputAbortedError("stopping")
                if self._failed:
                    break
        except KafkaException as error:
            raise as_transport_error(self._place, error.args[0], self._complaints.last) from error
        if self._failed:
            raised = as_transport_error(self._place, self._failed[0], self._complaints.last)
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
    """Records and positions in one transaction: readers of what is committed see each record once.

    name: the transactional id; whoever had it before is shut out.  Raises TransportError.
    """

    commits = True

    def __init__(self, settings: KafkaSettings, name: str) -> None:
        self._place, self._timeout_s = name, settings.answer_timeout_s
        # When librdkafka has to have come back, of what it is asked now.
        self._back_s = math.inf
        self._complaints = Complaints()
        configuration = {
            **settings.producer(),
            "transactional.id": name,
            "transaction.timeout.ms": TRANSACTION_MS,
            "message.timeout.ms": TRANSACTION_MS,
            # As for a PlainOutput; the last part goes out when the transaction is committed.
            **LINGERING,
            "error_cb": self._complaints,
        }
        self._producer = made(settings.broker, lambda: Producer(configuration))
        self._ask(lambda: self._producer.init_transactions(self._timeout_s))

    @property
    def is_stuck(self) -> bool:
        return time.monotonic() > self._back_s

    def write(
        self, select: Callable[[], tuple[Sequence[Outgoing], Mapping[int, int]]], reading: GroupReading
    ) -> None:
        # Asked before anything is chosen: partitions that went to another member meanwhile were this one's under
        # another generation, and the broker refuses the transaction.
        member = reading.metadata
        if member is None:
            raise OutputAbortedError("no member of the group for now")
        outgoing, positions = select()
        if not positions:
            return
        offsets = [reading.position(partition, offset) for partition, offset in positions.items()]
        self._producer.begin_transaction()
        try:
            for place, part in enumerate(_parts(outgoing)):
                # What cannot be sent comes back in time, and the transaction is given up.
                while place and self._producer.flush(_FLUSH_S):
                    pass
                _enqueue(self._producer, part)
            self._ask(
                lambda: self._producer.send_offsets_to_transaction(offsets, member, _POSITIONS_S),
                _POSITIONS_S,
            )
            self._ask(lambda: self._producer.commit_transaction(self._timeout_s))
        except OutputAbortedError:
            self._ask(lambda: self._producer.abort_transaction(self._timeout_s))
            raise
        except KafkaException as error:
            self._ask(lambda: self._producer.abort_transaction(self._timeout_s))
            raise OutputAbortedError(str(error)) from error

    def close(self) -> None:
        close_writer(self._producer)

    def _ask(self, ask: Callable[[], None], within_s: float | None = None) -> None:
        """Ask until there is an answer: what was asked may have come to pass. within_s: how long it takes at most each
        time, where that is not the time for any question."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            self._back_s = time.monotonic() + (within_s or self._timeout_s) + _STUCK_S
            try:
                ask()
                return
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.txn_requires_abort():
                    raise OutputAbortedError(text_of(cause), cause.code()) from error
                if not cause.retriable() or time.monotonic() > deadline:
                    raise as_transport_error(self._place, cause, self._complaints.last) from error
            finally:
                self._back_s = math.inf
            time.sleep(_AGAIN_S)


def _parts(outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """What goes out in one request to each partition."""
    part: list[Outgoing] = []
    size_bytes = 0
    for topic, values, keys, headers in outgoing:
        first = 0
        for place, value in enumerate(values):
            size_bytes += len(value or b"") + _RECORD_BYTES
            if size_bytes >= _PART_BYTES:
                after = place + 1
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
