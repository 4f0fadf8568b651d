"""Replies to a front-end whose topic is not there yet are kept for a while; nothing overtakes them."""

from concurrent.futures import Future

import pytest

from railgun.messaging.errors import TopicMissingError, TransportFullError, TransportUnavailableError
from railgun.messaging.transport import Entry, TopicPartition
from railgun.unit import held_replies
from railgun.unit.clock import Clock
from railgun.unit.held_replies import HeldReplies
from railgun.wire.records import Records

FRONT_END = 7


def reply(text: bytes) -> Entry:
    return Entry(TopicPartition("replies.7", 0), Records.of([text]))


class World:
    """A broker that knows no topic until `error` is None."""

    def __init__(self) -> None:
        self.now_s, self.gone = 0.0, 0
        self.error: Exception | None = TopicMissingError("replies.7")
        self.sent: list[bytes] = []
        self.held = HeldReplies(self.submit, self.give_up, Clock(lambda: self.now_s))

    def submit(self, entry: Entry) -> "Future[list[int]]":
        if self.error is not None:
            raise self.error
        self.sent += entry.records.to_list()
        done: Future[list[int]] = Future()
        done.set_result([len(self.sent)])
        return done

    def give_up(self, replies: int) -> None:
        self.gone += replies

    def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            self.held.retry()


@pytest.fixture
def world() -> World:
    return World()


def test_they_are_sent_in_order_once_the_topic_is_there(world: World) -> None:
    first = world.held.send(FRONT_END, reply(b"a"))
    world.pass_s(2.0)
    world.error = None
    second = world.held.send(FRONT_END, reply(b"b"))
    assert (world.sent, first.done(), second.done()) == ([], False, False)
    world.pass_s(0.4)
    assert (world.sent, first.result(0), second.result(0)) == ([b"a", b"b"], [1], [2])
    assert world.held.send(FRONT_END, reply(b"c")).result(0) == [3]
    assert not len(world.held)


def test_a_front_end_is_gone_when_its_topic_has_been_missing_for_a_while(world: World) -> None:
    futures = [world.held.send(FRONT_END, reply(b"a")) for _ in range(3)]
    world.pass_s(2.9)
    assert not any(each.done() for each in futures)
    world.pass_s(0.5)
    assert world.gone == 3
    for each in futures:
        with pytest.raises(TopicMissingError):
            each.result(0)
    # It is not taken for gone for ever.
    again = world.held.send(FRONT_END, reply(b"b"))
    world.error = None
    world.pass_s(0.4)
    assert (world.sent, again.done()) == ([b"b"], True)


@pytest.mark.parametrize(
    "error", [TransportUnavailableError("b", "away", "wait"), TransportFullError("b", 9)]
)
def test_while_nobody_says_that_the_topic_is_missing_they_are_kept(world: World, error: Exception) -> None:
    future = world.held.send(FRONT_END, reply(b"a"))
    world.error = error
    world.pass_s(20.0)
    assert not future.done()
    if isinstance(error, TransportUnavailableError):
        # A broker that comes back may not know all of its topics at once.
        world.error = TopicMissingError("replies.7")
        world.pass_s(2.5)
        assert not future.done()
    world.error = None
    world.pass_s(0.4)
    assert future.done()


def test_replies_that_the_transport_has_no_room_for_are_kept_in_order(world: World) -> None:
    """The unit does not wait for room: it processes no more until there is some."""
    world.error = TransportFullError("b", 9)
    first, second = world.held.send(FRONT_END, reply(b"a")), world.held.send(FRONT_END, reply(b"b"))
    assert world.held.is_full
    world.pass_s(20.0)
    assert (world.held.is_full, first.done(), second.done()) == (True, False, False)
    world.error = None
    world.pass_s(0.4)
    assert (world.held.is_full, world.sent) == (False, [b"a", b"b"])


def test_a_reply_whose_topic_cannot_be_looked_for_is_kept(world: World) -> None:
    world.error = TransportUnavailableError("b", "away", "wait")
    future = world.held.send(FRONT_END, reply(b"a"))
    world.pass_s(20.0)
    assert not future.done()
    world.error = None
    world.pass_s(0.4)
    assert world.sent == [b"a"]


def test_what_is_kept_has_a_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_replies, "_LIMIT_BYTES", 100)
    first = world.held.send(1, reply(b"x" * 60))
    world.now_s += 0.1
    second = world.held.send(2, reply(b"x" * 60))
    assert isinstance(first.exception(0), TopicMissingError)
    assert (second.done(), world.gone) == (False, 1)
