"""`GET /v1/streams/{stream}/dead` of a cluster: whose letters, why, where, what of their bytes, within which bounds."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from railgun.client.client import Client
from railgun.config.settings import ConsoleSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition
from railgun.registry.topics import Topics
from railgun.unit.outstanding import Outstanding
from railgun.unit.sending import DeadLetter, Sending
from tests.broker.own_topics import own_prefix
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd
from tests.frontend.serving import Server, until
from tests.frontend.topics.input_topic import InputTopic
from tests.frontend.topics.test_input_topic import define
from tests.unit.local_units import awaited, quick_settings

STREAM = """
[streams.{name}]
id = "id"
[streams.{name}.fields]
id = "string"
a = "long"
[streams.{name}.input]
topics = ["{topic}"]
[streams.{name}.output]
dead = "{dead}"
"""
BIG = 1_000_000


class Letters:
    """Two streams with one topic of dead letters, and a front-end that reads their inputs.

    crossed: `theirs` has its letters in the topic in which `ours` would have them.
    """

    def __init__(
        self, broker: str, folder: Path, masks: tuple[str, ...] = (), crossed: bool = False, **http: Any
    ) -> None:
        self.cluster = LocalCluster(broker, folder)
        self.topics = Topics(self.cluster.prefix)
        self.dead, self.ours, self.theirs = own_prefix("d-"), own_prefix("i-"), own_prefix("i-")
        self.dead_of_theirs = self.topics.dead("ours") if crossed else self.dead
        streams = (("ours", self.ours, self.dead), ("theirs", self.theirs, self.dead_of_theirs))
        define(
            self.cluster,
            "".join(STREAM.format(name=name, topic=topic, dead=dead) for name, topic, dead in streams),
        )
        self.inputs = [
            InputTopic(broker, self.cluster.prefix, name, 2, name=topic, dead=dead)
            for name, topic, dead in streams
        ]
        self.served: RunningFrontEnd = self.cluster.serve(console=ConsoleSettings(masks=masks), **http)
        self._producer = Producer({"bootstrap.servers": broker, "message.max.bytes": 20_000_000})

    def write(
        self, value: bytes | None, headers: dict[str, Any], key: bytes | None = None, topic: str = ""
    ) -> None:
        """Write a letter as any program may."""
        self._producer.produce(topic or self.dead, value, key, partition=0, headers=[*headers.items()])
        assert self._producer.flush(30.0) == 0

    def get(self, stream: str = "ours", **asked: Any) -> Any:
        response = self.served.client.get(f"/v1/streams/{stream}/dead", params={"within_ms": 30_000, **asked})
        assert response.status_code == 200, response.text
        return response.json()

    def reasons(self, stream: str = "ours", **asked: Any) -> list[str]:
        return [each["reason"] for each in self.get(stream, **asked)["letters"]]

    def close(self) -> None:
        for each in self.inputs:
            each.close()
        self.cluster.close()


@pytest.fixture
def letters(kafka: str, tmp_path: Path) -> Iterator[Letters]:
    made = Letters(kafka, tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_letters_of_the_stream_alone_the_newest_first(letters: Letters) -> None:
    ours, theirs = letters.inputs
    ours.send([{"id": "1", "a": "many"}], partition=1, key=b"k1")
    ours.await_letters(1)
    theirs.send([{"id": "2", "a": "secret"}])
    ours.await_letters(2)
    ours.send([b"no JSON"])
    ours.await_letters(3)
    found = letters.get()
    assert (found["topics"], found["stopped"], found["before"], found["masked"]) == (
        [letters.dead],
        None,
        None,
        False,
    )
    newest, first = found["letters"]
    assert "no JSON" in newest["reason"]
    assert newest["value"] == {"bytes": 7, "cut": False, "text": "no JSON", "base64": None}
    assert newest["record"] == {"topic": letters.ours, "partition": 0, "offset": 0}
    assert first["reason"] == "a: the string 'many' is not a long"
    assert first["record"] == {"topic": letters.ours, "partition": 1, "offset": 0}
    assert first["key"] == {"bytes": 2, "cut": False, "text": "k1", "base64": None}
    assert json.loads(first["value"]["text"]) == {"id": "1", "a": "many"}
    assert (first["kind"], first["late"], first["topic"]) == ("refused", None, letters.dead)
    assert first["time_ms"] <= newest["time_ms"]
    headers = {each["name"]: each["value"]["text"] for each in first["headers"]}
    assert list(headers) == ["reason", "topic", "partition", "offset", "stream", "time"]
    assert headers["stream"] == "ours"
    assert letters.reasons("theirs") == ["a: the string 'secret' is not a long"]
    assert "secret" not in json.dumps(found)
    # What does not say whose it is, in a topic of two streams, is shown of none.
    letters.write(b"old", {"reason": b"of an earlier release", "topic": letters.ours.encode()})
    assert len(letters.get()["letters"]) == 2
    assert len(letters.get("theirs")["letters"]) == 1


def test_letters_of_units_are_of_their_stream_alone(kafka: str, tmp_path: Path) -> None:
    made = Letters(kafka, tmp_path, crossed=True)
    transport = KafkaTransport(quick_settings(kafka))
    try:
        _, theirs = made.inputs
        theirs.send([b"{"])
        theirs.await_letters(1)
        log = TopicPartition(made.topics.tasks("ours", "*"), 0)
        outstanding = Outstanding("a task")
        Sending(transport, made.topics).dead_letter(
            outstanding, "ours", log, [DeadLetter(9, b"secret", "damaged")]
        )
        awaited(lambda: outstanding.replied(20) == 20)
        # As units of an earlier release wrote it; and one of a log of a stream that is no more.
        place = {"topic": log.topic.encode(), "partition": b"0", "offset": b"10"}
        made.write(b"secret", {"reason": b"old", **place}, topic=made.dead_of_theirs)
        gone = {"reason": b"gone", "topic": made.topics.tasks("gone", "*").encode()}
        made.write(b"secret", gone, topic=made.dead_of_theirs)
        made.write(b"secret", gone, topic=made.dead)
        assert [each["kind"] for each in made.get("theirs")["letters"]] == ["refused"]
        assert made.reasons("ours") == ["old", "damaged"]
        assert [each["kind"] for each in made.get("ours")["letters"]] == ["damaged"] * 2
        # What another program has written is shown where no other stream writes.
        made.write(b"?", {}, topic=made.dead)
        made.write(b"?", {}, topic=made.dead_of_theirs)
        assert [each["kind"] for each in made.get("ours")["letters"]] == ["other", "damaged", "damaged"]
        assert [each["kind"] for each in made.get("theirs")["letters"]] == ["refused"]
    finally:
        transport.close()
        made.close()


def test_kinds_reasons_and_parts(letters: Letters) -> None:
    ours, _ = letters.inputs
    ours.send([b"{"])
    ours.await_letters(1)
    topics = letters.served.backend.running.ready().registry.topics
    log = topics.tasks("ours", "*")
    for number in range(60):
        letters.write(b"%d" % number, {"reason": b"LATE %d" % number, "late": b"a,b", "stream": b"ours"})
    letters.write(
        b"log", {"reason": b"checksum", "topic": log.encode(), "partition": b"0", "stream": b"ours"}
    )
    letters.write(b"?", {"stream": b"ours"})
    found = letters.get(limit=500)
    assert [each["kind"] for each in found["letters"]] == ["other", "damaged", *["late"] * 60, "refused"]
    assert found["letters"][2]["late"] == ["a", "b"]
    assert found["letters"][0]["record"] is found["letters"][0]["reason"] is None
    assert [each["kind"] for each in letters.get(kind="damaged")["letters"]] == ["damaged"]
    assert letters.reasons(reason="late 5") == [
        "LATE 59",
        *(f"LATE {each}" for each in range(58, 49, -1)),
        "LATE 5",
    ]
    assert letters.reasons(kind="late", reason="checksum") == []
    # In parts each comes once.
    seen: list[int] = []
    before: dict[str, str] = {}
    while True:
        part = letters.get(limit=7, **before)
        seen += [each["offset"] for each in part["letters"]]
        if part["before"] is None:
            break
        assert part["stopped"] == "limit"
        before = {"before": part["before"]}
    assert len(seen) == 63
    assert sorted(seen) == sorted(each["offset"] for each in found["letters"])
    with Client(letters.served.service.url) as client:
        assert client.dead("ours", limit=500) == found
        assert (
            len(client.dead("ours", limit=2, kind="late", reason="late 5", within_ms=9_000)["letters"]) == 2
        )


def test_every_payload(letters: Letters) -> None:
    ours, _ = letters.inputs
    ours.send([b"{"])
    ours.await_letters(1)
    big = ("é" * (BIG // 2)).encode()
    payloads = [b"", None, b"\xff\x00\xfe", b"\0a\0", "\u202e<script>".encode(), b"x" + big, b"\xff" * BIG]
    for each in payloads:
        letters.write(each, {"reason": b"\xff<b>", "stream": b"ours", "x": None, "y": b"\xff"}, key=each)
    found = letters.get()["letters"][: len(payloads)]
    shown = [each["value"] for each in reversed(found)]
    assert shown == [each["key"] for each in reversed(found)]
    assert shown[0] == {"bytes": 0, "cut": False, "text": "", "base64": None}
    assert shown[1] is None
    assert shown[2] == {
        "bytes": 3,
        "cut": False,
        "text": None,
        "base64": base64.b64encode(b"\xff\x00\xfe").decode(),
    }
    assert shown[3]["text"] == "\0a\0"
    assert shown[4]["text"] == "\u202e<script>"
    # The last character that is shown would be divided.
    assert shown[5] == {"bytes": BIG + 1, "cut": True, "text": "x" + "é" * 8191, "base64": None}
    assert (shown[6]["bytes"], shown[6]["cut"]) == (BIG, True)
    assert base64.b64decode(shown[6]["base64"]) == b"\xff" * 16_384
    assert found[0]["reason"] == "\ufffd<b>"
    assert found[0]["headers"][2:] == [
        {"name": "x", "value": None},
        {"name": "y", "value": {"bytes": 1, "cut": False, "text": None, "base64": "/w=="}},
    ]


def test_a_mask_shows_places_and_kinds_alone(kafka: str, tmp_path: Path) -> None:
    made = Letters(kafka, tmp_path, ("ours.id",))
    try:
        ours, theirs = made.inputs
        ours.send([{"id": "secret", "a": "secret"}, b"secret {"], key=b"secret")
        theirs.send([{"id": "1", "a": "open"}])
        ours.await_letters(3)
        found = made.get()
        assert found["masked"] is True
        assert "secret" not in json.dumps(found)
        for each in found["letters"]:
            assert each["kind"] == "refused"
            assert each["record"]["topic"] == made.ours
            assert (each["reason"], each["key"], each["value"], each["headers"]) == (None, None, None, [])
        # A text that is hidden is not to be guessed at.
        response = made.served.client.get("/v1/streams/ours/dead?reason=secret")
        assert response.status_code == 422
        assert response.json()["detail"] == "reason: a mask of ours hides reasons; ask by kind"
        assert len(made.get(kind="refused")["letters"]) == 2
        assert made.reasons("theirs") == ["a: the string 'open' is not a long"]
    finally:
        made.close()


def test_headers_that_no_front_end_writes(letters: Letters) -> None:
    ours, _ = letters.inputs
    ours.send([b"{"])
    ours.await_letters(1)
    wild = {"reason": b"r", "topic": b"t" * 5_000, "partition": b"-1", "offset": b"9" * 40, "time": b"soon"}
    letters.write(b"v", wild | {"stream": b"ours"} | {f"h{each}": b"v" for each in range(100)})
    found = letters.get()["letters"][0]
    assert found["record"] == {"topic": "t" * 249, "partition": None, "offset": None}
    assert found["time_ms"] > 1_700_000_000_000
    assert len(found["headers"]) == 64
    letters.write(b"v", {"stream": b"ours"} | {f"h{each}": b"v" * 15_000 for each in range(5)})
    found = letters.get()["letters"][0]
    shown = [each["value"] for each in found["headers"]]
    assert [each["bytes"] for each in shown] == [4, *[15_000] * 5]
    assert [len(each["text"]) for each in shown] == [4, 15_000, 15_000, 32_768 - 30_004, 0, 0]
    assert [each["cut"] for each in shown] == [False] * 3 + [True] * 3


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("limit=0", "limit: '0' is no whole number from 1 to 500"),
        ("limit=501", "limit: '501' is no whole number from 1 to 500"),
        ("within_ms=40000", "within_ms: '40000' is no whole number from 1 to 30000"),
        ("kind=lat", "kind: 'lat' is none of refused, late, damaged, other"),
        ("reason=" + "x" * 1_001, "reason: a text of 1001 characters; at most 1000 are taken"),
        ("before=x", "before: it is not what an earlier answer had as `before`"),
        ("before=railgun.catalog:0:5", "before: railgun.catalog has no dead letters of ours"),
        ("limit=1&limit=1", "limit: it is there twice"),
        (
            "last=1",
            "last: there is no such parameter; this route takes limit, within_ms, kind, reason, before",
        ),
    ],
)
def test_bad_parameters(letters: Letters, query: str, said: str) -> None:
    response = letters.served.client.get(f"/v1/streams/ours/dead?{query}")
    assert response.status_code == 422
    assert response.json()["detail"] == said


def test_a_stream_without_letters(letters: Letters) -> None:
    until(lambda: letters.served.client.get("/v1/streams/ours/dead").status_code == 200)
    assert letters.get() == {
        "topics": [letters.dead],
        "letters": [],
        "read": 0,
        "stopped": None,
        "before": None,
        "masked": False,
    }
    bare = {"name": "bare", "fields": {"a": "long"}}
    assert letters.served.post("/v1/streams", bare).status_code == 201
    response = letters.served.client.get("/v1/streams/bare/dead")
    assert response.status_code == 409
    assert f"there is no topic {letters.cluster.prefix}.bare.dead" in response.json()["detail"]
    assert letters.served.client.get("/v1/streams/our/dead").status_code == 404


def test_a_server_that_reads_no_topics(shared: Server) -> None:
    response = shared.client.get("/v1/streams/payments/dead")
    assert response.status_code == 409
    assert "reads no topics" in response.json()["detail"]
    assert shared.client.get("/v1/streams/none/dead").status_code == 404
