"""Reading a topic as a member of a consumer group, which shares the topic's partitions among its members."""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from random import sample
from time import monotonic
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.clients import Consumer
from railgun.messaging.kafka.errors import Complaints, as_transport_error, is_passing, made
from railgun.messaging.kafka.settings import KafkaSettings

_SESSION_MS, _HEARTBEAT_MS = 10_000, 1_000
_REST_S = 0.05
# How long whoever reads waits at first to be told where partitions begin, and when it asks for all of them again.
_BEGIN_S, _BEGIN_AGAIN_S = 0.2, 1.0
# What is written meanwhile, and the last positions, take a few seconds.
_LEAVE_S, _GIVE_UP_S = 10.0, 5.0

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

    Where that is asked for here and not left to librdkafka (2.16): told that a transaction over a partition's position
    is under way while others come or go, it takes the partition for one that was never read.

    session_s: after so long without a sign of life the group gives its partitions to others.
    metadata: who this member is, for a producer's transaction, as of the last rebalance that it heard the end of; None
    during one, except while partitions are being given up.  Any thread may look at it.
    """

    def __init__(self, settings: KafkaSettings, group: str, topic: str, owner: Owner) -> None:
        self._topic, self._owner = topic, owner
        self._complaints = Complaints()
        self._raised: BaseException | None = None
        configuration: dict[str, Any] = {
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            **settings.consumer(),
            "group.id": group,
            "partition.assignment.strategy": "cooperative-sticky",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": False,
            "on_commit": self._guarded(self._on_commit),
            "error_cb": self._complaints,
        }
        self.session_s = float(configuration["session.timeout.ms"]) / 1000
        self._consumer = made(topic, lambda: Consumer(configuration))
        self._held: list[Message] = []
        # Partitions of which it is not known yet where they begin. librdkafka is given them then, and not told to seek:
        # the answer to where they end, should it come afterwards, would make it go there (2.16).
        self._unbegun: set[int] = set()
        # Those of them that are still to be asked for one by one, since nothing was said of all: an unfinished
        # transaction over one position holds up the answer for the others. Shuffled: where such ones are neighbours, as
        # they had one owner, all that do begin would come after them.
        self._turn: list[int] = []
        self._begin_s, self._patience_s = 0.0, _BEGIN_S
        # How long the answer for all was waited for, and whether there was one for any since.
        self._together_s, self._is_answered = 0.0, False
        self._is_resting, self._is_member = False, False
        self.metadata: Any = None
        # As whom the partitions came that are had.
        self._member: str | None = None
        self._consumer.subscribe(
            [topic],
            on_assign=self._guarded(self._on_assign),
            on_revoke=self._guarded(self._on_revoke),
            on_lost=self._guarded(self._on_lost),
        )

    def poll(self, timeout_s: float, max_records: int) -> list[Message]:
        """What has come. Raises TransportError for what does not pass by itself."""
        if self._is_resting:
            self._is_resting = False
            self._consumer.resume(self._consumer.assignment())
        if self._held:
            messages, self._held = self._held, []
            return messages
        if self._unbegun and monotonic() >= self._begin_s:
            self._begin()
        self._hold(timeout_s)
        if not self._held:
            return []
        # Asked for several with a timeout, it would wait for all of them.
        more = self._good(self._consumer.consume(max_records - 1, 0))
        self._raise()
        messages, self._held = self._held + more, []
        return messages

    def rest(self) -> None:
        """Stay a member without reading on, for a moment."""
        self._is_resting = True
        self._consumer.pause(self._consumer.assignment())
        # What comes is of a partition that was assigned just now.
        self._hold(_REST_S)

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
            raise self._as_transport_error(error.args[0]) from error
        for each in found or ():
            if each.error is not None:
                raise self._as_transport_error(each.error)

    def position(self, partition: int, offset: int) -> KafkaTopicPartition:
        """A position as a transaction wants it."""
        return KafkaTopicPartition(self._topic, partition, offset)

    def end(self, partition: int) -> int:
        """Where the partition ended when it was fetched last; −1 where that is not known. For the thread that polls."""
        known = self._consumer.get_watermark_offsets(KafkaTopicPartition(self._topic, partition), cached=True)
        return -1 if known is None else known[1]

    def close(self) -> None:
        """Leave the group; what is still had is revoked first."""
        # And that before the client is closed: one that comes to its end just when it is told that partitions are let
        # go does not answer (2.16), and whoever told it waits without end and with the interpreter.
        with suppress(KafkaException):
            self._consumer.unsubscribe()
            until_s = monotonic() + _GIVE_UP_S
            while (self._consumer.assignment() or self._unbegun) and monotonic() < until_s:
                self._consumer.poll(_REST_S)
        self._consumer.close()
        self._raise()

    def _hold(self, timeout_s: float) -> None:
        """Wait for a record, which is held: its partition may go before it is handed on."""
        message = self._consumer.poll(timeout_s)
        if self.metadata is None and self._is_member:
            self.metadata = self._membership()
        if message is not None:
            self._held += self._good([message])
        self._raise()

    def _guarded(self, told: Callable[..., None]) -> Callable[..., None]:
        """What a callback of librdkafka raises is raised once its caller is back: confluent_kafka (2.16) makes a
        SystemError of what it does not expect there, or ends the process.
        """

        def guarded(*said: object) -> None:
            try:
                told(*said)
            except BaseException as error:  # noqa: BLE001 - it is raised all the same
                self._raised = self._raised or error

        return guarded

    def _raise(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _good(self, messages: list[Message]) -> list[Message]:
        errors = [error for error in map(Message.error, messages) if error is not None]
        if not errors:
            return messages
        for error in errors:
            raised = self._as_transport_error(error)
            if not is_passing(error):
                raise raised
            _log.warning("%s: %s", self._topic, raised)
        return [each for each in messages if each.error() is None]

    def _begin(self) -> None:
        """Read partitions of which it was not known where they begin, each once that is known."""
        until_s = monotonic() + _BEGIN_S
        while self._unbegun and monotonic() < until_s:
            asked = self._turn[:1] or sorted(self._unbegun)
            try:
                self._consumer.incremental_assign(self._beginnings(asked))
            except KafkaException as error:
                cause: KafkaError = error.args[0]
                if not is_passing(cause):
                    raise self._as_transport_error(cause) from error
                self._ask_again(asked)
                return
            self._unbegun.difference_update(asked)
            del self._turn[:1]
            if self._patience_s > self._together_s:
                # No wonder that there was no answer for all.
                self._turn.clear()

    def _ask_again(self, asked: list[int]) -> None:
        """There was no answer for these: say which are next, and when. Meanwhile there is time to read."""
        waited_s, are_all = self._patience_s, not self._turn
        if len(asked) > 1:
            self._turn = sample(asked, len(asked))
        else:
            del self._turn[:1]
            if not self._is_answered:
                # All reading waits: not for long at first, but a slow broker has to be heard in the end.
                self._patience_s = min(2 * waited_s, _BEGIN_AGAIN_S)
        if are_all:
            self._together_s, self._is_answered = waited_s, False
        self._begin_s = monotonic() + (waited_s if self._turn else _BEGIN_AGAIN_S)

    def _beginnings(self, partitions: list[int]) -> list[KafkaTopicPartition]:
        """Raises KafkaException where the broker does not say now, as while a transaction over one is under way."""
        asked = [KafkaTopicPartition(self._topic, each) for each in partitions]
        asked_s = monotonic()
        found = self._consumer.committed(asked, self._patience_s)
        for each in found:
            if each.error is not None:
                raise KafkaException(each.error)
            if each.offset < 0:
                each.offset = OFFSET_BEGINNING
        self._patience_s = min(max(_BEGIN_S, 2 * (monotonic() - asked_s)), _BEGIN_AGAIN_S)
        self._is_answered = True
        return found

    def _membership(self) -> Any:
        """Who this member is now; None where it is none, or already another: of nobody, a broker takes any position."""
        try:
            metadata, member = self._consumer.consumer_group_metadata(), self._consumer.memberid()
        except (KafkaException, RuntimeError):
            # One that is being closed does not say any more.
            return None
        return metadata if member and member == self._member and member.encode() in metadata else None

    def _on_assign(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        self.metadata, self._is_member = None, True
        if not self._unbegun and not consumer.assignment():
            self._member = consumer.memberid()
        own = [each.partition for each in partitions]
        try:
            found = self._beginnings(own) if own else []
        except KafkaException:
            # Asked again at once, one by one, which tells what does not pass.
            self._unbegun.update(own)
            self._turn = sample(own, len(own)) + self._turn
            self._together_s, self._is_answered, self._begin_s = self._patience_s, False, 0.0
            found = []
        try:
            consumer.incremental_assign(found)
        except KafkaException as error:
            raise self._as_transport_error(error.args[0]) from error
        self._owner.assigned(own)

    def _on_revoke(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        # Nobody else has them before this returns: a transaction too may finish what is under way.
        self.metadata, self._is_member = self._membership(), False
        # Told so where it was shut out while partitions came or went, too.
        self._let_go(partitions, self._owner.lost if self.metadata is None else self._owner.revoked)

    def _on_lost(self, consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
        self.metadata, self._is_member = None, False
        self._let_go(partitions, self._owner.lost)

    def _let_go(self, partitions: list[KafkaTopicPartition], tell: Callable[[list[int]], None]) -> None:
        own = [each.partition for each in partitions]
        self._unbegun.difference_update(own)
        self._turn = [each for each in self._turn if each not in own]
        # Were they to come back meanwhile, others may have gone on after what is held.
        self._held = [each for each in self._held if each.partition() not in own]
        try:
            tell(own)
        finally:
            self.metadata = None
            self._unassign(own)

    def _unassign(self, partitions: list[int]) -> None:
        try:
            begun = [each for each in self._consumer.assignment() if each.partition in partitions]
            # One that goes while it is paused would be so still when it comes back.
            self._consumer.resume(begun)
            self._consumer.incremental_unassign(begun)
        except KafkaException as error:
            # One that is being closed may have given up all by itself.
            if error.args[0].code() != KafkaError._DESTROY:
                raise self._as_transport_error(error.args[0]) from error

    def _as_transport_error(self, error: KafkaError) -> TransportError:
        return as_transport_error(self._topic, error, self._complaints.last)

    def _on_commit(self, error: KafkaError | None, partitions: list[KafkaTopicPartition]) -> None:
        if error is None:
            self._owner.committed({each.partition: each.offset for each in partitions if each.error is None})


def leave(member: GroupReading) -> None:
    """Let go of a member whatever became of the broker. Where that is away while positions are on their way to it,
    librdkafka waits without end (2.16; its issue 3740), and is left to it."""
    left: Future[None] = Future()

    def close() -> None:
        try:
            member.close()
        except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
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
