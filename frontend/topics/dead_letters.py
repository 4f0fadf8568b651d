"""Makes the dead letters of records that cannot be used: their bytes, why, and where they were."""

import time
from typing import NamedTuple

from confluent_kafka import Message

from railgun.messaging.kafka.settings import MESSAGE_LIMIT_BYTES
from railgun.messaging.transport import Headers

_HEADERS_BYTES = 1 << 16


class Letter(NamedTuple):
    """A dead letter: a record that could not be used, as it came, and headers that say why."""

    key: bytes | None
    value: bytes | None
    headers: Headers


def letter(message: Message, stream: str, reason: str) -> Letter:
    """Return the dead letter of a record that a stream cannot use. Headers have the reason and its position."""
    value, key = message.value(), message.key()
    if value is not None and len(value) + len(key or b"") > MESSAGE_LIMIT_BYTES - _HEADERS_BYTES:
        reason += f" (its {len(value)} bytes are too many for this topic too)"
        value = None
    headers = [
        ("reason", reason.encode(errors="replace")),
        ("topic", (message.topic() or "").encode()),
        ("partition", b"%d" % (message.partition() or 0)),
        ("offset", b"%d" % (message.offset() or 0)),
        # Streams may share a topic of dead letters.
        ("stream", stream.encode()),
        ("time", b"%d" % (time.time_ns() // 1_000_000)),
    ]
    return Letter(key, value, headers)
