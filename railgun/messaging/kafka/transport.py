"""Kafka as a Transport, by librdkafka."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from railgun.messaging.errors import TransportClosedError
from railgun.messaging.kafka.producer import KafkaProducer
from railgun.messaging.kafka.reading import KafkaReading
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.topics import KafkaTopics
from railgun.messaging.transport import (
    FOREVER,
    Entry,
    Fetched,
    TopicPartition,
    TopicSettings,
)
from railgun.wire.encode import Records


class KafkaTransport:
    """A Transport over a Kafka cluster. Its topics are all of the cluster's but Kafka's own.

    An acknowledged record is with all replicas in sync; what that survives is the cluster's affair. A submission
    that fails with TransportUnavailableError may be there nevertheless. Raises TransportError where no broker answers.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self.settings = settings
        self._closed = False
        self._topics = KafkaTopics(settings)
        self._topics.all()
        self._reading = KafkaReading(settings, self._topics)
        self._beside: KafkaReading | None = None
        self._making_beside = threading.Lock()
        self._producer = KafkaProducer(settings, self._topics)

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
        for reading in self._readings:
            reading.drop_topic(topic)
        self._topics.delete(topic)

    def topics(self) -> Mapping[str, int]:
        self._check_open()
        return self._topics.all()

    def topic_id(self, topic: str) -> str:
        """What tells a topic from one of the same name that was deleted."""
        self._check_open()
        return self._topics.topic_id(topic)

    def submit(self, entries: Sequence[Entry]) -> Future[list[int]]:
        self._check_open()
        return self._producer.submit(entries)

    def append(self, topic: str, partition: int, records: Sequence[bytes] | Records) -> int:
        return self.submit((Entry(TopicPartition(topic, partition), records),)).result()[0]

    def start_offset(self, topic: str, partition: int) -> int:
        self._check_open()
        return self._topics.bounds(TopicPartition(topic, partition))[0]

    def end_offset(self, topic: str, partition: int, within_s: float | None = None) -> int:
        """within_s: how long the broker has for each question; None: as long as for any other."""
        self._check_open()
        return self._topics.bounds(TopicPartition(topic, partition), within_s)[1]

    def offset_at(self, topic: str, partition: int, appended_ms: int) -> int:
        """The first offset whose record the broker took at a time (ms since 1970) or later; the end where there is
        none."""
        self._check_open()
        return self._topics.offset_at(TopicPartition(topic, partition), appended_ms)

    def known_end(self, topic: str, partition: int) -> int:
        self._check_open()
        return self._reading.known_end(TopicPartition(topic, partition))

    def read(self, topic: str, partition: int, from_offset: int, max_records: int, max_bytes: int) -> Fetched:
        where = TopicPartition(topic, partition)
        if self._reading.followed_at(where) in (None, from_offset):
            return self._reading.read(where, from_offset, max_records, max_bytes)
        # Whoever follows the partition is not to lose what has come and wait for it again, time after time.
        beside = self._reading_beside()
        found = beside.read(where, from_offset, max_records, max_bytes)
        followed_at = self._reading.followed_at(where)
        if followed_at is None or found.next_offset >= followed_at:
            beside.drop(where)
        return found

    def _reading_beside(self) -> KafkaReading:
        """With a consumer of its own, made when it is first wanted."""
        with self._making_beside:
            self._check_open()
            if self._beside is None:
                self._beside = KafkaReading(self.settings, self._topics)
            return self._beside

    @property
    def _readings(self) -> list[KafkaReading]:
        return [self._reading] if self._beside is None else [self._reading, self._beside]

    def fetch(
        self, positions: Mapping[TopicPartition, int], max_records: int, max_bytes: int, timeout_s: float
    ) -> list[Fetched]:
        return self._reading.fetch(positions, max_records, max_bytes, timeout_s)

    def wait(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> bool:
        return self._reading.wait(positions, timeout_s)

    def release(self, topic: str, partition: int) -> None:
        self._check_open()
        for reading in self._readings:
            reading.drop(TopicPartition(topic, partition))

    def trim(self, topic: str, partition: int, before_offset: int) -> None:
        self._check_open()
        where = TopicPartition(topic, partition)
        self._topics.check(where)
        self._topics.trim(where, before_offset)
        for reading in self._readings:
            reading.trimmed(where, before_offset)

    def sync(self) -> None:
        self._check_open()

    def release_beside(self, topic: str, partition: int) -> None:
        self._check_open()
        if self._beside is not None:
            self._beside.drop(TopicPartition(topic, partition))

    @property
    def unconfirmed(self) -> int:
        """How many records were submitted of which it is not known whether the broker has them."""
        return self._producer.unconfirmed

    def close(self, within_s: float | None = None) -> None:
        """within_s: how long what was submitted may take; None: as long as an answer may."""
        if self._closed:
            return
        with self._making_beside:
            self._closed = True
        self._producer.close(self.settings.answer_timeout_s if within_s is None else within_s)
        for reading in self._readings:
            reading.close()
        self._topics.close()

    def _check_open(self) -> None:
        if self._closed:
            raise TransportClosedError(self.settings.broker)
