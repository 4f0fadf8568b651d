"""Replies and dead letters go to the topics that a stream names, with the keys and the fields that it says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frontend.exchange.front_end import FrontEnd
from frontend.topics import stream_output
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.topics import Topics
from tests.broker.own_topics import own_prefix
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, define
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.unit.local_units import quick_settings

DEFINITIONS = """
[streams.s]
id = "id"
time = "ts"
partitioners = ["card"]
record_replies = true
[streams.s.fields]
id = "long"
ts = { type = "timestamp", from = "at", unit = "s" }
card = "string"
amount = "decimal(9,2)"
ok = "boolean"
share = "double"
bin = { as = "SUBSTR(card, 1, 2)" }
hour = { as = "HOUR(ts IN 'Europe/Lisbon')" }
[streams.s.output]
topic = "NAMES.scored"
dead = "NAMES.rejected"
key = "input"
include = ["ts", "card", "bin", "hour", "amount", "ok", "share", "id"]
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY card OVER INFINITE"
[[metrics]]
sql = "DERIVE n + 1 AS bin2 FROM s"
"""
AT_S = 1_751_000_000


def event(number: int, **more: Any) -> dict[str, Any]:
    own = {
        "id": number,
        "at": AT_S + number,
        "card": f"c{number}ä",
        "amount": "1.50",
        "ok": True,
        "share": 0.25,
    }
    return own | more


def fields(number: int, **more: Any) -> dict[str, Any]:
    """What the reply to an event repeats."""
    own = {"ts": (AT_S + number) * 1000, "card": f"c{number}ä", "bin": f"c{number}"[:2], "hour": 5}
    return own | {"amount": "1.50", "ok": True, "share": 0.25, "id": number} | more


@pytest.fixture
def names() -> str:
    """How the named topics begin."""
    return own_prefix("n")


@pytest.fixture
def cluster(kafka: str, tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(kafka, tmp_path) as made:
        yield made


def named_topic(cluster: LocalCluster, names: str, partitions: int = 1) -> InputTopic:
    out, dead = f"{names}.scored", f"{names}.rejected"
    return InputTopic(cluster.broker, cluster.prefix, "s", partitions, out=out, dead=dead)


def begun(cluster: LocalCluster, names: str) -> RunningFrontEnd:
    served = cluster.serve()
    define(served.client, DEFINITIONS.replace("NAMES", names))
    cluster.start_units(1)
    return served


def test_replies_as_the_output_says(cluster: LocalCluster, names: str) -> None:
    served = begun(cluster, names)
    with named_topic(cluster, names) as topic:
        for number, key in enumerate((b"a key", None, b"")):
            topic.send([event(number)], key=key)
        topic.send([event(n) for n in range(3, 203)], key=b"many")
        topic.send([event(203, card=None, amount=None, ok=None, share=None)])
        topic.send([{"id": 1.5}, event(204, at="soon")], key=b"bad")
        replies = topic.await_replies(204)
        assert [each["fields"] for each in replies[:203]] == [fields(n) for n in range(203)]
        nulls = dict.fromkeys(("card", "bin", "amount", "ok", "share"))
        assert replies[203]["fields"] == fields(203) | nulls
        assert [message.key() for message in topic.written] == [b"a key", None, b"", *[b"many"] * 200, None]
        assert [headers_of(each)["offset"] for each in topic.written] == [str(n) for n in range(204)]
        letters = topic.await_letters(2)
        assert [(each.key(), headers_of(each)["offset"]) for each in letters] == [
            (b"bad", "204"),
            (b"bad", "205"),
        ]

        # Replies over HTTP repeat nothing; in the topic they do, without the key of a record.
        alone = served.score("s", event(250))
        assert "fields" not in alone
        many = served.score("s", [event(251 + n) for n in range(100)])
        written = topic.await_replies(305)[204:]
        by_id = {each["id"]: each for each in written}
        assert [by_id[each["id"]] for each in [alone, *many]] == [
            each | {"fields": fields(each["id"])} for each in [alone, *many]
        ]
        assert {message.key() for message in topic.written[204:]} == {None}
        assert not any(message.headers() for message in topic.written[204:])
    with KafkaTransport(quick_settings(cluster.broker)) as transport:
        topics = transport.topics()
    assert topics[f"{names}.rejected"] == 1
    assert not {cluster.prefix + ".s.out", cluster.prefix + ".s.dead"} & topics.keys()


def test_an_output_that_changes_while_events_come(cluster: LocalCluster, names: str) -> None:
    """What is read afterwards is answered elsewhere, and nothing is lost or answered twice."""
    served = begun(cluster, names)
    with named_topic(cluster, names) as topic, KafkaTransport(quick_settings(cluster.broker)) as transport:
        topic.send([event(n) for n in range(50)], key=b"k")
        topic.await_replies(50)
        other = {"topic": f"{names}.later", "include": ["id"]}
        changed = served.client.patch("/v1/streams/s", json={"output": other})
        assert (changed.status_code, changed.json()["output"]) == (200, other), changed.text
        until(lambda: f"{names}.later" in transport.topics())
        topic.send([event(n) for n in range(50, 100)], key=b"k")
        later = topic.tail(f"{names}.later")
        until(lambda: later.read() is None and len(later.messages) == 50)
        for number, message in enumerate(later.messages, 50):
            said = json.loads(message.value() or b"")
            assert (message.key(), said["id"], said["fields"]) == (b"%d" % number, number, {"id": number})
        assert len(topic.replies) == 50
        taken_back = served.client.patch("/v1/streams/s", json={"output": None})
        assert "output" not in taken_back.json()
        default = cluster.prefix + ".s.out"
        until(lambda: default in transport.topics())
        assert "fields" not in served.score("s", event(100))
        out = topic.tail(default)
        until(lambda: out.read() is None and len(out.messages) == 1)
        assert b"fields" not in (out.messages[0].value() or b"")


def test_fields_that_are_too_large_are_null(
    cluster: LocalCluster, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_output, "MESSAGE_LIMIT_BYTES", stream_output._HEADERS_BYTES + 300)
    begun(cluster, names)
    with named_topic(cluster, names) as topic:
        topic.send([event(0), event(1, card="c" * 300), event(2)], key=b"k")
        topic.send([event(3)], key=b"k" * 300)
        replies = topic.await_replies(4)
        assert [each["fields"] for each in replies] == [fields(0), None, fields(2), fields(3)]
        assert [message.key() for message in topic.written] == [b"k", b"k", b"k", None]


def test_outputs_that_are_refused(cluster: LocalCluster, names: str) -> None:
    served = begun(cluster, names)
    body = {"name": "other", "fields": {"x": "long"}}

    def refused(output: dict[str, Any], status: int = 409) -> str:
        answer = served.post("/v1/streams", {**body, "output": output})
        assert answer.status_code == status, answer.text
        return str(answer.json()["detail"])

    assert refused({"topic": f"{names}.scored"}) == (
        f"other: {names}.scored cannot be the output topic: it is the output topic of another stream; name another one"
    )
    assert "it is an input topic of another stream" in refused({"topic": f"{cluster.prefix}.s.in"})
    assert "it is a topic of the tasks of this stream" in refused({"dead": f"{cluster.prefix}.other.all"})
    assert "output.include: there is no field 'y'; known here: x" in refused({"include": ["y"]}, 422)
    assert [each["name"] for each in served.client.get("/v1/streams").json()["streams"]] == ["s"]
    dropped = served.client.patch("/v1/streams/s", json={"fields": {"bin": None}})
    assert dropped.status_code == 409
    assert dropped.json()["detail"] == "s: the field bin is in the include of the output"


def test_they_are_refused_until_all_read_them(cluster: LocalCluster) -> None:
    """A front-end of an earlier release has a reply topic, and says nothing of itself."""
    client = cluster.serve().client
    plain = {"name": "t", "fields": {"x": "long"}}
    with KafkaTransport(quick_settings(cluster.broker)) as transport:
        earlier = Topics(cluster.prefix).replies(FrontEnd("earlier").number)
        transport.create_topic(earlier, 1)
        assert client.post("/v1/streams", json=plain).status_code == 201
        refused = client.patch("/v1/streams/t", json={"output": {"key": "input"}})
        assert refused.status_code == 409
        assert refused.json()["detail"].startswith(
            f"outputs (here of t) are not read by the front-end of the topic {earlier}"
        )
        transport.delete_topic(earlier)
        until(lambda: earlier not in transport.topics())
        assert client.patch("/v1/streams/t", json={"output": {"key": "input"}}).status_code == 200
