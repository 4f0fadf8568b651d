"""Avro in Confluent's framing: the same events as JSON get the same replies; what is wrong is said."""

import json
import traceback
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontend.formats.errors import UnknownSchemaError
from frontend.formats.schema_registry import SchemaRegistry
from frontend.formats.schemas import SchemaFile, schemas_of
from frontend.formats.written_schema import AVRO, WrittenSchema
from railgun.config.kinds import ConfigError
from railgun.config.settings import InputSettings
from railgun.messaging.errors import TransportUnavailableError
from tests.frontend.conftest import PAYMENTS
from tests.frontend.formats.avro_events import encoded, framed
from tests.frontend.formats.schema_registry import schema_registry
from tests.frontend.kafka.cluster import LocalCluster
from tests.frontend.topics.input_topic import InputTopic, headers_of
from tests.frontend.topics.test_input_topic import define

Event = Callable[..., dict[str, Any]]
SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "tx_id", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "card", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": "double"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "unknown", "type": {"type": "array", "items": "int"}},
    ],
}
TEXT_TIME = {"type": "record", "name": "P", "fields": [{"name": "ts", "type": "double"}]}
WRITTEN = WrittenSchema(AVRO, json.dumps(SCHEMA))
GUID = uuid.UUID(int=7)
ANSWERS = {
    "/schemas/ids/1": {"schema": json.dumps(SCHEMA)},
    f"/schemas/guids/{GUID}": {"schema": json.dumps(SCHEMA)},
    "/schemas/ids/3": {"schema": "{}", "schemaType": "XML"},
    "/schemas/ids/4": {"schema": json.dumps(TEXT_TIME)},
}


def _avro(event: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> bytes:
    return encoded(event, schema)


def test_avro_is_read_as_json_is(
    kafka: str, tmp_path: Path, event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        schema_registry(ANSWERS) as registry,
        LocalCluster(kafka, tmp_path) as cluster,
        InputTopic(kafka, cluster.prefix, "payments") as topic,
    ):
        define(cluster, PAYMENTS)
        cluster.start_units(1)
        with_password = registry.url.replace("://", "://somebody:secret@")
        cluster.serve(intake=InputSettings(schema_registry_url=with_password))
        first = event(card="avro", price="1.50")
        bodies = [_avro({**event(card="avro"), "price": Decimal("2.25"), "unknown": [1]}) for _ in range(100)]
        topic.send([first])
        topic.send([framed(body) for body in bodies[:99]])
        topic.send([bodies[99]], headers=[("__value_schema_id", b"\x01" + GUID.bytes)])
        replies = topic.await_replies(101)
        assert [reply["metrics"]["n7"] for reply in replies] == list(range(1, 102))
        assert replies[-1]["metrics"]["p7"] == "226.50"
        assert registry.pending == ["/schemas/ids/1", f"/schemas/guids/{GUID}"]

        good = {**event(), "price": Decimal("0.01"), "unknown": []}
        wrong = {
            "knows no schema 2": framed(_avro(good), 2),
            "schema 3 is XML; Avro, JSON Schema and Protobuf are read": framed(b"x", 3),
            "ts: the number 1.5": framed(_avro({"ts": 1.5}, TEXT_TIME), 4),
            "left over": framed(_avro(good) + b"x"),
            "no Avro of its schema": framed(_avro(good)[:-4]),
            "too few": b"\0\0",
            "amount: NaN": framed(_avro({**good, "amount": float("nan")})),
        }
        topic.send(wrong.values())
        letters = topic.await_letters(len(wrong))
        assert [letter.value() for letter in letters] == list(wrong.values())
        for said, letter in zip(wrong, letters):
            assert said in headers_of(letter)["reason"]

        # Where the registry is away nothing is given up.
        registry.answers["/schemas/ids/5"] = ANSWERS["/schemas/ids/1"]
        registry.is_down = True
        topic.send([framed(_avro(good), 5)])
        pending = len(registry.pending)
        topic._await(lambda: len(registry.pending) > pending, "a question")
        registry.is_down = False
        assert topic.await_replies(102)[-1]["id"] == good["tx_id"]
    assert "schema 5: status 503. Check that the schema registry runs" in caplog.text
    assert "secret" not in caplog.text


def test_a_file_holds_the_schema_of_all(tmp_path: Path) -> None:
    file = tmp_path / "payment.avsc"
    file.write_text(json.dumps(SCHEMA))
    assert SchemaFile(file).schema(1) == SchemaFile(file).schema(2) == WRITTEN
    assert isinstance(schemas_of(InputSettings(schema_file=str(file))), SchemaFile)
    file.write_text("{")
    with pytest.raises(ConfigError, match=r"payment\.avsc"):
        SchemaFile(file)
    with pytest.raises(ConfigError, match="not both"):
        schemas_of(InputSettings(schema_file=str(file), schema_registry_url="http://127.0.0.1"))
    with pytest.raises(ConfigError, match="no http"):
        schemas_of(InputSettings(schema_registry_url="ftp://example"))
    assert schemas_of(InputSettings()) is None


def test_a_registry_that_does_not_answer_is_asked_again() -> None:
    with schema_registry(ANSWERS) as registry:
        schemas = SchemaRegistry(registry.url)
        registry.is_down = True
        with pytest.raises(TransportUnavailableError, match="schema_registry_url"):
            schemas.ask(1)
        registry.is_down = False
        assert schemas.ask(1) == WRITTEN
        with pytest.raises(UnknownSchemaError, match=r"^the schema registry knows no schema 99$"):
            schemas.ask(99)


def test_the_password_of_a_registry_is_sent_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    said = ""
    with schema_registry(ANSWERS) as registry:
        schemas = SchemaRegistry(registry.url.replace("://", "://somebody:secr%2Fet@"))
        assert schemas.ask(1) == WRITTEN
        assert registry.authorization == httpx.BasicAuth("somebody", "secr/et")._auth_header
        for is_down in (True, False):
            registry.is_down = is_down
            # What it answers last is no JSON object.
            registry.answers["/schemas/ids/7"] = ["schema"]
            with pytest.raises(
                TransportUnavailableError, match=r"^http://127\.0\.0\.1:\d+: schema 7: "
            ) as caught:
                schemas.ask(7)
            said += "".join(traceback.format_exception(caught.value))
    with pytest.raises(TransportUnavailableError) as caught:
        schemas.ask(8)
    said += "".join(traceback.format_exception(caught.value))
    assert "status 503" in said
    assert not [each for each in ("secr", "somebody") if each in said or each in caplog.text]


@pytest.mark.parametrize(
    "url",
    [
        "htps://user:secret@example.com",
        "https:/user:secret@example.com",
        "https://user:secr/et@example.com",
        "https://user:secr#et@example.com",
        "https://user:secret@example.com:port",
        "https://[user:secret@example.com",
    ],
)
def test_the_password_of_a_wrong_address_is_not_told(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^input\.schema_registry_url: '.*example\.com") as caught:
        SchemaRegistry(url)
    assert "secr" not in "".join(traceback.format_exception(caught.value))
