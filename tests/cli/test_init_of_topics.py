"""`railgun init` of topics: JSON, changes by Debezium, Avro of a registry; what is no event is one clear sentence."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import railgun.cli.init
from railgun.catalog.model import EARLIEST, LATEST
from railgun.cli.main import main
from tests.broker.own_topics import own_prefix
from tests.cli.test_init import error_of
from tests.draft.drafts import changes, ndjson, orders, read, stream_of, types_of, uncommented
from tests.frontend.formats.avro_events import encoded, framed
from tests.frontend.formats.schema_registry import schema_registry
from tests.paths.protobuf_documents import encoded as encoded_message

_S = 30.0
SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "tx_id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "made", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "card",
            "type": [
                "null",
                {"type": "record", "name": "Card", "fields": [{"name": "pan", "type": "string"}]},
            ],
        },
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "picture", "type": "bytes"},
    ],
}


def topic_with(
    broker: str, values: Sequence[bytes | None], partitions: int = 1, key: bytes | None = None
) -> str:
    """A new topic with records."""
    topic = f"{own_prefix('init-')}.payments.v1"
    client = AdminClient({"bootstrap.servers": broker})
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_S)
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 5})
    for number, value in enumerate(values):
        producer.produce(topic, value, key, partition=number % partitions)
    assert producer.flush(_S) == 0
    return topic


def as_json(events: Sequence[Any]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


def made_of(broker: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    output = str(tmp_path / "definitions.toml")
    assert main(["init", "--broker", broker, "--topic", topic, "--output", output, *more]) == 0
    said = capsys.readouterr().err
    assert f"  railgun node --data data --broker {broker}" in said
    assert f"--definitions {output}" in said
    assert said.endswith(
        "Replies come to the topic railgun.payments.out, and what cannot be used to railgun.payments.dead.\n"
    )
    text = Path(output).read_text(encoding="utf-8")
    (with_all,) = read(uncommented(text)).streams.values()
    assert (with_all.input.topics, with_all.input.start) == ((topic,), LATEST)
    stream = stream_of(text)
    assert (stream.name, stream.id) == ("payments", None)
    assert (stream.input.topics, stream.input.start) == ((topic,), EARLIEST)
    return text


def test_json(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topic = topic_with(kafka, as_json(orders(1_500)), partitions=3, key=b"k")
    text = made_of(kafka, topic, tmp_path, capsys)
    assert f"from 1,000 events of {topic}" in text
    assert stream_of(text).time == "created_at"
    assert '# record_key = { type = "string", from = "@key" }' in text


def test_nothing_is_committed(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client = AdminClient({"bootstrap.servers": kafka})
    before = {each.group_id for each in client.list_consumer_groups().result().valid}
    made_of(kafka, topic_with(kafka, as_json(orders(9))), tmp_path, capsys)
    after = {each.group_id for each in client.list_consumer_groups().result().valid}
    assert not {each for each in after - before if each.startswith("railgun-unused")}


def test_changes_by_debezium(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [*as_json(changes()), None]
    text = made_of(kafka, topic_with(kafka, values), tmp_path, capsys)
    assert "# 1 record beside them could not be read. 1: without a value" in text
    assert "Debezium" in text
    where = stream_of(text).input.where
    assert where is not None
    assert where.text == "op IN ('c', 'r')"
    # The same changes in a file are scored with it.
    events = ndjson(tmp_path / "changes.ndjson", changes())
    definitions = tmp_path / "of_file.toml"
    assert main(["init", str(events), "--stream", "payments", "--output", str(definitions)]) == 0
    assert types_of(definitions.read_text()) == types_of(text)
    assert main(["run", str(definitions), str(events), "--out", str(tmp_path / "scores.csv")]) == 0


def test_avro_of_a_registry(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [
        {
            "tx_id": f"00000000-0000-0000-0000-00000000000{n}",
            "made": 1_700_000_000_000_000 + n,
            "card": {"pan": f"p{n % 3}"} if n else None,
            "price": b"\x01\x02",
            "day": 19_000,
            "picture": b"\x89PNG",
        }
        for n in range(9)
    ]
    plain = json.loads(json.dumps(SCHEMA))
    for field in plain["fields"]:
        if isinstance(field["type"], dict):
            field["type"] = field["type"]["type"]
    topic = topic_with(kafka, [framed(encoded(event, plain)) for event in events])
    with schema_registry({"/schemas/ids/1": {"schema": json.dumps(SCHEMA)}}) as registry:
        config = tmp_path / "railgun.toml"
        config.write_text(f'[input]\nschema_registry_url = "{registry.url}"\n')
        text = made_of(kafka, topic, tmp_path, capsys, "--config", str(config))
        assert types_of(text) == {
            "tx_id": "string",
            "made": "timestamp",
            "card.pan": "string",
            "price": "decimal(18,2)",
        }
        assert stream_of(text).partitioners == ("pan",)
        assert "# day: a date" in text
        assert "# picture: bytes" in text
    said = error_of(["--broker", kafka, "--topic", topic], capsys)
    assert (
        "none of its newest 9 records can be read as an event: framed by a schema registry; name it" in said
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "the topic has no records; write some events to it"),
        (
            [b"\x89PNG\r\n\x1a\n" + bytes(range(n)) for n in range(9)],
            "neither a JSON object nor in Confluent's framing",
        ),
        ([b"\xff\xd8\xff\xe0"] * 3, "neither a JSON object nor in Confluent's framing"),
        ([b"[1]", b"7"], "neither a JSON object nor in Confluent's framing"),
        ([None, None], "without a value"),
        ([b"{}", b'{"a": null}'], "no field can be made of its 2 events"),
    ],
)
def test_no_events_are_one_sentence(
    kafka: str, capsys: pytest.CaptureFixture[str], values: list[bytes | None], sentence: str
) -> None:
    topic = topic_with(kafka, values)
    said = error_of(["--broker", kafka, "--topic", topic], capsys)
    assert said.startswith(f"railgun init: {topic}: ")
    assert sentence in said


def test_protobuf_of_a_registry(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [encoded_message(each) for each in nested_payments(30)]
    descriptor = found[0].descriptor
    topic = topic_with(kafka, [*(framed(b"\0" + each.value, 3) for each in found), framed(b"\0\xff", 3)])
    with schema_registry({"/schemas/ids/3": {"schema": descriptor, "schemaType": "PROTOBUF"}}) as registry:
        config = tmp_path / "railgun.toml"
        config.write_text(f'[input]\nschema_registry_url = "{registry.url}"\n')
        text = made_of(kafka, topic, tmp_path, capsys, "--config", str(config))
        assert types_of(text) == {
            "tx_id": "string",
            "created": "timestamp",
            "card.pan": "string",
            "amount.value": "double",
            "tries_count": "long",
            "ok": "boolean",
        }
        assert (stream_of(text).time, stream_of(text).partitioners) == ("created", ("pan",))
        assert '# sku = { type = "string", from = "lines[0].sku" }  # text; in all' in text
        assert "# 1 record beside them could not be read. 1: no Protobuf of schema 3" in text
        registry.answers["/schemas/ids/4"] = {"schema": "x", "schemaType": "PROTOBUF"}
        wrong = topic_with(kafka, [framed(b"\0" + found[0].value, 4)] * 3)
        said = error_of(["--broker", kafka, "--topic", wrong, "--config", str(config)], capsys)
    assert "schema 4: the schema registry gives the schema as text" in said


def nested_payments(count: int) -> list[dict[str, Any]]:
    """As Protobuf takes them."""
    return [
        {
            "tx_id": f"t{n}",
            "created": 1_700_000_000 + n,
            "card": {"pan": f"p{n % 5}"},
            "amount": {"value": n + 0.5},
            "tries_count": n % 3,
            "ok": n % 2 == 0,
            "lines": [{"sku": f"s{n}"}],
        }
        for n in range(count)
    ]


def test_json_schema_of_a_registry(kafka: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topic = topic_with(kafka, [framed(each, 4) for each in as_json(orders(9))])
    with schema_registry({"/schemas/ids/4": {"schema": "{}", "schemaType": "JSON"}}) as registry:
        config = tmp_path / "railgun.toml"
        config.write_text(f'[input]\nschema_registry_url = "{registry.url}"\n')
        text = made_of(kafka, topic, tmp_path, capsys, "--config", str(config))
        assert stream_of(text).time == "created_at"
        registry.is_down = True
        said = error_of(["--broker", kafka, "--topic", topic, "--config", str(config)], capsys)
    assert "schema 4: status 503" in said
    assert "Check that the schema registry runs" in said


def test_a_topic_that_is_not_there(kafka: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = error_of(["--broker", kafka, "--topic", "none.such"], capsys)
    assert (
        "none.such: there is no such topic or partition. Check its name; `railgun broker topic NAME`" in said
    )
    topics = AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=_S).topics
    assert "none.such" not in topics


def test_no_broker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(railgun.cli.init, "_ANSWER_S", 5.0)
    said = error_of(["--broker", "127.0.0.1:1", "--topic", "t"], capsys)
    assert "Check that the broker runs and its address is right" in said
    assert "Connection refused" in said
