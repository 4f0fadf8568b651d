"""Control records: changes of the catalogue as records of a task's log."""

from typing import Any

import msgspec

from railgun.wire.records import CONTROL

_CONTROL = bytes((CONTROL,))
_encode = msgspec.msgpack.Encoder().encode
_decode_map = msgspec.msgpack.Decoder(dict[str, Any]).decode


class ControlRecordError(ValueError):
    """The bytes are not a control record. The message says why."""


def encode_control(definition: dict[str, Any]) -> bytes:
    """Encode a change of the catalogue as a control record. definition: a map of JSON values, with its `kind`."""
    return _CONTROL + _encode(definition)


def decode_control(record: bytes) -> dict[str, Any]:
    """Decode a control record to its map. Raises ControlRecordError."""
    if record[:1] != _CONTROL:
        raise ControlRecordError(
            f"no control record: its first byte is {record[:1].hex() or 'missing'}, not 02"
        )
    try:
        definition = _decode_map(record[1:])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ControlRecordError(f"a control record whose map cannot be read: {error}") from error
    if not isinstance(definition.get("kind"), str):
        raise ControlRecordError("a control record without a kind")
    return definition
