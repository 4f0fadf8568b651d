"""Where a member of a group begins to read, whatever its partitions went through before it had them."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from railgun.messaging.kafka import group
from railgun.messaging.kafka.group import GroupMember, leave
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from tests.broker.own_topics import own_prefix
from tests.messaging.in_time import in_time
from tests.unit.local_units import quick_settings

_RECORDS, _DONE, _UNDER_WAY = 10, 5, 8
_MANY = 16
_PATIENCE_S = 60.0
_STEADY_S = 1.0


class Member:
    """One of a group. read: by partition the offsets that came.  could_finish: whether it was a member still while it
    was told that partitions go; None where it was not asked to.  was_shut_out: whether others may have had them."""

    def __init__(self, broker: str, topic: str, partitions: int = 2) -> None:
        self.partitions: set[int] = set()
        self.read: dict[int, list[int]] = {each: [] for each in range(partitions)}
        self.could_finish: bool | None = None
        self.was_shut_out = False
        self.reading = GroupMember(quick_settings(broker), topic, [topic], self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        leave(self.reading)

    def start(self, where: TopicPartition, committed: int) -> int | None:
        return committed if committed >= 0 else None

    def assigned(self, partitions: list[TopicPartition]) -> None:
        self.partitions |= {each.partition for each in partitions}

    def revoked(self, partitions: list[TopicPartition]) -> None:
        self.could_finish = self.reading.metadata is not None
        self.partitions -= {each.partition for each in partitions}

    def lost(self, partitions: list[TopicPartition]) -> None:
        self.was_shut_out = True
        self.partitions -= {each.partition for each in partitions}

    def committed(self, positions: Mapping[TopicPartition, int]) -> None:
        pass

    def poll(self) -> None:
        for message in self.reading.poll(0.05, 100):
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.read[partition].append(offset)


class Slow:
    """A consumer of a broker that takes its time to say what is committed."""

    def __init__(self, consumer: Consumer, answer_s: float) -> None:
        self._consumer, self._answer_s = consumer, answer_s
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def committed(self, partitions: list[KafkaTopicPartition], timeout_s: float) -> list[KafkaTopicPartition]:
        self.asked += 1
        time.sleep(min(timeout_s, self._answer_s))
        if timeout_s < self._answer_s:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [KafkaTopicPartition(each.topic, each.partition, _DONE) for each in partitions]


class Unstable:
    """A consumer that is not told where these partitions begin, since a transaction over them is under way.

    asked: of which it wanted to know that, each time.  waited_s: for how long in vain."""

    def __init__(self, consumer: Consumer, unstable: set[int]) -> None:
        self._consumer, self.unstable = consumer, unstable
        self.asked: list[list[int]] = []
        self.waited_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def committed(self, partitions: list[KafkaTopicPartition], timeout_s: float) -> list[KafkaTopicPartition]:
        asked = [each.partition for each in partitions]
        self.asked.append(asked)
        if self.unstable.intersection(asked):
            time.sleep(timeout_s)
            self.waited_s += timeout_s
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [KafkaTopicPartition(each.topic, each.partition, _DONE) for each in partitions]


def until(is_so: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        for member in members:
            member.poll()


def pause_until(is_so: Callable[[], bool], paused: Member, *members: Member) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        paused.reading.pause()
        for member in members:
            member.poll()


def steady(*members: Member) -> None:
    """Poll for a while."""
    end = time.monotonic() + _STEADY_S
    until(lambda: time.monotonic() > end, *members)


@contextmanager
def made(kafka: str, partitions: int) -> Iterator[str]:
    """A topic with ten records in each partition."""
    name = own_prefix("group-")
    with KafkaTransport(quick_settings(kafka)) as transport:
        transport.create_topic(name, partitions)
        write_to(kafka, name, partitions)
        yield name
        transport.delete_topic(name)


def write_to(kafka: str, topic: str, partitions: int = 2, times: int = 1) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    for partition in range(partitions):
        for number in range(_RECORDS * times):
            producer.produce(topic, str(number % _RECORDS).encode(), partition=partition)
    assert not producer.flush(_PATIENCE_S)


@pytest.fixture
def topic(kafka: str) -> Iterator[str]:
    """Of two partitions with ten records each."""
    with made(kafka, 2) as name:
        yield name


def at(topic: str, positions: Mapping[int, int]) -> dict[TopicPartition, int]:
    """Positions in one topic."""
    return {TopicPartition(topic, partition): offset for partition, offset in positions.items()}


def transaction(kafka: str, topic: str, member: Member, positions: Mapping[int, int]) -> Producer:
    """One over positions, by partition, that is open."""

    def begin() -> Producer:
        writer = Producer({"bootstrap.servers": kafka, "transactional.id": topic})
        writer.init_transactions(_PATIENCE_S)
        writer.begin_transaction()
        wanted = [KafkaTopicPartition(topic, *each) for each in positions.items()]
        writer.send_offsets_to_transaction(wanted, member.reading.metadata, _PATIENCE_S)
        return writer

    return in_time(begin)


def committed_in_a_transaction(
    kafka: str, topic: str, member: Member, under_way: tuple[int, ...] = (0, 1)
) -> Producer:
    """Positions committed by one, and others by the next, which is left open over these partitions."""
    transaction(kafka, topic, member, {0: _DONE, 1: _DONE}).commit_transaction(_PATIENCE_S)
    return transaction(kafka, topic, member, dict.fromkeys(under_way, _UNDER_WAY))


def test_a_transaction_under_way_while_the_group_changes(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: len(first.partitions) == 2 and first.reading.metadata is not None, first)
        writer = committed_in_a_transaction(kafka, topic, first)
    with Member(kafka, topic) as second:
        until(lambda: len(second.partitions) == 2, second)
        with Member(kafka, topic) as third:
            until(lambda: len(third.partitions) == 1 and len(second.partitions) == 1, second, third)
            assert second.could_finish
            steady(second, third)
            assert second.read == third.read == {0: [], 1: []}
            writer.abort_transaction(_PATIENCE_S)
            until(lambda: any(second.read.values()) and any(third.read.values()), second, third)
            read = [offset for member in (second, third) for own in member.read.values() for offset in own]
            assert sorted(read) == sorted(2 * list(range(_DONE, _RECORDS)))


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_transaction_under_way_holds_up_only_its_own_partitions(
    kafka: str, topic: str, *, is_committed: bool
) -> None:
    with Member(kafka, topic) as first:
        until(lambda: len(first.partitions) == 2 and first.reading.metadata is not None, first)
        writer = committed_in_a_transaction(kafka, topic, first, under_way=(0,))
    with Member(kafka, topic) as second:
        begun_s = time.monotonic()
        until(lambda: bool(second.read[1]), second)
        # Its writer would be given up after a minute.
        assert time.monotonic() - begun_s < _PATIENCE_S / 4
        steady(second)
        assert second.read == {0: [], 1: list(range(_DONE, _RECORDS))}
        if is_committed:
            writer.commit_transaction(_PATIENCE_S)
        else:
            writer.abort_transaction(_PATIENCE_S)
        until(lambda: bool(second.read[0]), second)
        steady(second)
        goes_on_at = _UNDER_WAY if is_committed else _DONE
        assert second.read == {0: list(range(goes_on_at, _RECORDS)), 1: list(range(_DONE, _RECORDS))}


def test_partitions_begin_beside_some_that_do_not(kafka: str) -> None:
    unstable = {0, 5, _MANY - 1}
    with made(kafka, _MANY) as topic, Member(kafka, topic, _MANY) as first:
        consumer: Any = Unstable(first.reading._consumer, set(unstable))
        first.reading._consumer = consumer
        until(lambda: all(first.read[each] for each in range(_MANY) if each not in unstable), first)
        asked, waited_s, begun_s = len(consumer.asked), consumer.waited_s, time.monotonic()
        # All of them, one by one, and those again that it was not told of.
        assert asked < 2 * _MANY
        steady(first)
        steady(first)
        steady(first)
        # Most of the time is for reading: that of what has begun, too.
        assert consumer.waited_s - waited_s <= (time.monotonic() - begun_s) / 2 + 0.5
        assert all(unstable.issuperset(own) for own in consumer.asked[asked:])
        assert not any(first.read[each] for each in unstable)
        # One after the other.
        for each in sorted(unstable, reverse=True):
            consumer.unstable.remove(each)
            until(lambda each=each: bool(first.read[each]), first)
        steady(first)
        assert first.read == {each: list(range(_DONE, _RECORDS)) for each in range(_MANY)}


def test_what_is_kept_is_written_while_another_takes_its_time(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: len(first.partitions) == 2 and first.reading.metadata is not None, first)
        # It joins, and is not polled: no generation in which it has a partition comes about.
        with Member(kafka, topic):
            until(lambda: len(first.partitions) == 1, first)
            steady(first)
            (kept,) = first.partitions
            assert first.reading.metadata is not None

            def is_written() -> bool:
                """The group may have gone on to another generation, which a member hears of as it polls."""
                try:
                    transaction(kafka, topic, first, {kept: _DONE}).commit_transaction(_PATIENCE_S)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.ILLEGAL_GENERATION:
                        raise
                    return False
                return True

            until(is_written, first)
            # A member's own connection answers nothing while the group waits for others.
            beside = Consumer({"bootstrap.servers": kafka, "group.id": topic})
            (found,) = beside.committed([KafkaTopicPartition(topic, kept)], _PATIENCE_S)
            beside.close()
            assert found.offset == _DONE


def test_a_topic_made_anew_is_read_only_after_a_while(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks at the id of a topic has that long to notice. `same_topic_after_s` rests on it.

    The pause is made longer here: before reading goes on, the new topic must have more records than were read of the
    old one, or reading would begin at its start.
    """
    assert group._SAME_TOPIC_S < group._FETCH_ERROR_MS / 1000
    while_s = 6.0
    monkeypatch.setattr(group, "_FETCH_ERROR_MS", int(while_s * 1000))
    with Member(kafka, topic) as first, KafkaTransport(quick_settings(kafka)) as transport:
        until(lambda: all(len(own) == _RECORDS for own in first.read.values()), first)
        steady(first)
        deleted_s = time.monotonic()
        transport.delete_topic(topic)
        transport.create_topic(topic, 2)
        write_to(kafka, topic, times=3)
        until(lambda: any(len(own) > _RECORDS for own in first.read.values()), first)
        assert time.monotonic() - deleted_s > while_s - 0.5
        # Nothing else tells: the offsets go on.
        until(lambda: all(len(own) > _RECORDS for own in first.read.values()), first)
        assert {own[_RECORDS] for own in first.read.values()} == {_RECORDS}


def test_after_which_time_ids_have_to_be_seen(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        begun_s = time.monotonic()
        until(lambda: len(first.partitions) == 2, first)
        assert first.reading.same_topic_after_s() > begun_s
        end_s = time.monotonic() + 1.5 * group._SAME_TOPIC_S
        until(lambda: time.monotonic() > end_s, first)
        before_s = time.monotonic()
        assert before_s - group._SAME_TOPIC_S <= first.reading.same_topic_after_s() < before_s
        # What is fetched after a pause may be of another topic at once.
        first.reading.pause()
        first.poll()
        assert first.reading.same_topic_after_s() > before_s
        where = TopicPartition(topic, 0)
        first.reading.hold([where])
        before_s = time.monotonic()
        first.reading.hold([where])
        assert first.reading.same_topic_after_s() < before_s
        first.reading.hold([])
        assert first.reading.same_topic_after_s() > before_s


class Watched:
    """A consumer of a member. had: what that had when its client was closed."""

    def __init__(self, member: Member) -> None:
        self._consumer, self._member = member.reading._consumer, member
        self.had: set[int] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def close(self) -> None:
        self.had = set(self._member.partitions)
        self._consumer.close()


def test_partitions_are_given_up_before_the_client_is_closed(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that comes to its end just when it is told that they are let go never answers."""
    with Member(kafka, topic) as member:
        until(lambda: len(member.partitions) == 2 and member.reading.metadata is not None, member)
        watched = Watched(member)
        monkeypatch.setattr(member.reading, "_consumer", watched)
    assert watched.had == set()
    assert member.could_finish, "it is a member still while it is told"
    assert not member.was_shut_out


def test_what_the_group_goes_on_from_is_gone(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: len(first.partitions) == 2, first)
        first.reading.commit(at(topic, {0: 2, 1: _DONE}), wait=True)
    where = KafkaTopicPartition(topic, 0, 4)
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.delete_records([where])[where].result(_PATIENCE_S)
    with Member(kafka, topic) as second:
        until(lambda: all(second.read.values()), second)
        assert second.read == {0: list(range(4, _RECORDS)), 1: list(range(_DONE, _RECORDS))}


def test_what_came_while_paused_of_a_partition_that_went_and_is_back(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Member(kafka, topic) as nobody:
        until(lambda: len(nobody.partitions) == 2, nobody)
        # Of the two, the group takes the first from who has both; of the other nothing comes.
        nobody.reading.commit(at(topic, {1: _RECORDS}), wait=True)
    with Member(kafka, topic) as first:
        with monkeypatch.context() as patch:
            patch.setattr("railgun.messaging.kafka.group._PAUSE_S", _PATIENCE_S)
            first.reading.pause()
        with Member(kafka, topic) as second:
            pause_until(lambda: second.partitions == {0}, first, second)
            second.reading.commit(at(topic, {0: _DONE}), wait=True)
        pause_until(lambda: len(first.partitions) == 2, first)
        until(lambda: bool(first.read[0]), first)
        steady(first)
        assert first.read == {0: list(range(_DONE, _RECORDS)), 1: []}


def test_a_group_that_never_read(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: all(first.read.values()), first)
        steady(first)
        assert first.read == {each: list(range(_RECORDS)) for each in (0, 1)}


def test_positions_of_a_member_that_is_none_are_not_taken(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: len(first.partitions) == 2 and first.reading.metadata is not None, first)
        assert first.reading._membership() == first.reading.metadata
    with Member(kafka, topic) as nobody:
        assert nobody.reading._membership() is None


def test_a_broker_that_takes_its_time(kafka: str) -> None:
    with made(kafka, _MANY) as topic, Member(kafka, topic, _MANY) as first:
        consumer: Any = Slow(first.reading._consumer, 0.3)
        first.reading._consumer = consumer
        until(lambda: all(first.read.values()), first)
        steady(first)
        assert first.read == {each: list(range(_DONE, _RECORDS)) for each in range(_MANY)}
        # Not one by one.
        assert consumer.asked < _MANY / 2


def test_partitions_that_move_while_nothing_is_read(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: all(len(each) == _RECORDS for each in first.read.values()), first)
        first.reading.commit(at(topic, {0: _RECORDS, 1: _RECORDS}), wait=True)
        with Member(kafka, topic) as second:
            pause_until(lambda: len(first.partitions) == len(second.partitions) == 1, first, second)
            # What was read before is written without reading on.
            pause_until(lambda: first.reading.metadata is not None, first, second)
            first.poll()
        until(lambda: len(first.partitions) == 2, first)
        write_to(kafka, topic)
        until(lambda: all(len(each) == 2 * _RECORDS for each in first.read.values()), first)


def test_buffered_records_of_a_partition_that_went(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        while len({each.partition() for each in first.reading._buffered}) < 2:
            first.reading._poll_into_buffer(_STEADY_S)
        with Member(kafka, topic) as second:
            pause_until(lambda: len(first.partitions) == len(second.partitions) == 1, first, second)
            (gone,) = second.partitions
            until(lambda: len(second.read[gone]) == _RECORDS, second)
            second.reading.commit(at(topic, {gone: _RECORDS}), wait=True)
        pause_until(lambda: len(first.partitions) == 2, first)
        until(lambda: len(first.read[1 - gone]) == _RECORDS, first)
        steady(first)
        assert first.read == {gone: [], 1 - gone: list(range(_RECORDS))}


def test_what_goes_from_one_that_is_another_member_by_now_is_lost(kafka: str, topic: str) -> None:
    with Member(kafka, topic) as first:
        until(lambda: len(first.partitions) == 2 and first.reading.metadata is not None, first)
        first.reading._member_id = "another"
        with Member(kafka, topic) as second:
            until(lambda: len(first.partitions) == len(second.partitions) == 1, first, second)
            assert first.was_shut_out
            assert first.could_finish is None
            assert first.reading.metadata is None


class Failing(Member):
    """One whose owner asks something that C refuses, in the words of C, when it is told of partitions."""

    def __init__(self, broker: str, topic: str) -> None:
        self.closed = Consumer({"bootstrap.servers": broker, "group.id": topic})
        self.closed.close()
        self.fails_when = ""
        super().__init__(broker, topic)

    def assigned(self, partitions: list[int]) -> None:
        super().assigned(partitions)
        self._fail("assigned")

    def revoked(self, partitions: list[int]) -> None:
        super().revoked(partitions)
        self._fail("revoked")

    def _fail(self, when: str) -> None:
        if self.fails_when == when:
            self.closed.assignment()


def test_what_fails_while_partitions_come_is_raised_to_who_polls(kafka: str, topic: str) -> None:
    with Failing(kafka, topic) as member:
        member.fails_when = "assigned"
        with pytest.raises(RuntimeError, match="closed"):
            until(lambda: False, member)
        until(lambda: sum(map(len, member.read.values())) == 2 * _RECORDS, member)


def test_what_fails_while_partitions_go_is_raised_to_who_leaves(kafka: str, topic: str) -> None:
    member = Failing(kafka, topic)
    until(lambda: len(member.partitions) == 2, member)
    member.fails_when = "revoked"
    with pytest.raises(RuntimeError, match="closed"):
        member.reading.close()
    with Member(kafka, topic) as other:
        until(lambda: len(other.partitions) == 2, other)


def test_who_a_member_is_that_is_being_closed_is_not_known(kafka: str, topic: str) -> None:
    member = Member(kafka, topic)
    until(lambda: len(member.partitions) == 2 and member.reading.metadata is not None, member)
    member.reading.close()
    assert member.reading._membership() is None


def test_a_group_that_cannot_be_left_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    let_go = threading.Event()
    member: Any = SimpleNamespace(close=let_go.wait)
    monkeypatch.setattr("railgun.messaging.kafka.group._LEAVE_S", 0.1)
    leave(member)
    let_go.set()
    assert "the group could not be left within 0.1 s" in caplog.text
