"""Reads records of a topic as documents, whatever their fields are: JSON, and what is in Confluent's framing."""

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from time import sleep
from typing import Any

import fastavro
from confluent_kafka import Message

from frontend.formats.avro import parsed
from frontend.formats.errors import SchemaPendingError, UnknownSchemaError, ValueUnreadableError
from frontend.formats.framing import Frame, FramingError, SchemaId, frame_of
from frontend.formats.readers import Read, Readers
from frontend.formats.schemas import Schemas
from frontend.formats.values import record_of
from frontend.formats.written_schema import AVRO, JSON_SCHEMA, WrittenSchema
from railgun.draft.errors import DraftError
from railgun.draft.sample import Sample
from railgun.files.ndjson_source import read_object

_NULL = "without a value"
_FOREIGN = "neither a JSON object nor in Confluent's framing"
_NO_SCHEMAS = (
    "framed by a schema registry; name it with --config FILE (input.schema_registry_url or input.schema_file)"
)
_LOOK_S = 0.01


def sample_of(topic: str, messages: Sequence[Message], schemas: Schemas | None) -> Sample:
    """Return the sample that some records of a topic are.

    schemas: None if none are configured.
    Raises DraftError if none of the records is an event, or if the schema registry is away.
    """
    if not messages:
        raise DraftError(f"{topic}: the topic has no records; write some events to it, then run this again")
    documents = _Documents(schemas)
    read: list[tuple[Message, Mapping[str, Any]]] = []
    unread: Counter[str] = Counter()
    for message in messages:
        try:
            read.append((message, documents.of(message)))
        except (ValueUnreadableError, FramingError, UnknownSchemaError) as error:
            unread[str(error)] += 1
        except SchemaPendingError as error:
            raise DraftError(f"{topic}: {error.why}") from error
    if not read:
        why, _ = unread.most_common(1)[0]
        raise DraftError(
            f"{topic}: none of its newest {len(messages):,} records can be read as an event: {why}"
        )
    read.sort(key=lambda each: each[0].partition() or 0)
    return Sample(
        topic,
        [document for _, document in read],
        is_topic=True,
        records=[record_of(message) for message, _ in read],
        lanes=[message.partition() or 0 for message, _ in read],
        unread=dict(unread),
    )


class _Documents:
    """Reads the values of records. What errors say has nothing of their content."""

    def __init__(self, schemas: Schemas | None) -> None:
        self._schemas = schemas
        self._readers = Readers()

    def of(self, message: Message) -> Mapping[str, Any]:
        """Return the document of a record.

        Raises ValueUnreadableError, FramingError, UnknownSchemaError; SchemaPendingError if the registry is away.
        """
        value = message.value()
        if value is None:
            raise ValueUnreadableError(_NULL)
        frame = frame_of(value, message)
        return _json(value) if frame is None else self._framed(frame, value)

    def _framed(self, frame: Frame, value: bytes) -> Mapping[str, Any]:
        if self._schemas is None:
            raise ValueUnreadableError(_NO_SCHEMAS)
        schema_id = frame.schema_id
        written = _awaited(self._schemas, schema_id)
        if written.kind == JSON_SCHEMA:
            return _json(frame.content(value))
        if written.kind == AVRO:
            read = self._readers.get(schema_id, lambda: _avro(schema_id, written))
            content = frame.content(value)
        else:
            indexes, content = frame.message(value)
            read = self._readers.get((schema_id, indexes), lambda: _protobuf(schema_id, written, indexes))
        try:
            return read(content)
        except Exception as error:  # foreign bytes make a decoder fail in any way
            raise ValueUnreadableError(f"no {written.kind.capitalize()} of schema {schema_id}") from error


def _awaited(schemas: Schemas, schema_id: SchemaId) -> WrittenSchema:
    """Return a schema once it is there. Raises UnknownSchemaError; SchemaPendingError if the registry is away."""
    while True:
        try:
            return schemas.schema(schema_id)
        except SchemaPendingError as error:
            if error.why is not None:
                raise
            sleep(_LOOK_S)


def _avro(schema_id: SchemaId, written: WrittenSchema) -> Read:
    """Return the function that decodes values with their logical types. Raises ValueUnreadableError."""
    try:
        schema = parsed(json.loads(written.text), [json.loads(text) for _, text in written.references])
    except ValueUnreadableError as error:
        raise ValueUnreadableError(f"schema {schema_id}: {error}") from None
    except Exception as error:  # a foreign schema makes a parser fail in any way
        raise ValueUnreadableError(f"schema {schema_id} cannot be read") from error

    def read(value: bytes) -> dict[str, Any]:
        found: Any = fastavro.schemaless_reader(
            io.BytesIO(value), schema, None, handle_unicode_errors="surrogateescape"
        )
        return dict(found)

    return read


def _protobuf(schema_id: SchemaId, written: WrittenSchema, indexes: Sequence[int]) -> Read:
    """Return the function that decodes messages. Raises ValueUnreadableError."""
    # The library takes 25 ms to load, and is needed where there is Protobuf.
    from frontend.formats.descriptors import files_of_registry, numbered_message
    from frontend.formats.protobuf import document_of

    place = f"schema {schema_id}"
    files = files_of_registry(place, written.text, written.references)
    _, class_ = numbered_message(place, files, indexes)
    return lambda value: document_of(class_.FromString(value))


def _json(value: bytes) -> Mapping[str, Any]:
    document, fault = read_object(value)
    if fault is not None:
        raise ValueUnreadableError(_FOREIGN)
    return document
