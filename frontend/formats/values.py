"""Decodes records of an input topic to events: JSON, Avro and Protobuf. A bad record gives a reason."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from frontend.formats.avro import AvroReader
from frontend.formats.errors import UnknownSchemaError, ValueUnreadableError
from frontend.formats.framing import Frame, FramingError, SchemaId, frame_of, may_be_framed
from frontend.formats.readers import Read, Readers
from frontend.formats.schemas import Schemas
from frontend.formats.written_schema import AVRO, JSON_SCHEMA, WrittenSchema
from railgun.catalog import input_format
from railgun.catalog.input_format import InputFormat
from railgun.ingest.intake import EventText, JsonText, ParsedEvent, RecordEvent
from railgun.wire.finding import NO_TIME_MS, EventRecord
from railgun.wire.schema import Schema

_NO_SCHEMAS = (
    "framed; name a schema registry (input.schema_registry_url) or an Avro schema (input.schema_file)"
)


class RecordValues:
    """Decodes the values of records. Not to be shared between threads.

    schemas: None if none are configured.
    """

    def __init__(self, schemas: Schemas | None) -> None:
        self._schemas = schemas
        self._readers = Readers()

    def read(self, message: Message, fields: Schema, format_: InputFormat | None) -> JsonText | ParsedEvent:
        """Return the event of a record, which has a value. fields: the schema of what comes in.

        Raises ValueUnreadableError, FramingError, UnknownSchemaError, SchemaPendingError.
        """
        value: bytes = message.value() or b""
        if format_ is not None:
            if format_.kind == input_format.JSON:
                return value
            read = self._readers.get((format_, fields.version), lambda: reader_of(format_, fields))
            return ParsedEvent(_bare(read, value), len(value))
        frame = frame_of(value, message)
        return value if frame is None else self._framed(frame, value, fields)

    def _framed(self, frame: Frame, value: bytes, fields: Schema) -> JsonText | ParsedEvent:
        if self._schemas is None:
            raise ValueUnreadableError(_NO_SCHEMAS)
        schema_id, version = frame.schema_id, fields.version
        found = self._schemas.schema(schema_id)
        if found.kind == JSON_SCHEMA:
            return frame.content(value)
        if found.kind == AVRO:
            read = self._readers.get((schema_id, version), lambda: _avro_reader(schema_id, found, fields))
            return ParsedEvent(read(frame.content(value)), len(value))
        indexes, content = frame.message(value)
        read = self._readers.get(
            (schema_id, version, indexes), lambda: _protobuf_reader(schema_id, found, indexes, fields)
        )
        return ParsedEvent(read(content), len(value))


def reader_of(format_: InputFormat, fields: Schema) -> Read:
    """Return the function that decodes values of a format of Avro or Protobuf. Raises ValueUnreadableError."""
    place = "the schema of the stream's input"
    if format_.kind == input_format.AVRO:
        return AvroReader(place, format_.schema, (), fields).read
    # The library takes 25 ms to load, and is needed where there is Protobuf.
    from frontend.formats.descriptors import files_of_set, named_message
    from frontend.formats.protobuf import ProtobufReader

    found = named_message(place, files_of_set(place, format_.descriptor_set), format_.message)
    return ProtobufReader(place, *found, fields).read


def _avro_reader(schema_id: SchemaId, found: WrittenSchema, fields: Schema) -> Read:
    texts = [text for _, text in found.references]
    return AvroReader(f"schema {schema_id}", found.text, texts, fields).read


def _protobuf_reader(
    schema_id: SchemaId, found: WrittenSchema, indexes: Sequence[int], fields: Schema
) -> Read:
    from frontend.formats.descriptors import files_of_registry, numbered_message
    from frontend.formats.protobuf import ProtobufReader

    place = f"schema {schema_id}"
    files = files_of_registry(place, found.text, found.references)
    return ProtobufReader(place, *numbered_message(place, files, indexes), fields).read


def _bare(read: Read, value: bytes) -> dict[str, Any]:
    try:
        return read(value)
    except ValueUnreadableError as error:
        if value[:1] != b"\0":
            raise
        hint = "it begins with byte 0, as framed records do; with a schema registry leave out input.format"
        raise ValueUnreadableError(f"{error}; {hint}") from error


@dataclass(frozen=True, slots=True)
class Events:
    """The events of some records. Records without a value are none, and are not refused.

    texts: the events, each as JSON or read already.
    rows: the index of each event's record; None if all records are events.
    refused: why a record is no event, by its index.
    skipped: how many records have no value.
    """

    texts: Sequence[EventText]
    rows: list[int] | None = None
    refused: dict[int, str] = field(default_factory=dict)
    skipped: int = 0


def events_of(
    messages: Sequence[Message],
    record_values: RecordValues,
    fields: Schema,
    format_: InputFormat | None = None,
) -> Events:
    """Return the events of records. Raises SchemaPendingError if a schema is not there yet.

    fields: the schema of what comes in.
    format_: what the stream's definition says of its input.
    """
    values = list(map(Message.value, messages))
    if not fields.reads_records and None not in values and _are_json(values, messages, format_):
        return Events(values)  # type: ignore[arg-type]
    texts: list[EventText] = []
    rows: list[int] = []
    refused: dict[int, str] = {}
    for row, (value, message) in enumerate(zip(values, messages)):
        if value is None:
            continue
        try:
            text = record_values.read(message, fields, format_)
        except (ValueUnreadableError, FramingError, UnknownSchemaError) as error:
            refused[row] = str(error)
            continue
        texts.append(RecordEvent(text, record_of(message)) if fields.reads_records else text)
        rows.append(row)
    return Events(texts, rows, refused, values.count(None))


def _are_json(
    values: Sequence[bytes | None], messages: Sequence[Message], format_: InputFormat | None
) -> bool:
    """Return whether all values are JSON, as far as their first bytes and the definition tell."""
    if format_ is not None:
        return format_.kind == input_format.JSON
    return not any(map(may_be_framed, values, messages))


def record_of(message: Message) -> EventRecord:
    """Return what a record has beside its value."""
    headers: Any = message.headers() or ()
    kind, time_ms = message.timestamp()
    key: Any = message.key()
    return EventRecord(key, dict(headers), NO_TIME_MS if kind == TIMESTAMP_NOT_AVAILABLE else time_ms)
