"""Protobuf, JSON Schema and Avro with references through topics of a broker: the same replies as to JSON."""

import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from railgun.cli.main import main
from railgun.config.settings import InputSettings
from tests.frontend.conftest import PAYMENTS
from tests.frontend.formats.avro_events import framed
from tests.frontend.formats.schema_registry import RunningRegistry, schema_registry
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.serving import until
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.frontend.topics.test_input_topic import PLAIN, define
from tests.paths.protobuf_documents import Encoded, encoded

Event = Callable[..., dict[str, Any]]
CARD = {"type": "record", "name": "Card", "namespace": "of", "fields": [{"name": "number", "type": "string"}]}
PAYMENT = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "tx_id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "card", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "first", "type": "of.Card"},
        {"name": "second", "type": ["null", "of.Card"]},
    ],
}


def with_references(event: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    known: dict[str, Any] = {}
    fastavro.parse_schema(CARD, named_schemas=known)
    schema = fastavro.parse_schema(PAYMENT, named_schemas=known)
    cards = {"first": {"number": "x"}, "second": {"number": "y"}}
    fastavro.schemaless_writer(out, schema, {**event, "price": Decimal(event["price"]), **cards})
    return out.getvalue()


def answers(message: Encoded) -> dict[str, Any]:
    return {
        "/schemas/ids/1": {"schema": message.descriptor, "schemaType": "PROTOBUF"},
        "/schemas/ids/2": {"schema": '{"type": "object"}', "schemaType": "JSON"},
        "/schemas/ids/3": {
            "schema": json.dumps(PAYMENT),
            "references": [{"name": "of.Card", "subject": "card", "version": 1}],
        },
        "/subjects/card/versions/1": {"schema": json.dumps(CARD)},
        "/schemas/ids/4": {"schema": " " * (10 << 20), "schemaType": "PROTOBUF"},
        "/schemas/ids/5": {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"},
        "/schemas/ids/6": {"schema": '{"type": "record", "fields": 5}'},
        "/schemas/ids/8": {
            "schema": json.dumps(PAYMENT),
            "references": [{"name": "of.Card", "subject": "circle", "version": 1}],
        },
        "/subjects/circle/versions/1": {
            "schema": json.dumps(CARD),
            "references": [{"name": "of.Card", "subject": "circle", "version": 1}],
        },
        # The schema of another record, the descriptor of another message, and a schema under another one's kind.
        "/schemas/ids/9": {"schema": json.dumps(CARD)},
        "/schemas/ids/10": {"schema": json.dumps(CARD), "schemaType": "PROTOBUF"},
        "/schemas/ids/11": {"schema": message.descriptor},
    }


def test_schemas_of_a_registry(
    kafka: str, tmp_path: Path, event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="railgun.frontend")
    given = {**event(card="c", price="1.25"), "tx_id": "p1"}
    message = encoded(given)
    with (
        schema_registry(answers(message)) as registry,
        LocalCluster(kafka, tmp_path) as cluster,
        InputTopic(kafka, cluster.prefix, "payments") as topic,
        InputTopic(kafka, cluster.prefix, "plain") as other,
    ):
        define(cluster, PAYMENTS + PLAIN)
        cluster.start_units(1)
        served = cluster.serve(intake=InputSettings(schema_registry_url=registry.url))
        sent = [
            framed(b"\0" + message.value, 1),
            framed(json.dumps({**given, "tx_id": "p2"}).encode(), 2),
            framed(with_references({**given, "tx_id": "p3"}), 3),
            {**given, "tx_id": "p4"},
        ]
        topic.send(sent)
        replies = topic.await_replies(4)
        assert [reply["id"] for reply in replies] == ["p1", "p2", "p3", "p4"]
        assert [reply["metrics"]["n7"] for reply in replies] == [1, 2, 3, 4]
        assert replies[-1]["metrics"]["p7"] == "5.00"

        wrong = {
            "schema 4: it has more than 4 MiB": framed(b"\0", 4),
            "schema 5: the schema registry gives the schema as text": framed(b"\0", 5),
            "schema 6 cannot be read: ": framed(b"\0", 6),
            "no Protobuf of the message shop.v2.Event: ": framed(b"\0\xff", 1),
            "schema 1 has no message 1": framed(b"\2\2", 1),
            "event: no JSON: not UTF-8": framed(b"\xff", 2),
            "no Avro of its schema: ": framed(b"\xff" * 20, 3),
            "schema 8: its references go in a circle: circle 1, circle 1": framed(b"\0", 8),
            "no Avro of its schema: 23 bytes are left over": framed(with_references(given), 9),
            "schema 10: the schema registry gives the schema as text": framed(b"\0" + message.value, 10),
            "schema 11 cannot be read: ": framed(message.value, 11),
        }
        topic.send(wrong.values())
        for said, letter in zip(wrong, topic.await_letters(len(wrong))):
            assert headers_of(letter)["reason"].startswith(said), headers_of(letter)["reason"]

        _away(registry, topic, other, given)
        assert served.client.get("/readyz").status_code == 200
    told = [each.getMessage() for each in caplog.records if "is read on" in each.getMessage()]
    assert len(told) == 2, told
    assert "schema 7: status 503. Check that the schema registry runs" in told[0]
    assert told[1] == f"{topic.input} is read on"
    assert "is not read for now" not in caplog.text


def _away(registry: RunningRegistry, topic: InputTopic, other: InputTopic, given: dict[str, Any]) -> None:
    """While the registry is away only what needs it waits, in order, and is read without beginning again."""
    registry.answers["/schemas/ids/7"] = registry.answers["/schemas/ids/1"]
    registry.is_down = True
    topic.send([framed(b"\0" + encoded({**given, "tx_id": "q1"}).value, 7), {**given, "tx_id": "q2"}])
    until(lambda: registry.pending.count("/schemas/ids/7") >= 2)
    other.send([{"card": "c"}] * 10)
    assert [reply["metrics"]["n"] for reply in other.await_replies(10)] == list(range(1, 11))
    assert len(topic.replies) == 4
    registry.is_down = False
    assert [reply["id"] for reply in topic.await_replies(6)[4:]] == ["q1", "q2"]


DEFINITIONS = """
[streams.nested]
id = "id"
partitioners = ["card"]
[streams.nested.fields]
id = { type = "long", from = "header.id" }
card = { type = "string", from = "payment.card" }
[streams.nested.input]
format = "protobuf"
schema_file = "event.desc"
message = "shop.v2.Event"
[[metrics]]
sql = "SELECT count(*) AS n FROM nested GROUP BY card OVER INFINITE"
"""


def nested(number: int) -> dict[str, Any]:
    return {"header": {"id": number}, "payment": {"card": "c", "other": [1, 2]}}


def test_a_descriptor_set_in_the_definitions(
    kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "definitions.toml"
    (tmp_path / "event.desc").write_bytes(encoded(nested(1)).set)

    def apply(definitions: str) -> tuple[int, str]:
        file.write_text(definitions)
        code = main(["apply", str(file), "--url", url, "--no-wait"])
        said = capsys.readouterr()
        return code, said.out + said.err

    with LocalCluster(kafka, tmp_path / "cluster") as cluster:
        client = cluster.serve().client
        url = str(client.base_url).rstrip("/")
        code, said = apply(DEFINITIONS.replace("shop.v2.Event", "Event"))
        assert code != 0
        assert "has no message Event; it has shop.v2.Event" in said
        assert apply(DEFINITIONS)[0] == 0
        assert apply(DEFINITIONS) == (0, "nothing to do: all of it is registered\n")
        cluster.start_units(1)
        with InputTopic(kafka, cluster.prefix, "nested") as topic:
            topic.send([encoded(nested(number)).value for number in (1, 2)])
            assert [reply["metrics"]["n"] for reply in topic.await_replies(2)] == [1, 2]
            topic.send([b"\0\0\0\0\1\0" + encoded(nested(3)).value, nested(3)])
            letters = [headers_of(each)["reason"] for each in topic.await_letters(2)]
            assert letters[0].startswith("no Protobuf of the message shop.v2.Event: ")
            assert letters[0].endswith(
                "it begins with byte 0, as framed records do; with a schema registry leave out input.format"
            )
            assert letters[1].startswith("no Protobuf of the message shop.v2.Event: ")

            # Another schema is taken from then on; one that cannot be used changes nothing.
            at = "/v1/streams/nested"
            known = client.get(at).json()["input"]
            answer = client.patch(at, json={"input": {**known, "schema": "AAAA"}})
            assert (answer.status_code, answer.json()["errors"][0]["loc"]) == (422, ["input", "schema"])
            assert client.get(at).json()["input"] == known
            assert client.patch(at, json={"input": None}).status_code == 200
            assert "input" not in client.get(at).json()
            topic.send([nested(4)])
            assert topic.await_replies(3)[-1]["metrics"]["n"] == 3
            what = client.get("/v1/log").json()["changes"][0]["what"]
            assert what.startswith("input format protobuf; schema ")
