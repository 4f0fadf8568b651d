"""Makes the classes of Protobuf messages from descriptors: a descriptor set, or the files of a schema registry."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    message_factory,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from frontend.formats.errors import ValueUnreadableError
from railgun.wording import listed

DECIMAL = "confluent.type.Decimal"
"""What Kafka Connect writes of decimals. Its file is never sent, as registries take it to be known."""
_MAIN = "the schema"
_SHOWN = 10
_GOOGLES = (
    any_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, source_context_pb2, struct_pb2,
    timestamp_pb2, type_pb2, wrappers_pb2,
)  # fmt: skip
_Files = dict[str, descriptor_pb2.FileDescriptorProto]


def files_of_set(place: str, data: bytes) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the files of a descriptor set. Raises ValueUnreadableError."""
    found = descriptor_pb2.FileDescriptorSet()
    try:
        found.ParseFromString(data)
    except DecodeError:
        raise ValueUnreadableError(f"{place} is no descriptor set (FileDescriptorSet)") from None
    if not found.file:
        raise ValueUnreadableError(f"{place} is no descriptor set: it has no file")
    return list(found.file)


def files_of_registry(
    place: str, text: str, references: Iterable[tuple[str, str]]
) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the files of a registry's schema, which is the last one. Raises ValueUnreadableError.

    text: the file's descriptor in base64.  references: name and descriptor of the files that it imports.
    """
    return [_file_of(place, name, each) for name, each in (*references, (_MAIN, text))]


def named_message(
    place: str, files: Sequence[descriptor_pb2.FileDescriptorProto], name: str
) -> tuple[Descriptor, Any]:
    """Return (the descriptor of a message by its full name, its class). Raises ValueUnreadableError."""
    pool = _pool_of(place, files)
    try:
        found = pool.FindMessageTypeByName(name)
    except KeyError:
        known = [
            f"{each.package}.{message.name}".lstrip(".") for each in files for message in each.message_type
        ]
        raise ValueUnreadableError(
            f"{place} has no message {name[:200]}; it has {listed(known, _SHOWN)}"
        ) from None
    return found, message_factory.GetMessageClass(found)


def numbered_message(
    place: str, files: Sequence[descriptor_pb2.FileDescriptorProto], indexes: Sequence[int]
) -> tuple[Descriptor, Any]:
    """Return the same for a message of the last file by its number, and its number within that message, and so on."""
    within: Any = files[-1].message_type
    names = [files[-1].package] if files[-1].package else []
    for index in indexes:
        if not 0 <= index < len(within):
            raise ValueUnreadableError(f"{place} has no message {'.'.join(map(str, indexes))}")
        names.append(within[index].name)
        within = within[index].nested_type
    return named_message(place, files, ".".join(names))


def _file_of(place: str, name: str, text: str) -> descriptor_pb2.FileDescriptorProto:
    found = descriptor_pb2.FileDescriptorProto()
    try:
        found.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise ValueUnreadableError(
            f"{place}: the schema registry gives {name} as text; it has to serve descriptors (format=serialized)"
        ) from None
    except DecodeError:
        raise ValueUnreadableError(f"{place}: {name} is no file's descriptor") from None
    found.name = name
    return found


def _pool_of(place: str, files: Sequence[descriptor_pb2.FileDescriptorProto]) -> DescriptorPool:
    """Return a pool with files and what they import. Raises ValueUnreadableError."""
    known: _Files = {each.name: each for each in files}
    pool = DescriptorPool()
    ready: set[str] = set()
    try:
        for each in files:
            _add(pool, each, known, ready, ())
    except ValueUnreadableError as error:
        raise ValueUnreadableError(f"{place}: {error}") from None
    except Exception as error:  # foreign descriptors make a pool fail in any way
        raise ValueUnreadableError(f"{place} cannot be read: {str(error) or type(error).__name__}") from error
    return pool


def _add(
    pool: DescriptorPool,
    file: descriptor_pb2.FileDescriptorProto,
    known: Mapping[str, descriptor_pb2.FileDescriptorProto],
    ready: set[str],
    above: tuple[str, ...],
) -> None:
    """Add a file to a pool, behind what it imports. above: the files that import it."""
    if file.name in above:
        raise ValueUnreadableError(f"its imports go in a circle: {' -> '.join((*above, file.name))}")
    if file.name in ready:
        return
    for name in file.dependency:
        imported = known.get(name) or _provided().get(name)
        if imported is None:
            raise ValueUnreadableError(
                f"{file.name} imports {name}, which is not there: a registry needs it as a reference, a descriptor "
                "set --include_imports"
            )
        _add(pool, imported, known, ready, (*above, file.name))
    pool.AddSerializedFile(file.SerializeToString())
    ready.add(file.name)


@cache
def _provided() -> _Files:
    """Return the files that compilers and registries take to be known, by name."""
    found = _confluents()
    for module in _GOOGLES:
        found.append(descriptor_pb2.FileDescriptorProto())
        module.DESCRIPTOR.CopyToProto(found[-1])
    return {each.name: each for each in found}


def _confluents() -> list[descriptor_pb2.FileDescriptorProto]:
    """Return Confluent's files: options of fields, which say nothing of values, and decimals."""
    fields = descriptor_pb2.FieldDescriptorProto
    number = descriptor_pb2.FileDescriptorProto(name="confluent/type/decimal.proto", package="confluent.type")
    number.syntax = "proto3"
    decimal = number.message_type.add(name="Decimal")
    for at, (name, type_) in enumerate(
        (("value", fields.TYPE_BYTES), ("precision", fields.TYPE_UINT32), ("scale", fields.TYPE_INT32)), 1
    ):
        decimal.field.add(name=name, number=at, type=type_, label=fields.LABEL_OPTIONAL)
    older = descriptor_pb2.FileDescriptorProto(name="confluent/types/decimal.proto", syntax="proto3")
    older.dependency.append(number.name)
    older.public_dependency.append(0)
    options = descriptor_pb2.FileDescriptorProto(name="confluent/meta.proto", package="confluent")
    return [number, older, options]
