"""JSON documents as Protobuf messages, each with a message type that it fits."""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

FIELD = descriptor_pb2.FieldDescriptorProto
PACKAGE, MESSAGE = "shop.v2", "Event"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class UnfitError(ValueError):
    """No message is as the document: an array has nulls, arrays or several kinds, or a name has other letters."""


class Shape(NamedTuple):
    """kind: a scalar type's number, "object", or "" of what is null everywhere.  fields: those of objects."""

    kind: int | str
    is_list: bool = False
    fields: Mapping[str, "Shape"] = {}


class Encoded(NamedTuple):
    """file: the descriptor.  name: the full name of the message.  value: its bytes."""

    file: descriptor_pb2.FileDescriptorProto
    name: str
    value: bytes

    @property
    def descriptor(self) -> str:
        """The file's, in base64, as schema registries give it."""
        return base64.b64encode(self.file.SerializeToString()).decode()

    @property
    def set(self) -> bytes:
        return descriptor_pb2.FileDescriptorSet(file=[self.file]).SerializeToString()


def encoded(document: Mapping[str, Any], syntax: str = "proto2", before: Sequence[str] = ()) -> Encoded:
    """Of proto2, whose fields have presence.  before: names of messages in front of the document's."""
    shape = shape_of(document)
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package=PACKAGE, syntax=syntax)
    for name in before:
        file.message_type.add(name=name)
    _declare(file.message_type.add(name=MESSAGE), shape, f".{PACKAGE}.{MESSAGE}")
    found = Encoded(file, f"{PACKAGE}.{MESSAGE}", b"")
    message = class_of(found)()
    try:
        _fill(message, document, shape)
    except UnicodeEncodeError:
        raise UnfitError from None
    return found._replace(value=message.SerializeToString())


def class_of(found: Encoded) -> Any:
    """The class of such messages."""
    pool = DescriptorPool()
    pool.Add(found.file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(found.name))


def shape_of(value: Any) -> Shape:
    if value is None:
        return Shape("")
    if isinstance(value, bool):
        return Shape(FIELD.TYPE_BOOL)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return Shape(FIELD.TYPE_INT64)
        if 0 <= value < 1 << 64:
            return Shape(FIELD.TYPE_UINT64)
        raise UnfitError
    if isinstance(value, float):
        return Shape(FIELD.TYPE_DOUBLE)
    if isinstance(value, str):
        return Shape(FIELD.TYPE_STRING)
    if isinstance(value, Mapping):
        if not all(map(NAME.fullmatch, value)):
            raise UnfitError
        return Shape("object", fields={name: shape_of(each) for name, each in value.items()})
    found = Shape("")
    for each in value:
        shape = shape_of(each)
        if shape.is_list or shape.kind == "":
            raise UnfitError
        found = _merged(found, shape)
    return found._replace(is_list=True)


def _merged(one: Shape, other: Shape) -> Shape:
    if "" in (one.kind, other.kind) and not (one.is_list or other.is_list):
        return other if one.kind == "" else one
    if (one.kind, one.is_list) != (other.kind, other.is_list):
        raise UnfitError
    fields = dict(one.fields)
    for name, shape in other.fields.items():
        fields[name] = _merged(fields.get(name, Shape("")), shape)
    return one._replace(fields=fields)


def _declare(message: descriptor_pb2.DescriptorProto, shape: Shape, name: str) -> None:
    for number, (field_name, inner) in enumerate(shape.fields.items(), 1):
        label = FIELD.LABEL_REPEATED if inner.is_list else FIELD.LABEL_OPTIONAL
        field = message.field.add(name=field_name, number=number, label=label)
        if inner.kind == "object":
            field.type, field.type_name = FIELD.TYPE_MESSAGE, f"{name}.M{number}"
            _declare(message.nested_type.add(name=f"M{number}"), inner, field.type_name)
        else:
            field.type = FIELD.TYPE_STRING if isinstance(inner.kind, str) else inner.kind  # type: ignore[assignment]


def _fill(message: Any, value: Mapping[str, Any], shape: Shape) -> None:
    message.SetInParent()
    for name, each in value.items():
        inner = shape.fields[name]
        if inner.is_list:
            for element in each or ():
                if inner.kind == "object":
                    _fill(getattr(message, name).add(), element, inner)
                else:
                    getattr(message, name).append(element)
        elif each is not None:
            if inner.kind == "object":
                _fill(getattr(message, name), each, inner)
            else:
                setattr(message, name, each)
