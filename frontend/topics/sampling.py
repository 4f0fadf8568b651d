"""Reads records of a topic as documents, whatever their fields are: JSON, or Avro in Confluent's framing."""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro
import msgspec
from confluent_kafka import Message

from frontend.topics.schemas import Schemas, UnknownSchemaError
from frontend.topics.values import AvroError, record_of, schema_id_of
from railgun.draft.errors import DraftError
from railgun.draft.sample import Sample
from railgun.wire.values import decode_any_json

_NULL = "without a value"
_FOREIGN = "neither a JSON object nor Avro in Confluent's framing"


def sample_of(topic: str, messages: Sequence[Message], schemas: Schemas | None) -> Sample:
    """Return the sample that some records of a topic are.

    Raises DraftError if none of them is an event; TransportUnavailableError if a schema cannot be read now.
    """
    if not messages:
        raise DraftError(f"{topic}: the topic has no records; write some events to it, then run this again")
    read: list[tuple[Message, Mapping[str, Any]]] = []
    unread: Counter[str] = Counter()
    for message in messages:
        try:
            read.append((message, _document(message, schemas)))
        except (_UnreadError, AvroError, UnknownSchemaError) as error:
            unread[str(error)] += 1
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


class _UnreadError(ValueError):
    """A record is no event. The message says why, without its content."""


def _document(message: Message, schemas: Schemas | None) -> Mapping[str, Any]:
    value = message.value()
    if value is None:
        raise _UnreadError(_NULL)
    found = schema_id_of(value, message)
    if found is not None:
        return _avro(value, *found, schemas)
    try:
        document = decode_any_json(value)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise _UnreadError(_FOREIGN) from None
    if not isinstance(document, dict):
        raise _UnreadError(_FOREIGN)
    return document


def _avro(value: bytes, schema_id: int | str, start: int, schemas: Schemas | None) -> Mapping[str, Any]:
    if schemas is None:
        raise _UnreadError(
            "framed by a schema registry; name it with --config FILE (input.schema_registry_url, or input.schema_file)"
        )
    data = io.BytesIO(value)
    data.seek(start)
    written = schemas.schema(schema_id)
    try:
        event: Any = fastavro.schemaless_reader(data, written, None, handle_unicode_errors="surrogateescape")
    except Exception as error:  # foreign bytes make a decoder fail in any way
        raise _UnreadError(f"no Avro of schema {schema_id}") from error
    if not isinstance(event, dict):
        raise _UnreadError(f"schema {schema_id} is no record; events are records")
    return event
