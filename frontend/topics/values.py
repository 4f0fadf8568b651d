"""What stands in records of an input topic: events as JSON or Avro, or why they are none."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Message

from frontend.topics.avro import AvroError, AvroValues
from frontend.topics.schemas import UnknownSchemaError
from frontend.topics.window import Letter
from railgun.ingest.intake import EventText
from railgun.messaging.kafka.settings import MESSAGE_LIMIT_BYTES
from railgun.wire.schema import Schema

_HEADERS_BYTES = 1 << 16
# No JSON begins with it.
_AVRO_MARK = b"\0"


@dataclass(frozen=True, slots=True)
class Events:
    """rows: which records the events are, in order; None: all.  refused: by record, why it is none."""

    texts: Sequence[EventText]
    rows: list[int] | None = None
    refused: dict[int, str] = field(default_factory=dict)


def events_of(messages: Sequence[Message], avro: AvroValues, fields: Schema) -> Events:
    """The events of records. Raises TransportUnavailableError where a schema cannot be had now."""
    values = list(map(Message.value, messages))
    if None not in values and not any(map(_may_be_avro, values, messages)):
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
        texts.append(value if event is None else event)
        rows.append(row)
    return Events(texts, rows, refused)


def _may_be_avro(value: bytes | None, message: Message) -> bool:
    return value is not None and (value[:1] == _AVRO_MARK or bool(message.headers()))


def letter(message: Message, reason: str) -> Letter:
    """A record that cannot be used, with the reason and its position in the headers."""
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
