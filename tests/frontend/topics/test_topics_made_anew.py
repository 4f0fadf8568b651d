"""Input topics that are deleted, made anew, and soon have more records than before, while they are read."""

import threading
import time
from collections.abc import Collection
from math import inf
from pathlib import Path
from typing import Any

import pytest

from frontend.topics import same_topics
from frontend.topics.inputs import Inputs
from frontend.topics.same_topics import SameTopics
from railgun.messaging.errors import TransportRefusedError, TransportUnavailableError
from railgun.messaging.kafka.topics import Described
from tests.broker.own_topics import own_prefix
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import PATIENCE_S
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_crashes import place_of
from tests.frontend.topics.test_input_topic import define
from tests.frontend.topics.test_named_topics import STREAMS, await_reading, events, reads

_OLD, _NEW, _BATCH = 5, 1_000, 25


@pytest.fixture
def may_look(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """While it is not set, no front-end looks for topics."""
    may, look = threading.Event(), Inputs._look

    def held(own: Inputs) -> None:
        may.wait(PATIENCE_S)
        look(own)

    monkeypatch.setattr(Inputs, "_look", held)
    may.set()
    return may


@pytest.mark.parametrize("is_held", [False, True])
def test_each_event_of_the_new_topic_is_answered_once(
    kafka: str, tmp_path: Path, may_look: threading.Event, *, is_held: bool
) -> None:
    """Its events have no ids: one that was published under the old topic's number and under its own would count twice.

    is_held: whether front-ends look for topics only after librdkafka has read on in the new one, at the old offset.
    """
    name = own_prefix("prod")
    with (
        LocalCluster(kafka, tmp_path) as cluster,
        InputTopic(kafka, cluster.prefix, "two", 2, name) as topic,
    ):
        define(cluster, STREAMS)
        cluster.start_units(1)
        served = cluster.serve()
        reads(served, "two", {"topics": [name]})
        await_reading(served, "two", name)
        for partition in range(2):
            topic.send(events(_OLD), partition)
        topic.await_replies(2 * _OLD)
        if is_held:
            may_look.clear()
            # One may be under way.
            time.sleep(0.2)
        topic.delete()
        topic.make()
        for batch in range(_NEW // _BATCH):
            topic.send(events(_BATCH), batch % 2)
            time.sleep(0.1)
        may_look.set()
        count = 2 * _OLD + _NEW
        topic.await_replies(count, 2 * PATIENCE_S)
        # Nothing comes afterwards.
        time.sleep(2.0)
        assert sorted(each["metrics"]["n"] for each in topic.replies) == list(range(1, count + 1))
        found = sorted(map(place_of, topic.written))
        assert found == sorted((each, at) for each in range(2) for n in (_OLD, _NEW // 2) for at in range(n))


class Broker:
    """Describes topics as it is told."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {"a": Described("id-a", 1), "b": Described("id-b", 1)}
        self.is_away = False
        self.has_new_mapping = False
        self.asked = 0

    def described(self, topics: Collection[str], within_s: float) -> dict[str, Any]:
        self.asked += 1
        assert set(topics) == {"a", "b"}
        assert within_s == same_topics._ANSWER_S
        if self.is_away:
            raise TransportUnavailableError("broker", "away", "Wait")
        return self.found

    def is_mapped_so(self) -> bool:
        return not self.has_new_mapping


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time."""
    found = [100.0]
    monkeypatch.setattr(same_topics, "monotonic", lambda: found[0])
    return found


def test_the_broker_is_asked_only_if_nobody_else_has_looked(now: list[float]) -> None:
    broker: Any = Broker()
    same = SameTopics({"a": "id-a", "b": "id-b"}, broker, broker.is_mapped_so)
    same.see(99.5)
    same.see(99.0)
    assert (same.were_seen(99.4), broker.asked) == (True, 0)
    assert (same.were_seen(99.5), broker.asked) == (True, 1)
    assert (same.were_seen(99.9), broker.asked) == (True, 1), "it was seen at 100"
    assert (same.were_seen(100.0), broker.asked) == (False, 1), "it was asked just now"
    now[0] = 100.2
    assert (same.were_seen(100.0), broker.asked) == (True, 2)


@pytest.mark.parametrize(
    "found",
    [None, Described("another", 1), TransportRefusedError("b", "not authorized", "Give this user Describe")],
)
def test_topics_that_are_others_by_now(now: list[float], found: object) -> None:
    broker: Any = Broker()
    same = SameTopics({"a": "id-a", "b": "id-b"}, broker, broker.is_mapped_so)
    broker.found["b"] = found
    if found is None:
        del broker.found["b"]
    assert not same.were_seen(-inf)


def test_a_broker_that_is_away_is_asked_again(now: list[float]) -> None:
    broker: Any = Broker()
    same = SameTopics({"a": "id-a", "b": "id-b"}, broker, broker.is_mapped_so)
    broker.is_away = True
    assert not same.were_seen(99.0)
    broker.is_away = False
    assert not same.were_seen(99.0)
    now[0] = 100.2
    assert same.were_seen(99.0)


def test_nothing_is_taken_by_a_mapping_that_holds_no_more(now: list[float]) -> None:
    """As by a front-end that was away for so long that its group has forgotten it."""
    broker: Any = Broker()
    same = SameTopics({"a": "id-a", "b": "id-b"}, broker, broker.is_mapped_so)
    same.see(99.0)
    broker.has_new_mapping = True
    assert not same.were_seen(99.5)
