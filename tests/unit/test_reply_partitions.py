"""A partition that takes no replies for a while loses them; a broker that takes nothing at all loses none."""

import math
from concurrent.futures import Future

import pytest

from railgun.cluster.hearing import Hearing, Timing
from railgun.messaging.errors import TransportRefusedError
from railgun.messaging.transport import Entry, TopicPartition
from railgun.unit.clock import Clock
from railgun.unit.outstanding import Outstanding
from railgun.unit.reply_partitions import RepliesGivenUpError, ReplyPartitions, Sent
from railgun.wire.records import Records


def _reply(front_end: int) -> Entry:
    return Entry(TopicPartition(f"replies.{front_end}", 0), Records.of([bytes(100)]))


class World:
    """A broker of which some partitions take nothing."""

    def __init__(self) -> None:
        self.now_s, self.dropped, self.reached_since_s = 0.0, 0, -math.inf
        self.closed: set[str] = set()
        self.waiting: list[tuple[str, Future[list[int]]]] = []
        self.partitions = ReplyPartitions(self._submit, self._drop, Clock(lambda: self.now_s))

    def send(self, front_end: int) -> Sent:
        return self.partitions.send(_reply(front_end))

    def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            for topic, future in self.waiting:
                if topic not in self.closed and not future.done():
                    future.set_result([0])
            self.partitions.look(self.reached_since_s)

    def _submit(self, entry: Entry) -> Future[list[int]]:
        self.waiting.append((entry.where.topic, Future()))
        return self.waiting[-1][1]

    def _drop(self, replies: int) -> None:
        self.dropped += replies


@pytest.fixture
def world() -> World:
    return World()


def test_they_are_given_up_after_ten_seconds_and_those_of_others_are_not(world: World) -> None:
    world.closed.add("replies.1")
    first, second = world.send(1), world.send(2)
    outstanding = Outstanding("a task")
    outstanding.add(5, _reply(1).where, first)
    world.pass_s(9.8)
    assert (first.done(), second.result(0)) == (False, [0])
    assert outstanding.replied(9) == 5
    world.pass_s(0.4)
    with pytest.raises(RepliesGivenUpError):
        first.result(0)
    assert outstanding.replied(9) == 9
    # Those to come are not even tried: they would use up room for nothing.
    assert isinstance(world.send(1).exception(0), RepliesGivenUpError)
    assert (world.dropped, len(world.waiting)) == (2, 2)


def test_a_partition_that_takes_replies_again_gets_those_to_come(world: World) -> None:
    world.closed.add("replies.1")
    lost = world.send(1)
    world.pass_s(30.0)
    assert isinstance(lost.exception(0), RepliesGivenUpError)
    world.closed.clear()
    world.pass_s(0.2)
    later = world.send(1)
    world.pass_s(0.1)
    assert (later.result(0), world.dropped) == ([0], 1)


def test_one_that_takes_a_reply_now_and_then_loses_none(world: World) -> None:
    """A backlog may be older than ten seconds."""
    replies = [world.send(1) for _ in range(5)]
    for number in range(5):
        world.closed.add("replies.1")
        world.pass_s(8.0)
        world.waiting[number][1].set_result([number])
    world.pass_s(0.1)
    assert [each.result(0) for each in replies] == [[number] for number in range(5)]


def test_while_the_broker_takes_nothing_none_is_given_up(world: World) -> None:
    world.closed |= {"replies.1", "replies.2"}
    replies = [world.send(1), world.send(2)]
    world.reached_since_s = math.inf
    world.pass_s(60.0)
    # It is there again, and has taken a report, but not these yet.
    world.reached_since_s = world.now_s
    world.pass_s(9.8)
    assert not any(each.done() for each in replies)
    world.closed.clear()
    world.pass_s(0.1)
    assert [each.result(0) for each in replies] == [[0], [0]]


def test_a_slow_one_is_known_soon(world: World) -> None:
    world.closed.add("replies.1")
    world.send(1)
    world.send(2)
    world.pass_s(0.4)
    assert not world.partitions.slow
    world.pass_s(0.3)
    assert (world.partitions.slow, world.partitions.slow_bytes) == ({_reply(1).where}, 100)
    world.pass_s(10.0)
    assert (world.partitions.slow, world.partitions.slow_bytes) == (set(), 0)


def test_an_error_of_the_transport_comes_through(world: World) -> None:
    world.closed.add("replies.1")
    reply, outstanding = world.send(1), Outstanding("a task")
    outstanding.add(5, _reply(1).where, reply)
    world.waiting[0][1].set_exception(TransportRefusedError("broker", "no right", "Grant it"))
    with pytest.raises(TransportRefusedError):
        outstanding.replied(9)


def test_since_when_reports_are_acknowledged() -> None:
    hearing = Hearing(Timing(), 0.0)
    assert hearing.reached_since_s(0.0) == math.inf
    for tenth in range(10, 50):
        hearing.acknowledge(hearing.write(tenth / 10, 0.1), tenth / 10)
    assert hearing.reached_since_s(5.0) == 1.0
    assert hearing.reached_since_s(8.0) == math.inf
    hearing.acknowledge(hearing.write(20.0, 0.1), 20.0)
    assert hearing.reached_since_s(20.1) == 20.0
