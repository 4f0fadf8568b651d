"""Reading a topic as a member of a consumer group, which shares the topic's partitions among its members."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka_errors import Complaints, as_transport_error, is_passing, made
from railgun.messaging.kafka_settings import KafkaSettings

_SESSION_MS, _HEARTBEAT_MS = 10_000, 1_000
_REST_S = 0.05
_LATE_S = 10.0

_log = logging.getLogger("railgun.kafka")


class Owner(Protocol):
    """Told, in the thread that polls, which partitions this member has."""

    def assigned(self, partitions: list[int]) -> None:
        """Records of these will come."""

    def revoked(self, partitions: list[int]) -> None:
        """When this returns, another member may have them."""

    def lost(self, partitions: list[int]) -> None:
        """Another member may have them already."""

    def committed(self, positions: Mapping[int, int]) -> None:
        """The group goes on there."""


class GroupReading:
    """One member. Every method belongs to one thread. Begins at what the group committed, else at the oldest record.

    session_s: after so long without a sign of life the group gives its partitions to others.
    metadata: who this member is, for a producer's transaction, as of the last rebalance that it heard the end of; None
    during one.  Any thread may look at it.
    """

    def __init__(self, settings: KafkaSettings, group: str, topic: str, owner: Owner) -> None:
        self._topic, self._owner = topic, owner
        self._complaints = Complaints()
        configuration: dict[str, Any] = {
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            **settings.consumer(),
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": False,
            "on_commit": self._on_commit,
            "error_cb": self._complaints,
        }
        self.session_s = float(configuration["session.timeout.ms"]) / 1000
        self._consumer = made(topic, lambda: Consumer(configuration))
        self._held: list[Message] = []
        self._is_resting, self._is_member = False, False
        self.metadata: Any = None
        self._consumer.subscribe(
            [topic],
            on_assign=self._told(owner.assigned, is_member=True),
            on_revoke=self._told(owner.revoked, is_member=False),
            on_lost=self._told(owner.lost, is_member=False),
        )

    def poll(self, timeout_s: float, max_records: int) -> list[Message]:
        """What has come. Raises TransportError for what does not pass by itself."""
        if self._is_resting:
            self._is_resting = False
            self._consumer.resume(self._consumer.assignment())
        if self._held:
            messages, self._held = self._held, []
            return messages
        first = self._consumer.poll(timeout_s)
        if self.metadata is None and self._is_member:
            self.metadata = self._consumer.consumer_group_metadata()
        if first is None:
            return []
        # Asked for several with a timeout, it would wait for all of them.
        return self._good([first, *self._consumer.consume(max_records - 1, 0)])

    def rest(self) -> None:
        """Stay a member without reading on, for a moment."""
        self._is_resting = True
        self._consumer.pause(self._consumer.assignment())
        message = self._consumer.poll(_REST_S)
        if message is not None:
            # Of a partition that was assigned just now.
            self._held += self._good([message])

    def commit(self, positions: Mapping[int, int], *, wait: bool = False) -> None:
        """Have the group go on there. With `wait` it is so on return, or TransportError says why not: as where this
        member is none any more."""
        wanted = [KafkaTopicPartition(self._topic, each, offset) for each, offset in positions.items()]
        try:
            if not wait:
                self._consumer.commit(offsets=wanted, asynchronous=True)
                return
            found = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            raise as_transport_error(self._topic, error.args[0], self._complaints.last) from error
        for each in found or ():
            if each.error is not None:
                raise as_transport_error(self._topic, each.error, self._complaints.last)

    def position(self, partition: int, offset: int) -> KafkaTopicPartition:
        """A position as a transaction wants it."""
        return KafkaTopicPartition(self._topic, partition, offset)

    def end(self, partition: int) -> int:
        """Where the partition ended when it was fetched last; −1 where that is not known. For the thread that polls."""
        known = self._consumer.get_watermark_offsets(KafkaTopicPartition(self._topic, partition), cached=True)
        return -1 if known is None else known[1]

    def close(self) -> None:
        """Leave the group; what is still had is revoked first."""
        self._consumer.close()

    def _good(self, messages: list[Message]) -> list[Message]:
        errors = [error for error in map(Message.error, messages) if error is not None]
        if not errors:
            return messages
        for error in errors:
            raised = as_transport_error(self._topic, error, self._complaints.last)
            if not is_passing(error):
                raise raised
            _log.warning("%s: %s", self._topic, raised)
        return [each for each in messages if each.error() is None]

    def _told(
        self, tell: Callable[[list[int]], None], *, is_member: bool
    ) -> Callable[[Consumer, list[KafkaTopicPartition]], None]:
        def on_change(consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
            self.metadata, self._is_member = None, is_member
            tell([each.partition for each in partitions])

        return on_change

    def _on_commit(self, error: KafkaError | None, partitions: list[KafkaTopicPartition]) -> None:
        if error is None:
            self._owner.committed({each.partition: each.offset for each in partitions if each.error is None})


def leave(member: GroupReading) -> None:
    """Let go of a member whatever became of the broker."""
    try:
        member.close()
    except (KafkaException, TransportError) as error:
        _log.warning("the group could not be left in order: %s", error)
