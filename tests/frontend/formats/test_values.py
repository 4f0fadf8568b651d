"""What a record's value is taken for: by the stream's definition, else by its framing, else JSON."""

import base64
import json
from dataclasses import replace
from typing import Any

from confluent_kafka import Message

from frontend.formats.values import RecordValues, events_of
from railgun.catalog import input_format
from railgun.catalog.input_format import InputFormat
from railgun.catalog.model import InputDefinition
from railgun.catalog.stream_reading import stream_from_json
from tests.frontend.formats.avro_events import encoded as avro
from tests.frontend.formats.avro_events import framed
from tests.paths.doors import of_record
from tests.paths.protobuf_documents import encoded

GUID = [("__value_schema_id", b"\1" + bytes(16))]
STREAM = stream_from_json({"name": "s", "fields": {"x": "long", "y": {"type": "long", "from": "@header.n"}}})
MESSAGE = encoded({"x": 7})
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "long"}]}
AVRO = InputFormat(input_format.AVRO, json.dumps(SCHEMA))
PROTOBUF = InputFormat(input_format.PROTOBUF, base64.b64encode(MESSAGE.set).decode(), MESSAGE.name)


def found(value: bytes | None, format_: InputFormat | None, headers: Any = None) -> Any:
    taken = of_record(
        replace(STREAM, input=InputDefinition(format=format_)), Message(value=value, headers=headers)
    )
    return taken if isinstance(taken, list) else str(taken)


def test_a_format_that_is_defined_is_that_of_all_records() -> None:
    headers = [*GUID, ("n", b"5")]
    assert found(b'{"x": 7}', InputFormat(input_format.JSON), headers) == [7, 5]
    assert found(avro({"x": 7}, SCHEMA), AVRO, headers) == [7, 5]
    assert found(MESSAGE.value, PROTOBUF, headers) == [7, 5]
    # Bytes of Avro may look like a frame.
    assert found(b"\0", AVRO) == [0, None]
    assert found(b"", PROTOBUF) == [None, None]


def test_what_is_of_another_format_is_refused() -> None:
    hint = "it begins with byte 0, as framed records do; with a schema registry leave out input.format"
    for format_ in (AVRO, PROTOBUF):
        assert found(b'{"x": 7}', format_).startswith(": no ")
        assert found(framed(b"\2"), format_).endswith(hint)
    assert found(framed(b"{}"), InputFormat(input_format.JSON)).startswith(": no JSON")


def test_without_a_registry_a_frame_says_what_is_missing() -> None:
    for value, headers in ((framed(b"\2"), None), (b"{}", GUID)):
        assert found(value, None, headers) == (
            ": framed; name a schema registry (input.schema_registry_url) or an Avro schema (input.schema_file)"
        )
    assert found(b"\0\0", None) == ": framed by byte 0, and of 2 bytes, too few for a schema's id"


def test_json_is_handed_on_as_it_came() -> None:
    plain = stream_from_json({"name": "s", "fields": {"x": "long"}})
    messages = [Message(value=b'{"x": 7}', headers=GUID)] * 2
    events = events_of(messages, RecordValues(None), plain.incoming(1), InputFormat(input_format.JSON))
    assert (list(events.texts), events.rows, events.refused) == ([b'{"x": 7}'] * 2, None, {})
