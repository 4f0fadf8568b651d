"""Schemas of a real registry: Avro with references, JSON Schema, and what it says of Protobuf."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Message

from frontend.formats.errors import SchemaPendingError
from frontend.formats.schemas import Schemas, schemas_of
from frontend.formats.values import Events, RecordValues, events_of
from railgun.catalog.stream_reading import stream_from_json
from railgun.config.settings import InputSettings
from tests.frontend.formats.apicurio import apicurio
from tests.frontend.formats.avro_events import encoded, framed
from tests.frontend.serving import PATIENCE_S
from tests.paths.doors import LATEST_MS, Outcome, intake_of, outcome

CARD = {"type": "record", "name": "Card", "namespace": "of", "fields": [{"name": "number", "type": "string"}]}
CHIP = {"type": "record", "name": "Chip", "namespace": "of", "fields": [{"name": "card", "type": "of.Card"}]}
PAYMENT: dict[str, Any] = {
    "type": "record",
    "name": "Payment",
    "fields": [{"name": "chip", "type": "of.Chip"}, {"name": "other", "type": ["null", "of.Card"]}],
}
WHOLE = {
    **PAYMENT,
    "fields": [
        {"name": "chip", "type": {**CHIP, "fields": [{"name": "card", "type": CARD}]}},
        PAYMENT["fields"][1],
    ],
}
STREAM = stream_from_json(
    {
        "name": "s",
        "fields": {
            "number": {"type": "string", "from": "chip.card.number"},
            "other": {"type": "string", "from": "other.number"},
        },
    }
)


def register(url: str, subject: str, schema: object, kind: str = "AVRO", **references: str) -> int:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    named = [{"name": name, "subject": of, "version": 1} for name, of in references.items()]
    body = {"schema": text, "schemaType": kind, "references": named}
    answer = httpx.post(f"{url}/subjects/{subject}/versions", json=body, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def events(schemas: Schemas | None, value: bytes) -> Events:
    values, deadline_s = RecordValues(schemas), time.monotonic() + PATIENCE_S
    while True:
        try:
            return events_of([Message(value=value)], values, STREAM.incoming(1))
        except SchemaPendingError as error:
            if error.why is not None:
                pytest.fail(error.why)
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


def test_a_real_registry(tmp_path: Path) -> None:
    with apicurio(tmp_path) as url:
        register(url, "card", CARD)
        register(url, "chip", CHIP, **{"of.Card": "card"})
        payment = register(url, "payment", PAYMENT, **{"of.Chip": "chip", "of.Card": "card"})
        plain = register(url, "plain", {"$schema": "http://json-schema.org/draft-07/schema#"}, "JSON")
        message = register(url, "message", 'syntax = "proto3"; message M { int64 x = 1; }', "PROTOBUF")
        schemas = schemas_of(InputSettings(schema_registry_url=url))

        def values(value: bytes) -> Outcome:
            found = events(schemas, value)
            return outcome(intake_of(STREAM).take(found.texts, LATEST_MS), 0)

        document = {"chip": {"card": {"number": "ü"}}, "other": {"number": "o"}}
        assert values(framed(encoded(document, WHOLE), payment)) == ["ü", "o"]
        assert values(framed(json.dumps(document).encode(), plain)) == ["ü", "o"]
        for schema_id, why in (
            (message, f"schema {message}: the schema registry gives the schema as text; "),
            (999, "the schema registry knows no schema 999"),
        ):
            assert events(schemas, framed(b"\0", schema_id)).refused[0].startswith(why)
