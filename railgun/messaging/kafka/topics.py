"""Kafka's topics: which there are, making them with the settings that records need, deleting and trimming them."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from railgun.messaging.errors import (
    TopicExistsError,
    TopicMissingError,
    TopicSettingsError,
    TransportClosedError,
    TransportError,
)
from railgun.messaging.kafka.admin import KafkaAdmin, shared_admin
from railgun.messaging.kafka.errors import as_transport_error, is_fenced, is_passing
from railgun.messaging.kafka.settings import MESSAGE_LIMIT_BYTES, KafkaSettings
from railgun.messaging.transport import TopicPartition, TopicSettings

T = TypeVar("T")

_APPEARS_S = 0.02
_FENCED_S = 0.1
REFRESH_S = 10.0
_REFRESH_LIMIT_S = 1.0
_FIRST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_AFTER_LAST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
# What is said of a time after which there is none.
_NO_RECORD = -1


class KafkaTopics:
    """The number of partitions of each topic is remembered: it is fixed at creation."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._timeout_s = settings.answer_timeout_s
        self._admin: KafkaAdmin | None = shared_admin(settings)
        self.complaints = self._admin.complaints
        self._known: dict[str, int] = {}
        self._led: set[str] = set()
        self._asked_at = 0.0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Ask no more. What is being asked gets its answer."""
        self._admin = None

    @property
    def _client(self) -> AdminClient:
        admin = self._admin
        if admin is None:
            raise TransportClosedError(self._settings.broker)
        return admin.client

    def all(self, timeout_s: float | None = None) -> Mapping[str, int]:
        """Partitions by topic, asked anew. Raises TransportError."""
        place = self._settings.broker
        self._asked_at = time.monotonic()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        found = self._answered(place, lambda: self._client.list_topics(timeout=limit_s))
        self.complaints.forget()
        known = {
            name: len(topic.partitions)
            for name, topic in found.topics.items()
            if not name.startswith("__") and topic.partitions
        }
        # One whose leader is away for a moment is there all the same; it was not when it is about to be made.
        self._led = {
            name for name in known if all(each.leader >= 0 for each in found.topics[name].partitions.values())
        }
        with self._lock:
            self._known = known
        return known

    def refresh(self) -> None:
        """Notice, now and then, what other processes deleted: of that a consumer hears nothing. Whoever reads does not
        wait for it."""
        if time.monotonic() - self._asked_at > REFRESH_S:
            self._asked_at = time.monotonic()
            threading.Thread(target=self._refresh, name="kafka-topics", daemon=True).start()

    def _refresh(self) -> None:
        with contextlib.suppress(TransportError):
            self.all(_REFRESH_LIMIT_S)

    def check(self, where: TopicPartition, within_s: float | None = None) -> None:
        """Raises TopicMissingError where there is no such partition."""
        partitions = self._known.get(where.topic) or self.all(within_s).get(where.topic, 0)
        if not 0 <= where.partition < partitions:
            raise TopicMissingError(f"{self._settings.broker}: {where}")

    def bounds(self, where: TopicPartition, within_s: float | None = None) -> tuple[int, int]:
        """(first offset, offset after the last) that can be read now, as the partition's leader says. within_s: how
        long it has for each question; None: as long as an answer may take.

        Asked over the administrator's connection: the consumer's is busy with a fetch that waits for records.
        """
        start, end = self._offsets(where, (_FIRST, _AFTER_LAST), within_s)
        return start, end

    def offset_at(self, where: TopicPartition, appended_ms: int) -> int:
        """The first offset that was appended at a time or later; the end where there is none."""
        spec: OffsetSpec = OffsetSpec.for_timestamp(appended_ms)
        found, end = self._offsets(where, (spec, _AFTER_LAST))
        return end if found < 0 else found

    def _offsets(
        self, where: TopicPartition, specs: Sequence[OffsetSpec], within_s: float | None = None
    ) -> list[int]:
        """What the partition's leader says of each."""
        self.check(where, within_s)
        partition = KafkaTopicPartition(*where)
        limit_s = self._timeout_s if within_s is None else within_s
        deadline = time.monotonic() + limit_s
        while True:
            asked = [
                self._client.list_offsets(
                    {partition: spec},
                    isolation_level=IsolationLevel.READ_COMMITTED,
                    request_timeout=limit_s,
                )[partition]
                for spec in specs
            ]
            try:
                return [_said(spec, each.result().offset) for spec, each in zip(specs, asked)]
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                self.forget(where.topic)
                if not is_passing(cause) or time.monotonic() > deadline:
                    raise as_transport_error(str(where), cause, self.complaints.last) from error
                # The leader moved, or the topic was made, a moment ago; or it is gone.
                self.check(where, within_s)
                time.sleep(_APPEARS_S)

    def topic_id(self, topic: str) -> str:
        """What tells a topic from one of the same name that was deleted. Raises TransportError."""
        asked = self._client.describe_topics(TopicCollection([topic]), request_timeout=self._timeout_s)
        return str(self._answered(topic, asked[topic].result).topic_id)

    def forget(self, topic: str) -> None:
        """Ask anew when it is named next."""
        with self._lock:
            self._known.pop(topic, None)

    def create(self, topic: str, partitions: int, settings: TopicSettings) -> None:
        """Make a topic, or check that it is as wanted. Raises TopicExistsError, TopicSettingsError."""
        wanted = _configuration(settings)
        if topic not in self.all():
            asked = NewTopic(
                topic,
                num_partitions=partitions,
                replication_factor=self._settings.replication,
                config=wanted,
            )
            try:
                self._make(topic, asked)
                self._await(topic, True)
                return
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise as_transport_error(topic, cause, self.complaints.last) from error
            # Another process was first.
            self._await(topic, True)
        self._compare(topic, partitions, wanted)

    def _make(self, topic: str, asked: NewTopic) -> None:
        """Ask until there is a broker for it, as there is a moment after a start. Raises KafkaException."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                made = self._client.create_topics(
                    [asked], operation_timeout=self._timeout_s, request_timeout=self._timeout_s
                )
                made[topic].result()
                return
            except KafkaException as error:
                if not is_fenced(error.args[0]) or time.monotonic() > deadline:
                    raise
            time.sleep(_FENCED_S)

    def _compare(self, topic: str, partitions: int, wanted: Mapping[str, str]) -> None:
        existing = self._known.get(topic, 0)
        if existing != partitions:
            raise TopicExistsError(topic, existing, partitions)
        resource = ConfigResource(ResourceType.TOPIC, topic)
        asked = self._client.describe_configs([resource], request_timeout=self._timeout_s)[resource]
        found = self._answered(topic, asked.result)
        for setting, value in wanted.items():
            has = str(found[setting].value)
            if not _suits(setting, has, value):
                raise TopicSettingsError(topic, setting, has, value)

    def delete(self, topic: str) -> None:
        """Remove a topic; nothing happens where there is none."""
        try:
            gone = self._client.delete_topics(
                [topic], operation_timeout=self._timeout_s, request_timeout=self._timeout_s
            )
            gone[topic].result()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise as_transport_error(topic, cause, self.complaints.last) from error
        self._await(topic, False)

    def trim(self, where: TopicPartition, before_offset: int) -> None:
        """Forget records. Raises ValueError where the offset is beyond the end."""
        asked = KafkaTopicPartition(where.topic, where.partition, before_offset)
        [answer] = self._client.delete_records([asked], request_timeout=self._timeout_s).values()
        try:
            answer.result()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() == KafkaError.OFFSET_OUT_OF_RANGE:
                raise ValueError(f"{where}: {before_offset} is beyond the end") from error
            raise as_transport_error(str(where), cause, self.complaints.last) from error

    def _await(self, topic: str, is_there: bool) -> None:
        """Return when the broker shows a change that it has agreed to."""
        deadline = time.monotonic() + self._timeout_s
        while (topic in self.all()) is not is_there or (is_there and topic not in self._led):
            if time.monotonic() > deadline:
                late = KafkaError(KafkaError._TIMED_OUT)
                raise as_transport_error(topic, late, self.complaints.last)
            time.sleep(_APPEARS_S)

    def _answered(self, place: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except KafkaException as error:
            # What the client has to say of its connections comes when it is asked for.
            self._client.poll(0)
            raise as_transport_error(place, error.args[0], self.complaints.last) from error


def _said(spec: OffsetSpec, offset: int) -> int:
    """An offset as the leader said it. Raises KafkaException where it said none: of a broker that had just been killed
    and started again, librdkafka (2.16) was seen to give that as an answer without an error.
    """
    if offset < 0 and (spec in (_FIRST, _AFTER_LAST) or offset != _NO_RECORD):
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return offset


def _configuration(settings: TopicSettings) -> dict[str, str]:
    """As Kafka calls what a topic is to be like."""
    forever = settings.retention_ms is None
    policies = ["compact"] if settings.is_compacted else []
    if not settings.is_compacted or not forever:
        policies.append("delete")
    return {
        "cleanup.policy": ",".join(policies),
        "message.timestamp.type": "LogAppendTime",
        "retention.ms": "-1" if settings.retention_ms is None else str(settings.retention_ms),
        "retention.bytes": "-1",
        "max.message.bytes": str(MESSAGE_LIMIT_BYTES),
    }


def _suits(setting: str, has: str, wanted: str) -> bool:
    if setting == "max.message.bytes":
        return int(has) >= int(wanted)
    if setting == "cleanup.policy":
        return set(has.replace(" ", "").split(",")) == set(wanted.split(","))
    return has == wanted
