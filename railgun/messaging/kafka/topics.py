"""Lists, creates, deletes and trims Kafka's topics, and asks for offsets, through the admin client.

`KafkaTransport` calls it.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._topic import TopicDescription
from confluent_kafka.cimpl import NewTopic

from railgun.messaging.errors import (
    TopicExistsError,
    TopicMissingError,
    TopicSettingsError,
    TransportClosedError,
    TransportError,
)
from railgun.messaging.kafka import topic_settings
from railgun.messaging.kafka.admin import KafkaAdmin, shared_admin
from railgun.messaging.kafka.errors import as_transport_error, is_denied, is_fenced, is_transient
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.transport import TopicPartition, TopicSettings

T = TypeVar("T")

_log = logging.getLogger("railgun.kafka")

# Pauses between retries: while metadata spreads in the cluster, and while all brokers are fenced.
_METADATA_RETRY_S, _FENCED_RETRY_S = 0.02, 0.1
# How often `refresh` asks, and how long the broker may take to answer.
REFRESH_S = 10.0
_REFRESH_LIMIT_S = 1.0
_FIRST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_AFTER_LAST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
# The id of a topic of a broker that gives none.
_NO_ID = "A" * 22
# The offset that a leader returns for a time after its newest record.
_NO_RECORD = -1


class Described(NamedTuple):
    """A topic that exists. id: Kafka's id of it.  partitions: how many it has."""

    id: str
    partitions: int


class KafkaTopics:
    """The topics of a cluster. Caches their numbers of partitions, which are fixed at creation.

    Threads: any may call every method. All methods that ask a broker raise TransportError.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._timeout_s = settings.answer_timeout_s
        self._admin: KafkaAdmin | None = shared_admin(settings)
        self.client_errors = self._admin.client_errors
        # The cache: the number of partitions by topic, and the topics whose partitions all have leaders.
        self._partitions: dict[str, int] = {}
        self._with_leaders: set[str] = set()
        self._listed_at_s = 0.0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Release the admin client. Requests in flight still get their answers."""
        self._admin = None

    @property
    def _client(self) -> AdminClient:
        admin = self._admin
        if admin is None:
            raise TransportClosedError(self._settings.broker)
        return admin.client

    def all(self, timeout_s: float | None = None) -> Mapping[str, int]:
        """Ask for all topics; returns the number of partitions by topic. timeout_s: None: `answer_timeout_s`."""
        place = self._settings.broker
        self._listed_at_s = time.monotonic()
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        found = self._result(place, lambda: self._client.list_topics(timeout=limit_s))
        self.client_errors.clear()
        partitions = {
            name: len(topic.partitions)
            for name, topic in found.topics.items()
            if not name.startswith("__") and topic.partitions
        }
        # A topic exists even while a leader is away. A new topic is ready only once all its partitions have leaders.
        self._with_leaders = {
            name
            for name in partitions
            if all(each.leader >= 0 for each in found.topics[name].partitions.values())
        }
        with self._lock:
            self._partitions = partitions
        return partitions

    def refresh(self) -> None:
        """Renew the cache in the background, if it is older than REFRESH_S.

        A consumer is not told of topics that other processes delete, so it calls this now and then.
        """
        if time.monotonic() - self._listed_at_s > REFRESH_S:
            self._listed_at_s = time.monotonic()
            threading.Thread(target=self._refresh, name="kafka-topics", daemon=True).start()

    def _refresh(self) -> None:
        with contextlib.suppress(TransportError):
            self.all(_REFRESH_LIMIT_S)

    def check(self, where: TopicPartition, within_s: float | None = None) -> None:
        """Raise TopicMissingError if there is no such partition. within_s: the time limit of a request."""
        partitions = self._partitions.get(where.topic) or self.all(within_s).get(where.topic, 0)
        if not 0 <= where.partition < partitions:
            raise TopicMissingError(f"{self._settings.broker}: {where}")

    def bounds(self, where: TopicPartition, within_s: float | None = None) -> tuple[int, int]:
        """Ask the partition's leader for (the first readable offset, the offset after the last readable one).

        It is asked over the admin client's connection, as the consumer's is busy with a fetch that waits for records.

        within_s: the time limit of each request; None: `answer_timeout_s`.
        """
        start, end = self._offsets(where, (_FIRST, _AFTER_LAST), within_s)
        return start, end

    def bounds_of(
        self, wheres: Sequence[TopicPartition], within_s: float | None = None
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return `bounds` of many partitions, asked for together. Those whose leader does not say are left out.

        within_s: how long leaders have to answer; None: `answer_timeout_s`.
        """
        found = self._offsets_of(wheres, (_FIRST, _AFTER_LAST), within_s)
        return {where: (start, end) for where, (start, end) in found.items()}

    def offsets_at(
        self, wheres: Sequence[TopicPartition], appended_ms: int, within_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return `offset_at` of many partitions, in the same way as `bounds_of`."""
        found = self._offsets_of(wheres, (OffsetSpec.for_timestamp(appended_ms), _AFTER_LAST), within_s)
        return {where: end if offset < 0 else offset for where, (offset, end) in found.items()}

    def _offsets_of(
        self, wheres: Sequence[TopicPartition], specs: Sequence[OffsetSpec], within_s: float | None
    ) -> dict[TopicPartition, list[int]]:
        partitions = {where: KafkaTopicPartition(*where) for where in wheres}
        if not partitions:
            return {}
        answers = self._result(
            self._settings.broker,
            lambda: [
                self._client.list_offsets(
                    dict.fromkeys(partitions.values(), spec),
                    isolation_level=IsolationLevel.READ_COMMITTED,
                    request_timeout=self._timeout_s if within_s is None else within_s,
                )
                for spec in specs
            ],
        )
        found = {}
        for where, partition in partitions.items():
            with contextlib.suppress(KafkaException):
                found[where] = [
                    _checked(spec, each[partition].result().offset) for spec, each in zip(specs, answers)
                ]
        return found

    def retentions(self, topics: Sequence[str]) -> dict[str, int | None]:
        """Return how long the broker keeps records of topics, in ms; None: for ever. Topics that it does not report are
        left out.
        """
        resources = {topic: ConfigResource(ResourceType.TOPIC, topic) for topic in topics}
        if not resources:
            return {}
        answers = self._result(
            self._settings.broker,
            lambda: self._client.describe_configs(list(resources.values()), request_timeout=self._timeout_s),
        )
        found = {}
        for topic, resource in resources.items():
            with contextlib.suppress(KafkaException):
                found[topic] = topic_settings.retention_ms(answers[resource].result())
        return found

    def offset_at(self, where: TopicPartition, appended_ms: int) -> int:
        """Return the first offset that was appended at a time (ms since 1970) or later; the end if there is none."""
        spec: OffsetSpec = OffsetSpec.for_timestamp(appended_ms)
        found, end = self._offsets(where, (spec, _AFTER_LAST))
        return end if found < 0 else found

    def _offsets(
        self, where: TopicPartition, specs: Sequence[OffsetSpec], within_s: float | None = None
    ) -> list[int]:
        """Ask the partition's leader for offsets, until it answers or the time is over."""
        self.check(where, within_s)
        partition = KafkaTopicPartition(*where)
        limit_s = self._timeout_s if within_s is None else within_s
        deadline = time.monotonic() + limit_s
        while True:
            answers = [
                self._client.list_offsets(
                    {partition: spec},
                    isolation_level=IsolationLevel.READ_COMMITTED,
                    request_timeout=limit_s,
                )[partition]
                for spec in specs
            ]
            try:
                return [_checked(spec, each.result().offset) for spec, each in zip(specs, answers)]
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                self.forget(where.topic)
                if not is_transient(cause) or time.monotonic() > deadline:
                    raise as_transport_error(
                        str(where), cause, self.client_errors.last, "Describe"
                    ) from error
                # The leader has moved, the topic was just created, or it was deleted, which `check` raises.
                self.check(where, within_s)
                time.sleep(_METADATA_RETRY_S)

    def topic_id(self, topic: str) -> str:
        """Return Kafka's id of a topic. A topic that is deleted and made again under its name has another one."""
        return str(self._described(topic).topic_id)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Return the ids of those of the topics that exist, with one request. An id is empty if the broker has none."""
        if not topics:
            return {}
        answers = self._client.describe_topics(TopicCollection(list(topics)), request_timeout=self._timeout_s)
        found: dict[str, str] = {}
        for topic, answer in answers.items():
            try:
                topic_id = str(answer.result().topic_id)
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                self._client.poll(0)
                raise as_transport_error(topic, cause, self.client_errors.last, "Describe") from error
            found[topic] = "" if topic_id == _NO_ID else topic_id
        return found

    def described(
        self, topics: Collection[str], within_s: float | None = None
    ) -> dict[str, Described | TransportError]:
        """Return those of the topics that exist, with one request; for a topic that this user may not see, why.

        The right that the reason names is Read, which includes Describe: they are asked for to be read.
        within_s: the time limit; None: `answer_timeout_s`.
        """
        if not topics:
            return {}
        limit_s = self._timeout_s if within_s is None else within_s
        answers = self._client.describe_topics(TopicCollection(list(topics)), request_timeout=limit_s)
        found: dict[str, Described | TransportError] = {}
        for topic, answer in answers.items():
            try:
                description: TopicDescription = answer.result()
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                self._client.poll(0)
                raised = as_transport_error(topic, cause, self.client_errors.last, "Read")
                if not is_denied(cause):
                    raise raised from error
                found[topic] = raised
                continue
            found[topic] = Described(str(description.topic_id), len(description.partitions))
        return found

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the positions that a group has committed."""
        wanted = ConsumerGroupTopicPartitions(group)
        # Closed before the coordinator can answer too late: that would abort the process (see `GroupMembers`).
        own = KafkaAdmin(self._settings, self.client_errors)
        try:
            answer = own.client.list_consumer_group_offsets([wanted], request_timeout=self._timeout_s)[group]
            found: ConsumerGroupTopicPartitions = self._result(group, answer.result, "Describe", own.client)
        finally:
            own.client.close()
        return {
            TopicPartition(each.topic, each.partition): each.offset
            for each in found.topic_partitions or ()
            if each.offset >= 0
        }

    def forget(self, topic: str) -> None:
        """Remove a topic from the cache, so that the next `check` asks for it."""
        with self._lock:
            self._partitions.pop(topic, None)

    def create(self, topic: str, partitions: int, settings: TopicSettings) -> None:
        """Create a topic. If it exists, compare it. Raises TopicExistsError, TopicSettingsError."""
        required, preferred = topic_settings.required(settings), topic_settings.preferred(settings)
        if topic not in self.all():
            new_topic = NewTopic(
                topic,
                num_partitions=partitions,
                replication_factor=self._settings.replication,
                config={**required, **preferred},
            )
            try:
                self._change(
                    topic,
                    lambda: self._client.create_topics(
                        [new_topic], operation_timeout=self._timeout_s, request_timeout=self._timeout_s
                    ),
                )
                self._await(topic, exists=True)
                # The broker may have decided on the replication.
                self._alter(topic, topic_settings.settings_of_new(self._replicas(topic)))
                return
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if cause.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise as_transport_error(topic, cause, self.client_errors.last, "Create") from error
            # Another process has created it meanwhile.
            self._await(topic, exists=True)
        found = self._compare(topic, partitions, required)
        self._alter(topic, {name: value for name, value in preferred.items() if found[name] != value})

    def _change(self, topic: str, request: Callable[[], Mapping[str, Future[None]]]) -> None:
        """Have the controller create or delete a topic. Raises KafkaException.

        Just after a broker's start all brokers may be fenced, and metadata then shows no controller. A request that is
        made meanwhile waits until its time is over: the client does not look for a controller that appears later.
        """
        deadline = time.monotonic() + self._timeout_s
        while True:
            if self._client.list_topics(timeout=self._timeout_s).controller_id >= 0:
                try:
                    request()[topic].result()
                    return
                except KafkaException as error:
                    if not is_fenced(error.args[0]) or time.monotonic() > deadline:
                        raise
            elif time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "the brokers have no controller"))
            time.sleep(_FENCED_RETRY_S)

    def _compare(self, topic: str, partitions: int, required: Mapping[str, str]) -> Mapping[str, str]:
        """Return the settings of a topic. Raises TopicExistsError, TopicSettingsError."""
        existing = self._partitions.get(topic, 0)
        if existing != partitions:
            raise TopicExistsError(topic, existing, partitions)
        found = self._settings_of(topic)
        for setting, value in required.items():
            if not topic_settings.suffices(setting, found[setting], value):
                raise TopicSettingsError(topic, setting, found[setting], value)
        return found

    def _settings_of(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        answer = self._client.describe_configs([resource], request_timeout=self._timeout_s)[resource]
        return {
            name: str(entry.value)
            for name, entry in self._result(topic, answer.result, "DescribeConfigs").items()
        }

    def _alter(self, topic: str, settings: Mapping[str, str]) -> None:
        """Change settings of a topic. If that fails, a warning is logged: no result depends on these settings."""
        try:
            self._set(topic, settings)
        except TransportError as error:
            wanted = ", ".join(f"{name}={value}" for name, value in settings.items())
            _log.warning(
                "topic %s: set %s on the broker; it could not be set from here: %s", topic, wanted, error
            )

    def set_retention(self, topic: str, retention_ms: int | None) -> None:
        """Have the broker keep the records of a topic for so long; None: for ever."""
        self._set(topic, topic_settings.retention(retention_ms))

    def _set(self, topic: str, settings: Mapping[str, str]) -> None:
        if not settings:
            return
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        answer = self._client.incremental_alter_configs([resource], request_timeout=self._timeout_s)[resource]
        self._result(topic, answer.result, "AlterConfigs")

    def _replicas(self, topic: str) -> int:
        """Return the number of replicas of a topic's partitions; the least one if they differ."""
        return min(len(each.replicas) for each in self._described(topic).partitions)

    def _described(self, topic: str) -> TopicDescription:
        answers = self._client.describe_topics(TopicCollection([topic]), request_timeout=self._timeout_s)
        described: TopicDescription = self._result(topic, answers[topic].result, "Describe")
        return described

    def brokers(self) -> int:
        """Return how many brokers of the cluster live."""
        place = self._settings.broker
        return len(self._result(place, lambda: self._client.list_topics(timeout=self._timeout_s)).brokers)

    def weakness(self, topic: str) -> str | None:
        """Return why the loss of one broker could lose acknowledged records of a topic; None if it could not."""
        return topic_settings.weakness(self._replicas(topic), self._settings_of(topic))

    def delete(self, topic: str) -> None:
        """Remove a topic, if it exists."""
        try:
            self._change(
                topic,
                lambda: self._client.delete_topics(
                    [topic], operation_timeout=self._timeout_s, request_timeout=self._timeout_s
                ),
            )
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise as_transport_error(topic, cause, self.client_errors.last, "Delete") from error
        self._await(topic, exists=False)

    def trim(self, where: TopicPartition, before_offset: int) -> None:
        """Delete the records before an offset. Raises ValueError if the offset is beyond the end."""
        position = KafkaTopicPartition(where.topic, where.partition, before_offset)
        [answer] = self._client.delete_records([position], request_timeout=self._timeout_s).values()
        try:
            answer.result()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() == KafkaError.OFFSET_OUT_OF_RANGE:
                raise ValueError(f"{where}: {before_offset} is beyond the end") from error
            raise as_transport_error(str(where), cause, self.client_errors.last, "Delete") from error

    def _await(self, topic: str, *, exists: bool) -> None:
        """Return when the cluster's metadata shows that a topic was created, with its leaders, or deleted."""
        deadline = time.monotonic() + self._timeout_s
        while (topic in self.all()) is not exists or (exists and topic not in self._with_leaders):
            if time.monotonic() > deadline:
                late = KafkaError(KafkaError._TIMED_OUT)
                raise as_transport_error(topic, late, self.client_errors.last)
            time.sleep(_METADATA_RETRY_S)

    def _result(
        self, place: str, request: Callable[[], T], right: str = "", client: AdminClient | None = None
    ) -> T:
        """Return the result of a request. Raises TransportError.

        right: what the request needs on the broker.  client: which was asked, if it is not the shared one.
        """
        try:
            return request()
        except KafkaException as error:
            # An admin client reports errors of its connections only in `poll`.
            (client or self._client).poll(0)
            raise as_transport_error(place, error.args[0], self.client_errors.last, right) from error


def _checked(spec: OffsetSpec, offset: int) -> int:
    """Return an offset from a leader's answer. Raises KafkaException if the answer has none.

    librdkafka (2.16) was seen to return such an answer, without an error, from a broker that had just been killed and
    started again.
    """
    if offset < 0 and (spec in (_FIRST, _AFTER_LAST) or offset != _NO_RECORD):
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return offset
