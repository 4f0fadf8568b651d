"""Reads the records of topics from their ends backwards, a bounded part at a time, and commits nothing."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Assigned

from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import (
    ClientErrors,
    as_transport_error,
    create_client,
    is_missing,
    is_transient,
)
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.transport import TopicPartition

_POLL_S = 0.05
# A step reads twice as many records of a partition as the one before: what is read and not wanted is at most as much.
_STEP_MAX = 256
# The end of a partition, whichever it is by then.
_END = 10**15
# The least time for a request. With less left, time is over.
_LEAST_S = 0.01
# What headers count whose names are no UTF-8, as nobody can tell how long they are. By default no record is larger.
_UNKNOWN_BYTES = 1 << 20
# What librdkafka fetches ahead and nobody takes.
_AHEAD = {"queued.min.messages": _STEP_MAX, "queued.max.messages.kbytes": 8_192}

HeaderValue = bytes | str | None
"""The value of a header."""


class Stopped(StrEnum):
    """Why reading stopped before the beginning of the topics. LIMIT: as many records were wanted."""

    LIMIT = "limit"
    RECORDS = "records"
    BYTES = "bytes"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a reading may take: records that are wanted, records and bytes that are read, and seconds."""

    limit: int
    records: int
    size_bytes: int
    within_s: float


@dataclass(frozen=True, slots=True)
class ReadBackwards:
    """What was read.

    topics: those that exist.
    records: those that were wanted, the newest first.
    read: how many records were looked at.
    before: by partition, the offset before which reading goes on; None if the topics have nothing earlier.
    """

    topics: Collection[str]
    records: list[Message]
    read: int
    stopped: Stopped | None
    before: Mapping[TopicPartition, int] | None


@dataclass(slots=True)
class _Partition:
    """A partition that is read in steps, each of records that come before those of the step before.

    first: its oldest offset.  from_offset: the records from here on were read.
    known: those of them that were not looked at yet, in order.  coming: those of the present step.
    """

    where: TopicPartition
    first: int
    from_offset: int
    known: list[Message] = field(default_factory=list)
    coming: list[Message] = field(default_factory=list)
    step: int = 1

    @property
    def is_unknown(self) -> bool:
        """Whether its newest record that was not looked at has to be read first."""
        return not self.known and self.from_offset > self.first

    @property
    def start(self) -> int:
        """The offset at which the next step begins."""
        return max(self.first, self.from_offset - self.step)

    @property
    def before(self) -> int:
        """The offset before which reading goes on."""
        return (self.known[-1].offset() or 0) + 1 if self.known else self.from_offset

    def end_step(self) -> None:
        """Take over the records of a step, all of which have come."""
        self.known, self.coming = self.coming, []
        self.from_offset, self.step = self.start, min(2 * self.step, _STEP_MAX)


def read_backwards(
    settings: KafkaSettings,
    topics: Collection[str],
    is_wanted: Callable[[Message], bool],
    bounds: Bounds,
    before: Mapping[TopicPartition, int] | None = None,
) -> ReadBackwards:
    """Read the newest records of topics that are wanted, by their timestamps, until a bound is reached.

    before: where to go on, as an earlier reading answered; None begins at the ends.
    Where a bound comes before the newest records of all partitions are known, those that are known are taken. Then a
    later part may have newer ones.
    A topic that does not exist is left out. Raises TransportError.
    """
    reported = ClientErrors()
    more = {**settings.consumer(), **_AHEAD, "error_cb": reported}
    consumer = create_client(settings.broker, lambda: Consumer(more))
    try:
        return _Reading(consumer, settings, is_wanted, bounds).read(topics, before)
    except KafkaException as error:
        place = f"{settings.broker}: {', '.join(topics)}"
        raise as_transport_error(place, error.args[0], reported.last, "Read") from error
    finally:
        consumer.close()


def headers_of(message: Message) -> list[tuple[str, HeaderValue]] | None:
    """Return the headers of a record; None if their names are no UTF-8, as another program may write them."""
    try:
        found = message.headers()
    except UnicodeDecodeError:
        return None
    return found if isinstance(found, list) else []


def _size_bytes(message: Message) -> int:
    """Return how many bytes a record has: key, value and headers."""
    size_bytes, headers = len(message.value() or b"") + len(message.key() or b""), headers_of(message)
    if headers is None:
        return size_bytes + _UNKNOWN_BYTES
    return size_bytes + sum(len(name.encode()) + len(value or b"") for name, value in headers)


class _Reading:
    """One reading. The partitions' newest records are compared, so that the newest of all is looked at next."""

    def __init__(
        self,
        consumer: Consumer,
        settings: KafkaSettings,
        is_wanted: Callable[[Message], bool],
        bounds: Bounds,
    ) -> None:
        self._consumer, self._is_wanted, self._bounds = consumer, is_wanted, bounds
        self._deadline_s = monotonic() + bounds.within_s
        self._answer_timeout_s = settings.answer_timeout_s
        self._topics: list[str] = []
        self._records: list[Message] = []
        self._read = self._size_bytes = 0

    def read(self, topics: Collection[str], before: Mapping[TopicPartition, int] | None) -> ReadBackwards:
        wheres = self._wheres(topics)
        if before is not None:
            # Partitions that it does not name have nothing earlier.
            wheres = [each for each in wheres if each in before]
        partitions = self._partitions(wheres, before)
        if partitions is None:
            places = {each: _END if before is None else before[each] for each in wheres}
            return ReadBackwards(self._topics, [], 0, Stopped.TIME, places)
        stopped = self._look(partitions)
        if stopped is not None and not self._read:
            # The next reading would get no further than this one.
            while len(self._records) < self._bounds.limit and (known := [e for e in partitions if e.known]):
                self._take_newest(known)
        places = {each.where: each.before for each in partitions}
        is_left = any(each.known or each.is_unknown for each in partitions)
        if not is_left:
            return ReadBackwards(self._topics, self._records, self._read, None, None)
        return ReadBackwards(self._topics, self._records, self._read, stopped, places)

    @property
    def _left_s(self) -> float:
        return self._deadline_s - monotonic()

    @property
    def _timeout_s(self) -> float:
        """How long the next request may take."""
        return max(_LEAST_S, min(self._answer_timeout_s, self._left_s))

    def _wheres(self, topics: Collection[str]) -> list[TopicPartition]:
        """Return the partitions of the topics that exist."""
        wheres: list[TopicPartition] = []
        for topic in topics:
            found = self._consumer.list_topics(topic, timeout=self._timeout_s).topics[topic]
            if found.error is not None:
                if is_missing(found.error):
                    continue
                raise KafkaException(found.error)
            self._topics.append(topic)
            wheres += [TopicPartition(topic, each) for each in sorted(found.partitions)]
        return wheres

    def _partitions(
        self, wheres: Collection[TopicPartition], before: Mapping[TopicPartition, int] | None
    ) -> list[_Partition] | None:
        """Return the partitions with their bounds; None if the time is over before all are known."""
        partitions: list[_Partition] = []
        for where in wheres:
            if self._left_s <= _LEAST_S:
                return None
            try:
                first, end = self._consumer.get_watermark_offsets(Assigned(*where), timeout=self._timeout_s)
            except KafkaException:
                if self._left_s <= _LEAST_S:
                    return None
                raise
            end = end if before is None else max(first, min(end, before[where]))
            partitions.append(_Partition(where, first, end))
        return partitions

    def _look(self, partitions: Collection[_Partition]) -> Stopped | None:
        """Look at records until a bound is reached. Returns None at the beginning of all partitions."""
        while True:
            unknown = [each for each in partitions if each.is_unknown]
            while unknown:
                stopped = self._step(unknown)
                if stopped is not None:
                    return stopped
                unknown = [each for each in unknown if each.is_unknown]
            known = [each for each in partitions if each.known]
            if not known:
                return None
            self._take_newest(known)
            if len(self._records) == self._bounds.limit:
                return Stopped.LIMIT
            if self._read == self._bounds.records:
                return Stopped.RECORDS

    def _take_newest(self, partitions: Collection[_Partition]) -> None:
        """Look at the newest of the records that are known. partitions: those that have one."""
        message = max(partitions, key=lambda each: each.known[-1].timestamp()[1]).known.pop()
        self._read += 1
        if self._is_wanted(message):
            self._records.append(message)

    def _step(self, partitions: Collection[_Partition]) -> Stopped | None:
        """Read the next step of some partitions. A step that a bound interrupts is read again by the next reading."""
        waiting = {each.where: each for each in partitions}
        self._consumer.assign([Assigned(*each.where, each.start) for each in partitions])
        while waiting:
            if monotonic() >= self._deadline_s:
                return Stopped.TIME
            if self._size_bytes >= self._bounds.size_bytes:
                return Stopped.BYTES
            message = self._consumer.poll(_POLL_S)
            if message is None:
                continue
            where = TopicPartition(message.topic() or "", message.partition() or 0)
            partition = waiting.get(where)
            if partition is not None and self._has_ended(partition, message):
                partition.end_step()
                del waiting[where]
                self._consumer.incremental_unassign([Assigned(*where)])
        return None

    def _has_ended(self, partition: _Partition, message: Message) -> bool:
        """Take a message of a step. Returns whether the step has no further one."""
        error, offset = message.error(), message.offset() or 0
        if error is None:
            # Offsets of aborted or compacted records and of ends of transactions are never delivered.
            if offset < partition.from_offset:
                partition.coming.append(message)
                self._size_bytes += _size_bytes(message)
            return offset >= partition.from_offset - 1
        if error.code() == KafkaError._PARTITION_EOF:
            return True
        # librdkafka asks for the group of every consumer. None is used here, so no right on it is needed.
        if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED and not is_transient(error):
            raise KafkaException(error)
        return False
