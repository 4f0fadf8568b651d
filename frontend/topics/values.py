"""Decodes records of an input topic to events: JSON, or Avro in Confluent's framing. A bad record gives a reason."""

import io
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from frontend.topics.schemas import SchemaId, Schemas, UnknownSchemaError
from frontend.topics.windows import Letter
from railgun.files.avro_conversion import Conversions, without_logical_types
from railgun.files.errors import ColumnError
from railgun.ingest.intake import EventText, ParsedEvent, RecordEvent
from railgun.messaging.kafka.settings import MESSAGE_LIMIT_BYTES
from railgun.wire.finding import NO_TIME_MS, EventRecord
from railgun.wire.schema import Schema

_MARK, _GUID_MARK = 0, 1
_ID_BYTES, _GUID_BYTES = 5, 17
_HEADER = "__value_schema_id"
_KNOWN_MAX = 1_000


class AvroError(ValueError):
    """A record is framed as Avro and cannot be read. The message says why."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Decodes records of one schema. plain: the schema that decodes them."""

    plain: Any
    conversions: Conversions


class AvroValues:
    """Decodes records that are framed as Avro. Not to be shared between threads.

    schemas: None if none are configured.
    """

    def __init__(self, schemas: Schemas | None) -> None:
        self._schemas = schemas
        self._known: dict[tuple[SchemaId, int], _Reading] = {}

    def read(self, message: Message, fields: Schema) -> ParsedEvent | None:
        """Return the event of a record; None if the record is not framed as Avro.

        Raises AvroError, UnknownSchemaError; TransportUnavailableError if the schema cannot be read now.
        """
        value = message.value() or b""
        found = schema_id_of(value, message)
        if found is None:
            return None
        schema_id, start = found
        if self._schemas is None:
            raise AvroError(
                "framed Avro; name a registry (input.schema_registry_url) or a schema file (input.schema_file)"
            )
        key = schema_id, fields.version
        reading = self._known.get(key)
        if reading is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            reading = self._known[key] = _reading(schema_id, self._schemas.schema(schema_id), fields)
        return ParsedEvent(_decoded(reading, value, start), len(value))


def schema_id_of(value: bytes, message: Message) -> tuple[SchemaId, int] | None:
    """Return the id of a record's schema, and where the Avro begins; None if the record is not framed as Avro."""
    headers: Any = message.headers()
    if headers:
        for name, content in headers:
            if name == _HEADER and isinstance(content, bytes) and len(content) == _GUID_BYTES:
                if content[0] == _GUID_MARK:
                    return str(uuid.UUID(bytes=content[1:])), 0
    if value[:1] != bytes((_MARK,)):
        return None
    if len(value) < _ID_BYTES:
        raise AvroError(f"framed Avro of {len(value)} bytes, too few for a schema's id")
    return int.from_bytes(value[1:_ID_BYTES], "big"), _ID_BYTES


def _reading(schema_id: SchemaId, written: Any, fields: Schema) -> _Reading:
    if not isinstance(written, Mapping) or written.get("type") != "record":
        raise AvroError(f"schema {schema_id} is no record; events are records")
    try:
        plain = fastavro.parse_schema(without_logical_types(written))
        conversions = Conversions(f"schema {schema_id}", written, fields)
    except ColumnError as error:
        raise AvroError(str(error)) from error
    except Exception as error:  # a foreign schema makes a parser fail in any way
        raise AvroError(f"schema {schema_id} cannot be read: {error}") from error
    return _Reading(plain, conversions)


def _decoded(reading: _Reading, value: bytes, start: int) -> dict[str, Any]:
    data = io.BytesIO(value)
    data.seek(start)
    try:
        # What is no UTF-8 becomes lone surrogates, for which the event is refused with the field's name.
        event: Any = fastavro.schemaless_reader(
            data, reading.plain, None, handle_unicode_errors="surrogateescape"
        )
        reading.conversions.convert(event)
    except Exception as error:  # foreign bytes make a decoder fail in any way
        raise AvroError(f"no Avro of its schema: {error or type(error).__name__}") from error
    if data.tell() != len(value):
        raise AvroError(f"no Avro of its schema: {len(value) - data.tell()} bytes are left over")
    return dict(event)


_HEADERS_BYTES = 1 << 16
# No JSON begins with it.
_AVRO_MARK = b"\0"


@dataclass(frozen=True, slots=True)
class Events:
    """The events of some records.

    texts: the events, each as JSON or read already.
    rows: the index of each event's record; None if all records are events.
    refused: why a record is no event, by its index.
    """

    texts: Sequence[EventText]
    rows: list[int] | None = None
    refused: dict[int, str] = field(default_factory=dict)


def events_of(messages: Sequence[Message], avro: AvroValues, fields: Schema) -> Events:
    """Return the events of records. Raises TransportUnavailableError if a schema cannot be read now.

    fields: the schema of what comes in.
    """
    values = list(map(Message.value, messages))
    if not fields.reads_records and None not in values and not any(map(_may_be_avro, values, messages)):
        return Events(values)  # type: ignore[arg-type]
    texts: list[EventText] = []
    rows: list[int] = []
    refused: dict[int, str] = {}
    for row, (value, message) in enumerate(zip(values, messages)):
        if value is None:
            refused[row] = "it has no value"
            continue
        try:
            event = avro.read(message, fields)
        except (AvroError, UnknownSchemaError) as error:
            refused[row] = str(error)
            continue
        text = value if event is None else event
        texts.append(RecordEvent(text, record_of(message)) if fields.reads_records else text)
        rows.append(row)
    return Events(texts, rows, refused)


def record_of(message: Message) -> EventRecord:
    headers: Any = message.headers() or ()
    kind, time_ms = message.timestamp()
    key: Any = message.key()
    return EventRecord(key, dict(headers), NO_TIME_MS if kind == TIMESTAMP_NOT_AVAILABLE else time_ms)


def _may_be_avro(value: bytes | None, message: Message) -> bool:
    return value is not None and (value[:1] == _AVRO_MARK or bool(message.headers()))


def letter(message: Message, reason: str) -> Letter:
    """Return the dead letter of a record that cannot be used, with the reason and its position in the headers."""
    value, key = message.value(), message.key()
    if value is not None and len(value) + len(key or b"") > MESSAGE_LIMIT_BYTES - _HEADERS_BYTES:
        reason += f" (its {len(value)} bytes are too many for this topic too)"
        value = None
    headers = [
        ("reason", reason.encode(errors="replace")),
        ("topic", (message.topic() or "").encode()),
        ("partition", b"%d" % (message.partition() or 0)),
        ("offset", b"%d" % (message.offset() or 0)),
        ("time", b"%d" % (time.time_ns() // 1_000_000)),
    ]
    return Letter(key, value, headers)
