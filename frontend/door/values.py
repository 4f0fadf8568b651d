"""What stands in records of an input topic: which of them are texts of events, and why the others are none."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Message

from frontend.door.window import Letter
from railgun.messaging.kafka_settings import MESSAGE_LIMIT_BYTES

AVRO_MARK = b"\0"


@dataclass(frozen=True, slots=True)
class Texts:
    """rows: which records the texts are, in order; None: all.  refused: by record, why it is none."""

    texts: Sequence[bytes]
    rows: list[int] | None = None
    refused: dict[int, str] = field(default_factory=dict)


def texts_of(messages: Sequence[Message]) -> Texts:
    """The texts of records that have one."""
    values = list(map(Message.value, messages))
    if None not in values:
        return Texts(values)  # type: ignore[arg-type]
    rows = [row for row, value in enumerate(values) if value is not None]
    refused = {row: "it has no value" for row, value in enumerate(values) if value is None}
    return Texts([value for value in values if value is not None], rows, refused)


def letter(message: Message, reason: str) -> Letter:
    """A record that cannot be used, with the reason and its position in the headers."""
    value, key = message.value(), message.key()
    if value is not None and len(value) + len(key or b"") > MESSAGE_LIMIT_BYTES - (1 << 16):
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
