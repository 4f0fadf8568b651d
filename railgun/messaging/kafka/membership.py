"""Makes a process a member of a group in which one member leads, and lists the members.

Kafka's own consumer groups do both. Each process is a dynamic member, and subscribes to a topic of one partition, which
carries no data. The member that is assigned the partition leads. A member that closes hands the lead over at once; if a
member dies, another one leads after its session.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import TransportRefusedError
from railgun.messaging.kafka.admin import KafkaAdmin
from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import ClientErrors, as_transport_error, create_client, is_denied
from railgun.messaging.kafka.settings import KafkaSettings

# A member that does not poll for this long leads no more. By default that is five minutes.
_POLL_MIN_MS = 10_000
_HEARTBEATS = 6  # in a session
# How long the list of members, and metadata, are waited for.
_ANSWER_S, _REACHED_S = 5.0, 2.0

_log = logging.getLogger("railgun.kafka")


class GroupMembership:
    """One member of the group. One thread uses it.

    group, topic: the names of the group, and of the topic of one partition.
    name: how the other members see this one.
    session_s: a member that is not heard for this long is gone.
    leads: whether this member leads, as of the last `poll`.
    Raises TransportError.
    """

    def __init__(self, settings: KafkaSettings, group: str, topic: str, name: str, session_s: float) -> None:
        self._group, self._name, self._session_s = group, name, session_s
        self._members = GroupMembers(settings, group)
        self._client_errors = ClientErrors()
        session_ms = round(session_s * 1000)
        configuration: dict[str, Any] = {
            **settings.consumer(),
            "client.id": name,
            "group.id": group,
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": max(1, session_ms // _HEARTBEATS),
            "max.poll.interval.ms": max(session_ms, _POLL_MIN_MS),
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "latest",
            "enable.partition.eof": False,
            "error_cb": self._client_errors,
        }
        self.leads = False
        self._consumer = create_client(topic, lambda: Consumer(configuration))
        self._consumer.subscribe(
            [topic],
            on_assign=self._setting(True),
            on_revoke=self._setting(False),
            on_lost=self._setting(False),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leads = False
        self._consumer.close()

    def poll(self, timeout_s: float) -> None:
        """Take part in the group. Has to be called again and again, or the member is shut out.

        Raises TransportRefusedError if the broker does not allow such a session, or this user in the group.
        """
        message = self._consumer.poll(timeout_s)
        error = None if message is None else message.error()
        if error is not None and error.code() == KafkaError.INVALID_SESSION_TIMEOUT:
            raise TransportRefusedError(
                self._group,
                f"cluster.session_timeout_s: the broker refuses a session of {self._session_s:g} s",
                "Set it between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms",
            )
        if error is not None and is_denied(error):
            raise as_transport_error(self._group, error, right="Read")
        if error is not None and not error.retriable() and error.code() != KafkaError._MAX_POLL_EXCEEDED:
            _log.warning("%s: %s", self._group, error)

    def members(self) -> set[str]:
        """Return the names of all members. Raises TransportError if the list lacks this member's own name."""
        names = self._members.now().names
        if self._name not in names:
            unknown = KafkaError(KafkaError.UNKNOWN_MEMBER_ID, f"{self._name} is not a member yet")
            raise as_transport_error(self._group, unknown, None)
        return names

    def _setting(self, leads: bool) -> Callable[[Any, list[KafkaTopicPartition]], None]:
        """Return a callback that sets `leads` to this when the member gets or loses the topic's partition."""

        def note(consumer: Any, partitions: list[KafkaTopicPartition]) -> None:
            if partitions:
                self.leads = leads

        return note


@dataclass(frozen=True, slots=True)
class Members:
    """The names of a group's members, and of the one that leads, if one does."""

    names: set[str]
    leader: str | None


class GroupMembers:
    """Asks for the members of a group. One thread at a time uses it."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        self._settings, self._group = settings, group
        # The client is not shared, so that its errors are those of its own connections.
        self._admin = KafkaAdmin(settings)

    def now(self) -> Members:
        """Return the members; none if there is no such group yet. Raises TransportError."""
        admin = self._reached()
        try:
            described = admin.client.describe_consumer_groups([self._group], request_timeout=_ANSWER_S)
            members = described[self._group].result().members
        except KafkaException as error:
            if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                return Members(set(), None)
            self._replace()
            raise as_transport_error(
                self._group, error.args[0], admin.client_errors.last, "Describe"
            ) from error
        leaders = [str(each.client_id) for each in members if each.assignment.topic_partitions]
        return Members({str(each.client_id) for each in members}, leaders[0] if leaders else None)

    def _reached(self) -> KafkaAdmin:
        """Return a client that the broker has just answered, and that may be asked for the group.

        A client that has met an error is replaced, because it may have lost for good a broker that was away, or only
        the connection to the coordinator of the group.
        """
        self._ask()
        if self._admin.client_errors.last is not None:
            self._replace()
            self._ask()
            self._admin.client_errors.clear()
        return self._admin

    def _ask(self) -> None:
        """Ask for metadata, and take in which errors the client has met. Raises TransportError."""
        admin = self._admin
        try:
            admin.client.list_topics(self._group, _REACHED_S)
            admin.client.poll(0)
        except KafkaException as error:
            admin.client.poll(0)
            self._replace()
            raise as_transport_error(self._group, error.args[0], admin.client_errors.last) from error

    def _replace(self) -> None:
        """Close the client, and make another one.

        If the coordinator of a group answers after the time limit of a request, as when a broker is back, librdkafka
        (2.16, issue 4605) aborts the process. A closed client gets no answer.
        """
        old = self._admin
        # The new client takes over the errors of the old one, so that each kind is logged once in an outage.
        self._admin = KafkaAdmin(self._settings, old.client_errors)
        old.client.close()
