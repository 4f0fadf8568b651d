"""Implements Transport over a Kafka cluster, through librdkafka."""

import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from railgun.messaging.errors import TransportClosedError, TransportError, TransportReadOnlyError
from railgun.messaging.kafka.consumer import KafkaConsumer
from railgun.messaging.kafka.producer import KafkaProducer
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import Described, KafkaTopics
from railgun.messaging.transport import (
    FOREVER,
    Entry,
    Fetched,
    TopicPartition,
    TopicSettings,
)
from railgun.wire.records import Records


class KafkaTransport:
    """A Transport over a Kafka cluster, with all of its topics except Kafka's internal ones.

    An acknowledged record is on all in-sync replicas. Its durability depends on the cluster's settings. The records of
    a submission that failed with TransportUnavailableError may have been written all the same.

    It connects when it is made. Raises TransportError if no broker answers.

    is_read_only: it writes no records. A user who may write nowhere needs that: an idempotent producer asks the broker
        for an id as soon as it is made, which is refused.
    """

    def __init__(self, settings: KafkaSettings, *, is_read_only: bool = False) -> None:
        self.settings = settings
        self._closed = False
        self._topics = KafkaTopics(settings)
        self._topics.all()
        self._consumer = KafkaConsumer(settings, self._topics)
        # For reads at another offset of a partition that `fetch` is reading; made when first needed.
        self._second_consumer: KafkaConsumer | None = None
        self._second_consumer_lock = threading.Lock()
        self._producer = None if is_read_only else KafkaProducer(settings, self._topics)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def create_topic(self, topic: str, partitions: int, settings: TopicSettings = FOREVER) -> None:
        self._check_open()
        if partitions < 1:
            raise ValueError(f"topic {topic[:80]!r} with {partitions} partitions")
        self._topics.create(topic, partitions, settings)

    def delete_topic(self, topic: str) -> None:
        self._check_open()
        for consumer in self._consumers:
            consumer.drop_topic(topic)
        self._topics.delete(topic)

    def topics(self) -> Mapping[str, int]:
        self._check_open()
        return self._topics.all()

    def topic_id(self, topic: str) -> str:
        """Return Kafka's id of a topic. A topic that is deleted and made again under its name has another one."""
        self._check_open()
        return self._topics.topic_id(topic)

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        self._check_open()
        return self._topics.topic_ids(topics)

    def described(
        self, topics: Collection[str], within_s: float | None = None
    ) -> Mapping[str, Described | TransportError]:
        """Return those of the topics that exist, with one request; for a topic that this user may not see, why.

        within_s: the time limit; None: `answer_timeout_s`.
        """
        self._check_open()
        return self._topics.described(topics, within_s)

    def committed(self, group: str) -> Mapping[TopicPartition, int]:
        """Return the positions that a group has committed."""
        self._check_open()
        return self._topics.committed(group)

    def brokers(self) -> int:
        """Return how many brokers of the cluster live."""
        self._check_open()
        return self._topics.brokers()

    def weakness(self, topic: str) -> str | None:
        """Return why the loss of one broker could lose acknowledged records of a topic; None if it could not."""
        self._check_open()
        return self._topics.weakness(topic)

    def bounds_of(
        self, wheres: Sequence[TopicPartition], within_s: float | None = None
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return (start, end) of many partitions, asked for together. Those whose leader does not say are left out.

        within_s: how long leaders have to answer; None: `answer_timeout_s`.
        """
        self._check_open()
        return self._topics.bounds_of(wheres, within_s)

    def offsets_at(
        self, wheres: Sequence[TopicPartition], appended_ms: int, within_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        """Return `offset_at` of many partitions, in the same way as `bounds_of`."""
        self._check_open()
        return self._topics.offsets_at(wheres, appended_ms, within_s)

    def retentions(self, topics: Sequence[str]) -> Mapping[str, int | None]:
        """Return how long the broker keeps records of topics, in ms; None: for ever. Topics that it does not report are
        left out.
        """
        self._check_open()
        return self._topics.retentions(topics)

    def set_retention(self, topic: str, retention_ms: int | None) -> None:
        """Have the broker keep the records of a topic for so long, in ms; None: for ever."""
        self._check_open()
        self._topics.set_retention(topic, retention_ms)

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        self._check_open()
        if self._producer is None:
            raise TransportReadOnlyError(self.settings.broker)
        return self._producer.submit(entries)

    def append(self, topic: str, partition: int, records: Sequence[bytes]) -> int:
        return self.submit((Entry(TopicPartition(topic, partition), Records.of(records)),)).result()[0]

    def start_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        self._check_open()
        return self._topics.bounds(TopicPartition(topic, partition), within_s)[0]

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        self._check_open()
        return self._topics.bounds(TopicPartition(topic, partition), within_s)[1]

    def offset_at(self, topic: str, partition: int, appended_ms: int) -> int:
        """Return the offset of the first record that was appended at a time (ms since 1970) or later; else the end."""
        self._check_open()
        return self._topics.offset_at(TopicPartition(topic, partition), appended_ms)

    def known_end(self, topic: str, partition: int) -> int:
        self._check_open()
        return self._consumer.known_end(TopicPartition(topic, partition))

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        where = TopicPartition(topic, partition)
        if self._consumer.followed_at(where) in (None, from_offset):
            return self._consumer.read(where, from_offset, max_records, max_bytes)
        # If such reads used the first consumer, each would drop what was fetched ahead for the thread that follows.
        second = self._opened_second_consumer()
        found = second.read(where, from_offset, max_records, max_bytes)
        followed_at = self._consumer.followed_at(where)
        if followed_at is None or found.next_offset >= followed_at:
            second.drop(where)
        return found

    def _opened_second_consumer(self) -> KafkaConsumer:
        with self._second_consumer_lock:
            self._check_open()
            if self._second_consumer is None:
                self._second_consumer = KafkaConsumer(self.settings, self._topics)
            return self._second_consumer

    @property
    def _consumers(self) -> list[KafkaConsumer]:
        return [each for each in (self._consumer, self._second_consumer) if each is not None]

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        return self._consumer.fetch(positions, max_records, max_bytes, timeout_s)

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        return self._consumer.wait(positions, timeout_s)

    def release(self, topic: str, partition: int) -> None:
        self._check_open()
        for consumer in self._consumers:
            consumer.drop(TopicPartition(topic, partition))

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        self._check_open()
        where = TopicPartition(topic, partition)
        self._topics.check(where)
        self._topics.trim(where, before_offset)
        for consumer in self._consumers:
            consumer.trimmed(where, before_offset)

    def sync(self) -> None:
        self._check_open()

    def release_second_reader(self, topic: str, partition: int) -> None:
        self._check_open()
        if self._second_consumer is not None:
            self._second_consumer.drop(TopicPartition(topic, partition))

    @property
    def unconfirmed(self) -> int:
        """The number of submitted records that are not acknowledged. It is not known whether the broker has them."""
        return 0 if self._producer is None else self._producer.unconfirmed

    def close(self, within_s: float | None = None) -> None:
        """Close as `Transport.close` does. within_s: the time limit for submitted records; None: `answer_timeout_s`."""
        if self._closed:
            return
        with self._second_consumer_lock:
            self._closed = True
        if self._producer is not None:
            self._producer.close(self.settings.answer_timeout_s if within_s is None else within_s)
        for consumer in self._consumers:
            consumer.close()
        self._topics.close()

    def _check_open(self) -> None:
        if self._closed:
            raise TransportClosedError(self.settings.broker)
