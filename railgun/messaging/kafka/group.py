"""Reads topics as a member of a consumer group, which divides the topics' partitions among its members.

Front-ends read input topics by it.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from random import sample
from time import monotonic
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import ClientErrors, as_transport_error, create_client, is_transient
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.transport import TopicPartition

_SESSION_MS, _HEARTBEAT_MS = 10_000, 1_000
_PAUSE_S = 0.05
# How soon a member sees that a topic has more partitions, or fewer. librdkafka's own is five minutes.
_METADATA_MS = 10_000
# The shortest and the longest time for the broker to answer with committed positions. Nothing is read meanwhile.
_ANSWER_MIN_S, _ANSWER_MAX_S = 0.2, 1.0
# Between two requests for the positions of all partitions that lack one.
_RETRY_S = 1.0
# How long a partition is left alone after a fetch of it has failed. `same_topic_after_s` counts on the smaller time, as
# brokers do not hear of a new topic all at once.
_FETCH_ERROR_MS, _SAME_TOPIC_S = 1_500, 1.0
# To revoke partitions, the owner writes what is in flight and commits the last positions: a few seconds.
_LEAVE_S, _REVOKE_S = 10.0, 5.0

_log = logging.getLogger("railgun.kafka")


class Owner(Protocol):
    """Is notified of the partitions that the member has, in the thread that polls or closes the member."""

    def start(self, where: TopicPartition, committed: int) -> int | None:
        """Return the offset at which the member reads a partition; None: at its oldest record.

        committed: the group's position; negative if it has none.
        """

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """The member has these partitions from now on."""

    def revoked(self, partitions: list[TopicPartition]) -> None:
        """The member gives these partitions up. Another one may have them as soon as this returns."""

    def lost(self, partitions: list[TopicPartition]) -> None:
        """The member was shut out: another one may have these partitions already."""

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        """The group has committed these positions, by partition."""


class GroupMember:
    """One member of a group. It reads each partition from where its owner says, who is told the committed position.

    It asks for committed positions itself. librdkafka (2.16) takes a partition for one that was never read when a
    transaction over its position is open while the group rebalances.

    Threads: one thread at a time uses a member, and `leave` closes it in a new one. Any thread may read `metadata` and
    `session_s`.
    group, topics: the name of the group, and the topics that it reads. Errors name the group.
    suffix: what stands behind the `client.id` of the settings, which whoever describes the group sees.
    session_s: the group takes a member's partitions away after so long without a heartbeat.
    metadata: the member's identity, for a producer's transaction, as of the last completed rebalance. None during a
    rebalance, except while partitions are being revoked.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        group: str,
        topics: Sequence[str],
        owner: Owner,
        suffix: str = "",
    ) -> None:
        self._group, self._owner = group, owner
        self._client_errors = ClientErrors()
        self._callback_error: BaseException | None = None
        configuration: dict[str, Any] = {
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            "topic.metadata.refresh.interval.ms": _METADATA_MS,
            **settings.consumer(),
            "fetch.error.backoff.ms": _FETCH_ERROR_MS,
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": False,
            "on_commit": self._deferring(self._on_commit),
            "error_cb": self._client_errors,
        }
        configuration["client.id"] += suffix
        self.session_s = float(configuration["session.timeout.ms"]) / 1000
        self._consumer = create_client(group, lambda: Consumer(configuration))
        # Messages that have come and were not returned yet.
        self._buffered: list[Message] = []
        # Assigned partitions whose committed position is not known yet. librdkafka gets a partition with its position,
        # and no seek: an answer about the partition's end that comes after the seek would override it (2.16).
        self._unpositioned: set[TopicPartition] = set()
        # Those of them to be asked for one by one, after a request for all of them failed: one position under an open
        # transaction delays the answer for all. They are shuffled, as such partitions are often neighbours, which had
        # the same owner, and would all come before the others.
        self._to_ask_singly: list[TopicPartition] = []
        self._next_request_s, self._answer_s = 0.0, _ANSWER_MIN_S
        # The time limit of the last request for all, and whether any request was answered since.
        self._answer_of_all_s, self._is_answered = 0.0, False
        self._held: set[TopicPartition] = set()
        # _is_member: between an assignment and the next revocation.
        self._is_paused, self._is_member = False, False
        # When a partition was last begun, or taken up again.
        self._fetching_s = monotonic()
        self.metadata: Any = None
        # The member id under which the present partitions were assigned.
        self._member_id: str | None = None
        self._consumer.subscribe(
            list(topics),
            on_assign=self._deferring(self._on_assign),
            on_revoke=self._deferring(self._on_revoke),
            on_lost=self._deferring(self._on_lost),
        )

    def poll(self, timeout_s: float, max_records: int) -> list[Message]:
        """Return messages that have come. Raises TransportError for an error that a retry does not cure."""
        if self._is_paused:
            self._is_paused = False
            self._consumer.resume(
                [each for each in self._consumer.assignment() if _where(each) not in self._held]
            )
            self._fetching_s = monotonic()
        if self._buffered:
            messages, self._buffered = self._buffered, []
            return messages
        if self._unpositioned and monotonic() >= self._next_request_s:
            self._find_positions()
        self._poll_into_buffer(timeout_s)
        if not self._buffered:
            return []
        # `consume` with a timeout would wait until it has all of them.
        more = self._without_errors(self._consumer.consume(max_records - 1, 0))
        self._raise_deferred()
        messages, self._buffered = self._buffered + more, []
        return messages

    def same_topic_after_s(self) -> float:
        """Return a time of `time.monotonic`: if a topic's id was seen after it, what has come by now is of that topic.

        It is not of one that was made anew under its name then. A record does not say which it is of.

        Once a topic that is being fetched is deleted, its next fetch fails, as fetches name topics by their ids. Its
        partitions are left alone for a while then, and read on in the new topic at the offsets where they were (2.16).
        """
        return max(self._fetching_s, monotonic() - _SAME_TOPIC_S)

    def pause(self) -> None:
        """Remain a member for a moment without reading. The next `poll` reads on."""
        self._is_paused = True
        self._consumer.pause(self._consumer.assignment())
        # A message that comes all the same is of a partition that was just assigned.
        self._poll_into_buffer(_PAUSE_S)

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """Fetch nothing of these partitions for now, and again of those that were held before."""
        before, self._held = self._held, set(partitions)
        assigned = self._consumer.assignment()
        self._consumer.pause([each for each in assigned if _where(each) in self._held - before])
        resumed = [each for each in assigned if _where(each) in before - self._held]
        if resumed:
            self._consumer.resume(resumed)
            self._fetching_s = monotonic()

    def commit(self, positions: Mapping[TopicPartition, int], *, wait: bool = False) -> None:
        """Commit the group's positions, by partition.

        wait: return when they are committed, or raise TransportError, for instance if this is no longer a member.
        """
        offsets = [KafkaTopicPartition(*where, offset) for where, offset in positions.items()]
        try:
            if not wait:
                self._consumer.commit(offsets=offsets, asynchronous=True)
                return
            found = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            raise self._as_transport_error(error.args[0]) from error
        for each in found or ():
            if each.error is not None:
                raise self._as_transport_error(each.error)

    def end(self, where: TopicPartition) -> int:
        """Return the end of the partition as of the last fetch; −1 if not known. Only for the thread that polls."""
        known = self._consumer.get_watermark_offsets(KafkaTopicPartition(*where), cached=True)
        return -1 if known is None else known[1]

    def close(self) -> None:
        """Leave the group. Partitions are revoked first."""
        # They are revoked here and not by the client's `close`: a client that ends just when it gets the answer to
        # `incremental_unassign` never returns from it (2.16), and holds the interpreter lock.
        with suppress(KafkaException):
            self._consumer.unsubscribe()
            until_s = monotonic() + _REVOKE_S
            while (self._consumer.assignment() or self._unpositioned) and monotonic() < until_s:
                self._consumer.poll(_PAUSE_S)
        self._consumer.close()
        self._raise_deferred()

    def _poll_into_buffer(self, timeout_s: float) -> None:
        """Wait for a message. It is buffered, as its partition may go before the message is returned."""
        message = self._consumer.poll(timeout_s)
        if self.metadata is None and self._is_member:
            self.metadata = self._membership()
        if message is not None:
            self._buffered += self._without_errors([message])
        self._raise_deferred()

    def _deferring(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Wrap a callback of librdkafka so that what it raises is raised by the method that polled.

        confluent_kafka (2.16) turns an exception from a callback into a SystemError, or ends the process.
        """

        def wrapped(*arguments: object) -> None:
            try:
                callback(*arguments)
            except BaseException as error:  # noqa: BLE001 - `_raise_deferred` raises it
                self._callback_error = self._callback_error or error

        return wrapped

    def _raise_deferred(self) -> None:
        error, self._callback_error = self._callback_error, None
        if error is not None:
            raise error

    def _without_errors(self, messages: list[Message]) -> list[Message]:
        """Return the messages that are records. Transient errors are logged, others are raised."""
        # It is asked of every record, so no Python code runs for each.
        if not any(map(Message.error, messages)):
            return messages
        for message in messages:
            error = message.error()
            if error is None:
                continue
            place = message.topic() or self._group
            raised = as_transport_error(place, error, self._client_errors.last, "Read")
            if not is_transient(error):
                raise raised
            _log.warning("%s: %s", self._group, raised)
        return [each for each in messages if each.error() is None]

    def _find_positions(self) -> None:
        """Ask for the positions of partitions that lack one, and start to read those whose position is known."""
        until_s = monotonic() + _ANSWER_MIN_S
        while self._unpositioned and monotonic() < until_s:
            partitions = self._to_ask_singly[:1] or sorted(self._unpositioned)
            try:
                self._consumer.incremental_assign(self._positions(partitions))
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if not is_transient(cause):
                    raise self._as_transport_error(cause) from error
                self._schedule_retry(partitions)
                return
            self._fetching_s = monotonic()
            self._unpositioned.difference_update(partitions)
            del self._to_ask_singly[:1]
            if self._answer_s > self._answer_of_all_s:
                # The request for all had less time than the broker needs: it is worth another try.
                self._to_ask_singly.clear()

    def _schedule_retry(self, partitions: Collection[TopicPartition]) -> None:
        """Decide what to ask next, and when, after a request got no answer. Until then there is time to read."""
        limit_s, was_for_all = self._answer_s, not self._to_ask_singly
        if len(partitions) > 1:
            self._to_ask_singly = sample(list(partitions), len(partitions))
        else:
            del self._to_ask_singly[:1]
            if not self._is_answered:
                # Short at first, as nothing is read meanwhile; but a slow broker has to get enough time in the end.
                self._answer_s = min(2 * limit_s, _ANSWER_MAX_S)
        if was_for_all:
            self._answer_of_all_s, self._is_answered = limit_s, False
        self._next_request_s = monotonic() + (limit_s if self._to_ask_singly else _RETRY_S)

    def _positions(self, partitions: Collection[TopicPartition]) -> list[KafkaTopicPartition]:
        """Return the positions at which to start reading partitions.

        Raises KafkaException if the broker does not answer in time, as while a transaction over one is open.
        """
        requested = [KafkaTopicPartition(*where) for where in partitions]
        requested_s = monotonic()
        found = self._consumer.committed(requested, self._answer_s)
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
            start = self._owner.start(_where(each), each.offset)
            each.offset = OFFSET_BEGINNING if start is None else start
        self._answer_s = min(max(_ANSWER_MIN_S, 2 * (monotonic() - requested_s)), _ANSWER_MAX_S)
        self._is_answered = True
        return found

    def _membership(self) -> Any:
        """Return the member's identity; None if it is not a member, or joined again under a new id.

        The check matters: a broker takes any position from a transaction that names no member.
        """
        try:
            metadata, member_id = self._consumer.consumer_group_metadata(), self._consumer.memberid()
        except (KafkaException, RuntimeError):
            # The client is being closed.
            return None
        is_same = member_id and member_id == self._member_id and member_id.encode() in metadata
        return metadata if is_same else None

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        self.metadata, self._is_member = None, True
        if not self._unpositioned and not consumer.assignment():
            self._member_id = consumer.memberid()
        wheres = _wheres(partitions)
        try:
            found = self._positions(wheres) if wheres else []
        except KafkaException:
            # They are asked for again at once, one by one; that also raises errors that are not transient.
            self._unpositioned.update(wheres)
            self._to_ask_singly = sample(wheres, len(wheres)) + self._to_ask_singly
            self._answer_of_all_s, self._is_answered, self._next_request_s = self._answer_s, False, 0.0
            found = []
        try:
            consumer.incremental_assign(found)
        except KafkaException as error:
            raise self._as_transport_error(error.args[0]) from error
        self._fetching_s = monotonic()
        self._owner.assigned(wheres)

    def _on_revoke(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        # Nobody else has the partitions before this returns, so the owner may still commit a transaction.
        self.metadata, self._is_member = self._membership(), False
        # librdkafka also calls this for a member that was shut out during a rebalance.
        self._give_up(partitions, self._owner.lost if self.metadata is None else self._owner.revoked)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        self.metadata, self._is_member = None, False
        self._give_up(partitions, self._owner.lost)

    def _give_up(
        self, partitions: list[KafkaTopicPartition], notify: Callable[[list[TopicPartition]], None]
    ) -> None:
        wheres = _wheres(partitions)
        self._unpositioned.difference_update(wheres)
        self._held.difference_update(wheres)
        self._to_ask_singly = [each for each in self._to_ask_singly if each not in wheres]
        # If a partition comes back, another member may have read on from where the buffered messages are.
        self._buffered = [each for each in self._buffered if where_of(each) not in wheres]
        try:
            notify(wheres)
        finally:
            self.metadata = None
            self._unassign(wheres)

    def _unassign(self, partitions: list[TopicPartition]) -> None:
        try:
            assigned = [each for each in self._consumer.assignment() if _where(each) in partitions]
            # A partition that goes while it is paused would still be paused when it comes back.
            self._consumer.resume(assigned)
            self._consumer.incremental_unassign(assigned)
        except KafkaException as error:
            # A client that is being closed may have unassigned them already.
            if error.args[0].code() != KafkaError._DESTROY:
                raise self._as_transport_error(error.args[0]) from error

    def _as_transport_error(self, error: KafkaError) -> TransportError:
        return as_transport_error(self._group, error, self._client_errors.last, "Read")

    def _on_commit(self, error: KafkaError | None, partitions: list[KafkaTopicPartition]) -> None:
        if error is None:
            done = [each for each in partitions if each.error is None]
            self._owner.committed({_where(each): each.offset for each in done})


def where_of(message: Message) -> TopicPartition:
    """Return the partition of a message that is a record."""
    found: Any = message.topic(), message.partition()
    return TopicPartition(*found)


def _wheres(partitions: list[KafkaTopicPartition]) -> list[TopicPartition]:
    return list(map(_where, partitions))


def _where(each: KafkaTopicPartition) -> TopicPartition:
    return TopicPartition(each.topic, each.partition)


def leave(member: GroupMember) -> None:
    """Close a member, for at most ten seconds; then its thread is abandoned, and its group gives its partitions to
    others.

    librdkafka blocks forever if the broker goes away while positions are being committed (2.16; its issue 3740).
    """
    left: Future[None] = Future()

    def close() -> None:
        try:
            member.close()
        except BaseException as error:  # noqa: BLE001 - `left.result` raises it
            left.set_exception(error)
        else:
            left.set_result(None)

    threading.Thread(target=close, name="leaving", daemon=True).start()
    try:
        left.result(_LEAVE_S)
    except (KafkaException, TransportError) as error:
        _log.warning("the group could not be left in order: %s", error)
    except TimeoutError:
        _log.warning("the group could not be left within %g s; it gives the partitions to others", _LEAVE_S)
