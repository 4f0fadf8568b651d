"""Events through topics: every one is answered or has a letter, whatever stands between them."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.definitions import parse_definitions
from railgun.registry import evolution
from railgun.registry.kafka_registry import KafkaRegistry
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.unit.local_units import quick_settings

Event = Callable[..., dict[str, Any]]
PLAIN = """
[streams.plain]
partitioners = ["card"]
[streams.plain.fields]
card = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM plain GROUP BY card OVER INFINITE"
"""


def define(cluster: LocalCluster, definitions: str) -> None:
    """Have these registered before there is a front-end."""
    with KafkaRegistry(quick_settings(cluster.broker), cluster.prefix) as registry:
        registry.change(lambda catalog: evolution.missing(catalog, parse_definitions(definitions)))


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(kafka, tmp_path) as made:
        define(made, PAYMENTS)
        made.start_units(1)
        yield made


def test_events_come_in_and_replies_go_out(cluster: LocalCluster, event: Event) -> None:
    with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
        served = cluster.serve()
        sent = [event(card="in") for _ in range(300)]
        for first in range(0, 300, 100):
            topic.send(sent[first : first + 100])
        replies = topic.await_replies(300)
        assert [reply["id"] for reply in replies] == [each["tx_id"] for each in sent]
        assert [reply["metrics"]["n7"] for reply in replies] == list(range(1, 301))
        assert [key.decode() for key, _ in topic.answered] == [each["tx_id"] for each in sent]
        places = [headers_of(message) for message in topic.written]
        assert places == [
            {"topic": topic.input, "partition": "0", "offset": str(offset)} for offset in range(300)
        ]
        assert served.score("payments", event(card="in"))["metrics"]["n7"] == 301


def test_an_input_topic_that_comes_later_is_found(cluster: LocalCluster, event: Event) -> None:
    cluster.serve()
    with InputTopic(cluster.broker, cluster.prefix, "payments", 2) as topic:
        first, second = event(), event()
        topic.send([first], 0)
        topic.send([second], 1)
        replies = topic.await_replies(2)
        places = {
            json.loads(message.value() or b"")["id"]: headers_of(message)["partition"]
            for message in topic.written
        }
        assert len(replies) == 2
        assert places == {first["tx_id"]: "0", second["tx_id"]: "1"}


def test_what_cannot_be_used_is_kept_with_the_reason(
    cluster: LocalCluster, event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    bad: list[Any] = [
        b"\xff\xfe",
        b"",
        b"[" * 100_000,
        [1, 2],
        {**event(), "n": 2**63},
        {**event(), "ts": "9999-12-31T23:59:59Z"},
        {**event(), "amount": "much"},
        {"ts": 1},
        b"\0\0\0\0\x07avro",
    ]
    with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
        served = cluster.serve()
        good = [event(card="c") for _ in bad]
        mixed = [each for pair in zip(bad, good) for each in pair]
        offsets = topic.send(mixed, key=b"a key")
        replies, letters = topic.await_replies(len(good)), topic.await_letters(len(bad))
        assert [reply["metrics"]["n7"] for reply in replies] == list(range(1, len(good) + 1))
        bodies = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in bad]
        assert [letter.value() for letter in letters] == bodies
        for letter, offset in zip(letters, offsets[::2]):
            said = headers_of(letter)
            assert said["topic"] == topic.input
            assert (said["partition"], said["offset"]) == ("0", str(offset))
            assert said["reason"]
            assert int(said["time"]) > 0
            assert letter.key() == b"a key"
        (stream,) = served.client.get("/v1/status").json()["streams"]
        assert [each["refused"] for each in stream["input"]] == [len(bad)]
        (line,) = [each for each in caplog.messages if "no event of the stream" in each]
        assert f"payments: a record of {topic.input}-0 " in line
        assert f"a letter in {cluster.prefix}.payments.dead, with the reason" in line
        assert "much" not in line


def test_events_without_an_id_get_one_of_their_position(kafka: str, tmp_path: Path) -> None:
    with LocalCluster(kafka, tmp_path) as cluster, InputTopic(kafka, cluster.prefix, "plain") as topic:
        define(cluster, PLAIN)
        cluster.start_units(1)
        cluster.serve()
        topic.send([{"card": "c"}])
        topic.send([{"card": "c"} for _ in range(200)])
        replies = topic.await_replies(201)
        assert [reply["metrics"]["n"] for reply in replies] == list(range(1, 202))
        ids = [uuid.UUID(reply["id"]) for reply in replies]
        assert len(set(ids)) == 201
        assert {each.version for each in ids} == {8}
        assert [each.int & (1 << 62) - 1 for each in ids] == list(range(201))


def test_replies_to_http_are_recorded_where_the_stream_says_so(
    kafka: str, tmp_path: Path, event: Event
) -> None:
    recorded = PAYMENTS.replace("[streams.payments]", "[streams.payments]\nrecord_replies = true", 1)
    with LocalCluster(kafka, tmp_path) as cluster:
        define(cluster, recorded)
        cluster.start_units(1)
        served = cluster.serve()
        alone = served.score("payments", event())
        sent = [event(card="r") for _ in range(100)]
        replies = served.post("/v1/streams/payments/events", [*sent, {"ts": 1}]).json()
        with InputTopic(kafka, cluster.prefix, "payments") as topic:
            assert topic.await_replies(101) == [alone, *replies[:100]]
            assert topic.answered[0][0].decode() == alone["id"]
            # By then it is an input topic too: of these there is each once.
            topic.send([event(card="r")])
            assert topic.await_replies(102)[-1]["metrics"]["n7"] == 101


def test_a_topic_that_is_made_anew_begins_anew(cluster: LocalCluster, event: Event) -> None:
    """Its positions are those of the old one, its events are not."""
    with InputTopic(cluster.broker, cluster.prefix, "payments") as topic:
        served = cluster.serve()
        inputs = served.backend.inputs
        assert inputs is not None
        topic.send([event(card="anew") for _ in range(5)])
        topic.await_replies(5)
        topic.delete()
        until(lambda: not inputs.running)
        topic.make()
        topic.send([event(card="anew") for _ in range(5)])
        assert [reply["metrics"]["n7"] for reply in topic.await_replies(10)[5:]] == [6, 7, 8, 9, 10]
        assert not any("duplicate" in reply for reply in topic.replies)


def test_a_front_end_takes_over_where_another_stops(cluster: LocalCluster, event: Event) -> None:
    with InputTopic(cluster.broker, cluster.prefix, "payments", 4) as topic:
        first = cluster.serve()
        for partition in range(4):
            topic.send([event(card=f"p{partition}") for _ in range(100)], partition)
        topic.await_replies(400)
        cluster.serve()
        for partition in range(4):
            topic.send([event(card=f"p{partition}") for _ in range(100)], partition)
        topic.await_replies(800)
        first.service.stop()
        for partition in range(4):
            topic.send([event(card=f"p{partition}") for _ in range(100)], partition)
        expected = sorted(list(range(1, 301)) * 4)
        until(lambda: len(_distinct(topic.await_replies(1_200))) == len(expected))
        assert sorted(reply["metrics"]["n7"] for reply in _distinct(topic.replies)) == expected


def _distinct(replies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One of each; what was written last may come again from whoever takes over."""
    return [json.loads(text) for text in {json.dumps(reply) for reply in replies}]
