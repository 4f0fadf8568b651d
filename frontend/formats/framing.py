"""Finds the id of a record's schema in Confluent's framing: before the value, or in a header."""

import uuid
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

SchemaId = int | str
"""An id is a number, or a GUID as text."""

_MARK, _GUID_MARK = 0, 1
_ID_BYTES, _GUID_BYTES = 5, 17
_HEADER = "__value_schema_id"
# No JSON begins with it.
_MARK_BYTE = bytes((_MARK,))
# The deepest message within messages that a frame may name, and the longest number in it.
_INDEXES_MAX, _NUMBER_BYTES = 32, 5


class FramingError(ValueError):
    """A record's frame cannot be read. The message says why."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a frame says.

    schema_id: the id of the schema.
    data, start: where the frame goes on behind the id: bytes, and a place in them.
    in_header: whether that is in a header. The value then has the event alone.
    """

    schema_id: SchemaId
    data: bytes
    start: int
    in_header: bool

    def content(self, value: bytes) -> bytes:
        """Return the bytes of an event whose frame ends with the id."""
        return value if self.in_header else value[self.start :]

    def message(self, value: bytes) -> tuple[tuple[int, ...], bytes]:
        """Return (which message of its Protobuf schema an event is, from the outermost inwards; the event's bytes).

        Raises FramingError.
        """
        count, at = _number(self.data, self.start)
        if not 0 <= count <= _INDEXES_MAX:
            raise FramingError(f"framed Protobuf of a message in {count} messages")
        indexes: list[int] = []
        for _ in range(count):
            index, at = _number(self.data, at)
            indexes.append(index)
        return tuple(indexes) or (0,), value if self.in_header else value[at:]


def may_be_framed(value: bytes | None, message: Message) -> bool:
    """Return whether `frame_of` has to look. It is called for every record."""
    return value is not None and (value[:1] == _MARK_BYTE or bool(message.headers()))


def frame_of(value: bytes, message: Message) -> Frame | None:
    """Return the frame of a record with this value; None if it has none. Raises FramingError."""
    headers: Any = message.headers()
    if headers:
        for name, content in headers:
            if name == _HEADER and isinstance(content, bytes) and len(content) >= _GUID_BYTES:
                if content[0] == _GUID_MARK:
                    guid = str(uuid.UUID(bytes=content[1:_GUID_BYTES]))
                    return Frame(guid, content, _GUID_BYTES, in_header=True)
    if value[:1] != _MARK_BYTE:
        return None
    if len(value) < _ID_BYTES:
        raise FramingError(f"framed by byte 0, and of {len(value)} bytes, too few for a schema's id")
    return Frame(int.from_bytes(value[1:_ID_BYTES], "big"), value, _ID_BYTES, in_header=False)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return (a number, the place behind it). Bytes have 7 bits, the lowest first; the lowest of all is the sign."""
    found = 0
    for place, byte in enumerate(data[at : at + _NUMBER_BYTES]):
        found |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return found >> 1 ^ -(found & 1), at + place + 1
    raise FramingError("framed Protobuf that does not say which message it is")
