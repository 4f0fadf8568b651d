"""What begins inputs: one that cannot begin, or does not end, keeps no other one from that."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from frontend.topics import inputs
from frontend.topics.route import Route
from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.messaging.errors import (
    TransportClosedError,
    TransportRefusedError,
)
from railgun.messaging.kafka.topics import Described
from railgun.messaging.transport import TopicPartition
from railgun.registry.errors import RegistryBusyError
from railgun.registry.input_topics import InputTopic
from railgun.registry.topics import Topics
from tests.frontend.serving import until

WAIT_S = 20.0
TEXT = """
[streams.{0}]
fields = {{x = "long"}}
[streams.{0}.input]
topics = ["{0}"]
start = "{1}"
[streams.{0}.output]
topic = "{0}-out"
dead = "dead"
"""


class TwoStreams:
    """Two streams, each with a topic that is named after it, and a cluster that has them. Its methods can be replaced.

    begun: the streams whose inputs were begun, in order.
    made: the topics that were made.
    """

    def __init__(self, patch: pytest.MonkeyPatch, start: str = "latest") -> None:
        text = TEXT.format("a", start) + TEXT.format("b", start)
        changes, _ = missing_changes(Catalog(), parse_definitions(text))
        self.begun, self.made, self.names = list[str](), list[str](), Topics("p")
        self.means: Any = SimpleNamespace(
            exchange=None,
            topics=self.names,
            intakes=SimpleNamespace(now=SimpleNamespace(catalog=Catalog(changes))),
            registry=SimpleNamespace(number_topics=self.number_topics, mapped=dict),
        )
        self.transport: Any = SimpleNamespace(
            topics=lambda: {"a": 1, "b": 1},
            described=lambda topics: {topic: Described(topic, 1) for topic in topics},
            bounds_of=lambda wheres, within_s=None: dict.fromkeys(wheres, (0, 5)),
            offsets_at=lambda wheres, time_ms, within_s=None: dict.fromkeys(wheres, 5),
            committed=lambda group: {},
            create_topic=lambda topic, *_: self.made.append(topic),
        )
        self.starts: dict[str, Any] = {}
        reports = SimpleNamespace(close=lambda: None, of=lambda *_: None)
        patch.setattr(inputs, "StreamInput", self.begin)
        patch.setattr(inputs, "InputReports", lambda *_: reports)

    def number_topics(
        self, created: int, found: Any, starts: Callable[[str], Any], mapped: int
    ) -> list[InputTopic]:
        self.starts |= {name: starts(name) for name, _ in found}
        return [InputTopic(name, topic_id, 1) for name, topic_id in found]

    def begin(self, route: Route, topics: list[InputTopic], *others: object) -> Any:
        self.begun.append(route.stream)
        return SimpleNamespace(
            is_over=False,
            route=route,
            same_topics=others[-2],
            stop=lambda: None,
            join=lambda _: None,
            by_topic=lambda: [{"topic": each.name} for each in topics],
        )

    @contextmanager
    def opened(self) -> Iterator[inputs.Inputs]:
        made = inputs.Inputs(self.means, self.transport)
        try:
            yield made
        finally:
            made.close()


def test_an_input_that_does_not_come_back_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that asks something of a broker that is away."""

    def described(_: object) -> object:
        raise TransportClosedError("broker")

    monkeypatch.setattr(inputs, "_END_S", 0.1)
    came_back = threading.Event()
    stuck: Any = SimpleNamespace(stop=lambda: None, join=came_back.wait)
    transport: Any = SimpleNamespace(described=described)
    means: Any = SimpleNamespace(intakes=SimpleNamespace(now=SimpleNamespace(catalog=Catalog())))
    opened = inputs.Inputs(means, transport)
    opened._running["s"] = stuck
    closing = threading.Thread(target=opened.close, daemon=True)
    closing.start()
    closing.join(WAIT_S)
    came_back.set()
    assert not closing.is_alive()


def test_topics_that_may_not_be_made_hold_up_their_stream_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    two = TwoStreams(monkeypatch)

    def create_topic(topic: str, *_: object) -> None:
        if topic == "a-out":
            raise TransportRefusedError(topic, "not authorized", "Give this user the right Create")
        two.made.append(topic)

    two.transport.create_topic = create_topic
    with caplog.at_level(logging.ERROR, "railgun.frontend"), two.opened() as opened:
        until(lambda: bool(two.begun))
        (shown,) = opened.by_topic("a")
    assert (two.begun, two.made) == (["b"], ["b-out", "dead"])
    (said,) = caplog.messages
    assert said.startswith("a is not read for now, and again soon: a-out: not authorized")
    assert "Give this user the right Create" in said
    assert shown["topic"] == "a"
    assert said.endswith(shown["not_read"])


@pytest.mark.parametrize("error", [RegistryBusyError("catalog", 3, is_made=False), RuntimeError("planted")])
def test_what_keeps_an_input_from_beginning_holds_up_its_stream_alone(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inputs, "_LOOK_S", 0.01)
    two, is_there = TwoStreams(monkeypatch), threading.Event()
    number_topics, tried_s = two.number_topics, list[float]()

    def fails(created: int, found: Any, starts: Any, mapped: int) -> list[InputTopic]:
        (name, _), *_ = found
        if name == "a" and not is_there.is_set():
            tried_s.append(monotonic())
            raise error
        return number_topics(created, found, starts, mapped)

    two.means.registry.number_topics = fails
    with caplog.at_level(logging.ERROR, "railgun.frontend"), two.opened() as opened:
        until(lambda: two.begun == ["b"] and len(tried_s) > 1)
        (shown,) = opened.by_topic("a")
        assert opened.by_topic("b") == [{"topic": "b"}]
        is_there.set()
        until(lambda: two.begun == ["b", "a"])
        assert opened.by_topic("a") == [{"topic": "a"}]
    # It is tried now and then, not at each look.
    assert tried_s[1] - tried_s[0] > 0.4
    assert shown["not_read"] in (str(error), "a defect: RuntimeError")
    assert any(each.startswith("a is not read for now, and again soon: ") for each in caplog.messages)


@pytest.mark.parametrize("start", ["latest", "2026-01-31T00:00:00Z"])
def test_a_partition_without_a_leader_holds_up_its_stream_alone(
    start: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    two, has_leader = TwoStreams(monkeypatch, start), threading.Event()
    limits: list[float | None] = []

    def answers(end: Any) -> Callable[..., dict[TopicPartition, Any]]:
        def answer(wheres: list[TopicPartition], *more: Any) -> dict[TopicPartition, Any]:
            limits.append(more[-1] if more else None)
            return {where: end for where in wheres if where.topic != "a" or has_leader.is_set()}

        return answer

    two.transport.bounds_of, two.transport.offsets_at = answers((2, 5)), answers(4)
    with caplog.at_level(logging.ERROR, "railgun.frontend"), two.opened() as opened:
        until(lambda: two.begun == ["b"])
        assert [each["topic"] for each in opened.by_topic("a")] == ["a"]
        has_leader.set()
        until(lambda: two.begun == ["b", "a"])
    begin = 5 if start == "latest" else 4
    assert two.starts == {"a": [begin], "b": [begin]}
    assert "a-0: its leader does not say where it is to be begun" in caplog.messages[0]
    # The others wait meanwhile.
    assert limits[0] == 5.0


def test_a_defect_does_not_end_the_looking_for_inputs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inputs, "_AGAIN_MAX_S", 0.01)
    two, looks = TwoStreams(monkeypatch), list[int]()
    described = two.transport.described

    def fails(topics: Any) -> Any:
        looks.append(1)
        if len(looks) < 3:
            raise RuntimeError("planted")
        return described(topics)

    two.transport.described = fails
    with caplog.at_level(logging.ERROR, "railgun.frontend"), two.opened():
        until(lambda: two.begun == ["a", "b"])
    assert caplog.messages == ["a defect keeps input topics from being looked for now"] * 2


def test_topics_that_are_not_read_are_shown_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoStreams(monkeypatch)
    found: dict[str, Any] = {
        "a": TransportRefusedError("a", "not authorized", "Give this user the right Describe"),
        "b": Described("b", 20_000),
    }
    two.transport.described = lambda topics: dict(found)
    with two.opened() as opened:
        for stream, why in (
            ("a", "not authorized. Give this user the right Describe"),
            ("b", "it has 20000 partitions, more than 16384"),
        ):
            until(lambda stream=stream: bool(opened.by_topic(stream)))  # type: ignore[misc]
            assert opened.by_topic(stream) == [{"topic": stream, "not_read": why}]
        del found["a"]
        gone = [{"topic": "a", "not_read": "it does not exist"}]
        until(lambda: opened.by_topic("a") == gone)
        found["a"] = Described("a", 1)
        until(lambda: opened.by_topic("a") == [{"topic": "a"}])


def test_a_failure_is_shown_as_long_as_its_topics_are_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise RegistryBusyError("catalog", 3, is_made=False)

    two = TwoStreams(monkeypatch)
    two.means.registry.number_topics = fails
    two.transport.described = lambda topics: {each: Described(each, 1) for each in topics if each != "other"}
    with two.opened() as opened:
        until(lambda: "catalog: 3 attempts" in str(opened.by_topic("a")))
        text = TEXT.format("a", "latest").replace('["a"]', '["other"]')
        changes, _ = missing_changes(Catalog(), parse_definitions(text))
        two.means.intakes.now = SimpleNamespace(catalog=Catalog(changes))
        until(lambda: opened.by_topic("a") == [{"topic": "other", "not_read": "it does not exist"}])
