"""Decodes Protobuf messages to events, of which it makes no more than the stream's fields read; or to documents.

Names are those of the .proto file. `_value` says what values become.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from frontend.formats.descriptors import DECIMAL
from frontend.formats.errors import ValueUnreadableError
from railgun.wire.finding import steps_of
from railgun.wire.path import Step
from railgun.wire.schema import Field, Schema, WireKind
from railgun.wire.values import Milliseconds

Read = Callable[[Any], Any]

_GOOGLE = "google.protobuf."
_TIMESTAMP = _GOOGLE + "Timestamp"
_WRAPPERS = frozenset(
    f"{_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_STRUCT, _VALUE, _LIST = (_GOOGLE + name for name in ("Struct", "Value", "ListValue"))
# Paths number the elements of arrays up to 15.
_ELEMENTS = 16
_DECIMAL_BYTES, _SCALE_MAX = 40, 1_000
_EXACT = Context(prec=100)


class ProtobufReader:
    """Decodes records of one type of message.

    place: what errors call the schema.  type_, class_: the message's descriptor and class.
    fields: the schema of what comes in.
    Raises ValueUnreadableError if a field cannot be what the message has for it.
    """

    def __init__(self, place: str, type_: Descriptor, class_: Any, fields: Schema) -> None:
        self._decode = class_.FromString
        self._name = type_.full_name
        try:
            self._read = _object(type_, _wanted(fields))
        except ValueUnreadableError as error:
            raise ValueUnreadableError(f"{place}: {error}") from None

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the event. Raises ValueUnreadableError."""
        try:
            event: dict[str, Any] = self._read(self._decode(value))
        except Exception as error:  # foreign bytes make a decoder fail in any way
            raise ValueUnreadableError(f"no Protobuf of the message {self._name}: {error}") from error
        return event


def document_of(message: Any) -> dict[str, Any]:
    """Return all that a message has, with the values that events would have. Raises ValueError."""
    return {
        each.name: None
        if each.has_presence and not message.HasField(each.name)
        else _whole(each, getattr(message, each.name))
        for each in message.DESCRIPTOR.fields
    }


@dataclass(slots=True)
class _Place:
    """A place in a message. fields: those that read it.  inner: the places within it, by the step there."""

    fields: list[Field] = field(default_factory=list)
    inner: "dict[Step, _Place]" = field(default_factory=dict)

    def names(self) -> dict[str, "_Place"]:
        """Return the inner places of an object."""
        return {step: each for step, each in self.inner.items() if isinstance(step, str)}

    def element(self) -> "_Place":
        """Return a place with all that is read of any element of an array."""
        found = _Place()
        for step, each in self.inner.items():
            if isinstance(step, int):
                found.take(each)
        return found

    def take(self, other: "_Place") -> None:
        """Add what is read of another place."""
        self.fields += other.fields
        for step, each in other.inner.items():
            self.inner.setdefault(step, _Place()).take(each)


def _wanted(fields: Schema) -> _Place:
    root = _Place()
    for each in fields.fields:
        place, steps = root, steps_of(each)
        for step in steps:
            place = place.inner.setdefault(step, _Place())
        if steps:
            place.fields.append(each)
    return root


def _object(type_: Descriptor, place: _Place) -> Read:
    """Return the function that makes an object of a message, with the fields that are read of it."""
    readers: list[tuple[str, bool, Read]] = []
    for name, inner in place.names().items():
        found = type_.fields_by_name.get(name)
        if found is not None:
            readers.append((name, found.has_presence, _field(found, inner)))

    def read(message: Any) -> dict[str, Any]:
        return {
            name: None if has_presence and not message.HasField(name) else of_value(getattr(message, name))
            for name, has_presence, of_value in readers
        }

    return read


def _field(found: FieldDescriptor, place: _Place) -> Read:
    type_ = found.message_type
    if type_ is not None and type_.GetOptions().map_entry:
        return _map(type_, place)
    if found.is_repeated:
        element = _value(found, place.element())
        return lambda values: [element(each) for each in values[:_ELEMENTS]]
    return _value(found, place)


def _map(entry: Descriptor, place: _Place) -> Read:
    """Return the function that makes an object of a map. Numbers and booleans are keys as JSON would write them."""
    value = entry.fields_by_name["value"]
    readers = {name: _value(value, inner) for name, inner in place.names().items()}
    return lambda found: {name: readers[name](found[key]) for key in found if (name := _key(key)) in readers}


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(found: FieldDescriptor, place: _Place) -> Read:
    """Return the function that makes what the validator takes of a field's value, or of an element's."""
    if found.enum_type is not None:
        return _enum(found.enum_type)
    type_ = found.message_type
    if type_ is None:
        return _same
    name = type_.full_name
    if name in _JSON:
        return _JSON[name]
    if not place.inner and name in _LEAVES:
        kind, read = _LEAVES[name]
        for each in place.fields:
            if each.type.kind is not kind:
                raise ValueUnreadableError(f"{each.place} is {name} and cannot be {each.type}")
        return read
    if not place.inner and name in _WRAPPERS:
        return lambda message: message.value
    return _object(type_, place)


def _same(value: Any) -> Any:
    return value


def _enum(type_: EnumDescriptor) -> Read:
    """Return the function that makes a name of a number; a number without a name stays one."""
    names: Mapping[int, str] = {number: each.name for number, each in type_.values_by_number.items()}
    return lambda number: names.get(number, number)


def _time(message: Any) -> Milliseconds:
    return Milliseconds(message.seconds * 1_000 + message.nanos // 1_000_000)


def _decimal(message: Any) -> Decimal:
    if len(message.value) > _DECIMAL_BYTES or abs(message.scale) > _SCALE_MAX:
        raise ValueError(f"a decimal of {len(message.value)} bytes and scale {message.scale}")
    return Decimal(int.from_bytes(message.value, "big", signed=True)).scaleb(-message.scale, _EXACT)


_LEAVES: dict[str, tuple[WireKind, Read]] = {
    _TIMESTAMP: (WireKind.TIMESTAMP, _time),
    DECIMAL: (WireKind.DECIMAL, _decimal),
}


def _json_value(message: Any) -> Any:
    kind = message.WhichOneof("kind")
    if kind == "struct_value":
        return _json_object(message.struct_value)
    if kind == "list_value":
        return _json_array(message.list_value)
    if kind == "number_value":
        # JSON's numbers are doubles here; a whole one is a long to whoever wrote it.
        number = message.number_value
        return int(number) if number.is_integer() and abs(number) <= 1 << 53 else number
    return None if kind in (None, "null_value") else getattr(message, kind)


def _json_object(message: Any) -> dict[str, Any]:
    return {name: _json_value(each) for name, each in message.fields.items()}


def _json_array(message: Any) -> list[Any]:
    return [_json_value(each) for each in message.values[:_ELEMENTS]]


_JSON: dict[str, Read] = {_STRUCT: _json_object, _VALUE: _json_value, _LIST: _json_array}


def _whole(found: FieldDescriptor, value: Any) -> Any:
    """Return all of a field's value."""
    type_ = found.message_type
    if type_ is not None and type_.GetOptions().map_entry:
        inner = type_.fields_by_name["value"]
        return {_key(key): _whole_value(inner, value[key]) for key in value}
    if found.is_repeated:
        return [_whole_value(found, each) for each in value[:_ELEMENTS]]
    return _whole_value(found, value)


def _whole_value(found: FieldDescriptor, value: Any) -> Any:
    type_ = found.message_type
    is_plain = type_ is None or any(type_.full_name in known for known in (_JSON, _LEAVES, _WRAPPERS))
    return _value(found, _Place())(value) if is_plain else document_of(value)
