"""Protobuf: what its types become, and the errors of descriptors, messages and bytes."""

import base64
import struct
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka import Message
from google.protobuf import descriptor_pb2

from frontend.formats import descriptors
from frontend.formats.descriptors import files_of_registry, files_of_set, named_message, numbered_message
from frontend.formats.errors import ValueUnreadableError
from frontend.formats.protobuf import ProtobufReader, document_of
from frontend.formats.values import RecordValues, events_of
from frontend.formats.written_schema import PROTOBUF, WrittenSchema
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.ingest.intake import ParsedEvent
from railgun.wire.values import Milliseconds
from tests.paths.doors import LATEST_MS, OneSchema, Outcome, Refused, intake_of, outcome
from tests.paths.protobuf_documents import FIELD

WELL_KNOWN = {
    "t": "google.protobuf.Timestamp",
    "s": "google.protobuf.Struct",
    "v": "google.protobuf.Value",
    "w": "google.protobuf.Int64Value",
    "d": "confluent.type.Decimal",
}
SCALARS = [
    ("i32", FIELD.TYPE_INT32), ("u64", FIELD.TYPE_UINT64), ("fl", FIELD.TYPE_FLOAT), ("tx", FIELD.TYPE_STRING),
    ("by", FIELD.TYPE_BYTES), ("ok", FIELD.TYPE_BOOL), ("db", FIELD.TYPE_DOUBLE),
]  # fmt: skip


def files(syntax: str = "proto3") -> list[Any]:
    common = descriptor_pb2.FileDescriptorProto(name="common.proto", package="shop", syntax=syntax)
    kind = common.enum_type.add(name="Kind")
    for number, name in enumerate(("UNKNOWN", "CARD")):
        kind.value.add(name=name, number=number)
    main = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax=syntax)
    main.dependency.extend(
        [
            "common.proto",
            "google/protobuf/timestamp.proto",
            "google/protobuf/struct.proto",
            "google/protobuf/wrappers.proto",
            "confluent/type/decimal.proto",
            "confluent/meta.proto",
        ]
    )
    event = main.message_type.add(name="Event")
    for number, (name, type_) in enumerate(SCALARS, 1):
        event.field.add(name=name, number=number, type=type_, label=1)
    for number, (name, of) in enumerate(WELL_KNOWN.items(), 11):
        event.field.add(name=name, number=number, type=FIELD.TYPE_MESSAGE, type_name=f".{of}", label=1)
    event.field.add(name="kind", number=20, type=FIELD.TYPE_ENUM, type_name=".shop.Kind", label=1)
    event.field.add(
        name="again", number=21, type=FIELD.TYPE_MESSAGE, type_name=".shop.Event", label=FIELD.LABEL_REPEATED
    )
    for number, (name, key, value) in enumerate(
        (("by_name", FIELD.TYPE_STRING, FIELD.TYPE_INT64), ("by_ok", FIELD.TYPE_BOOL, FIELD.TYPE_INT64)), 22
    ):
        entry = event.nested_type.add(name="".join(map(str.capitalize, name.split("_"))) + "Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key, label=1)
        entry.field.add(name="value", number=2, type=value, label=1)
        event.field.add(
            name=name, number=number, type=FIELD.TYPE_MESSAGE, type_name=f".shop.Event.{entry.name}", label=3
        )
    within = main.message_type.add(name="Out").nested_type.add(name="In")
    within.field.add(name="x", number=1, type=FIELD.TYPE_INT64, label=1)
    return [main, common]


def set_of(found: list[Any]) -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=found).SerializeToString()


EVENT = named_message("it", files(), "shop.Event")


def stream(**fields: Any) -> StreamDefinition:
    return stream_from_json({"name": "s", "fields": fields})


def read(message: Any, **fields: Any) -> Outcome:
    """The values of a stream's fields in a message."""
    defined = stream(**fields)
    reader = ProtobufReader("it", *EVENT, defined.incoming(1))
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return outcome(intake_of(defined).take([ParsedEvent(reader.read(data), 0)], LATEST_MS), 0)


def at(path: str, type_: str, **more: str) -> dict[str, str]:
    return {"type": type_, "from": path} | more


def test_defaults_of_proto3_are_values() -> None:
    found = read(
        EVENT[1](),
        i32="long",
        fl="double",
        tx="string",
        ok="boolean",
        kind="string",
        t="timestamp",
        w="long",
        inner=at("again[0].i32", "long"),
        by=at("by_name.x", "long"),
        missing="long",
    )
    assert found == [0, 0.0, "", False, "UNKNOWN", None, None, None, None, None]


def test_fields_of_proto2_are_null() -> None:
    found, class_ = named_message("it", files("proto2"), "shop.Event")
    reader = ProtobufReader("it", found, class_, stream(i32="long", tx="string", kind="string").incoming(1))
    assert reader.read(b"") == {"i32": None, "tx": None, "kind": None}
    assert reader.read(class_(i32=0, tx="").SerializeToString()) == {"i32": 0, "tx": "", "kind": None}


def test_values() -> None:
    event = EVENT[1](
        i32=-7, u64=(1 << 64) - 1, fl=0.1, tx="ü\0", by=b"\xff", ok=True, kind=1,
        by_name={"x": 5, "": 6}, by_ok={True: 1},
        again=[EVENT[1](i32=n) for n in range(20)],
    )  # fmt: skip
    event.t.seconds, event.t.nanos = -2, 999_999_999
    event.w.value = 0
    event.w.SetInParent()
    event.d.value, event.d.scale = (-12345).to_bytes(2, "big", signed=True), 2
    event.s.update({"a": [1, {"b": 2.5}], "n": None, "t": "x", "o": True})
    event.v.number_value = 7.0
    found = read(
        event,
        i32="long",
        fl="double",
        tx="string",
        ok="boolean",
        kind="string",
        t="timestamp",
        unit=at("t", "timestamp", unit="us"),
        w="long",
        d="decimal(9,2)",
        named=at("by_name.x", "long"),
        nameless=at("by_name['']", "long"),
        true=at("by_ok.true", "long"),
        b=at("s.a[1].b", "double"),
        a=at("s.a[0]", "long"),
        n=at("s.n", "long"),
        v="long",
        last=at("again[15].i32", "long"),
    )
    shortest = struct.unpack("f", struct.pack("f", 0.1))[0]
    assert found == [
        -7, shortest, "ü\0", True, "CARD", -1_001, -1_001, 0, -12_345, 5, 6, 1, 2.5, 1, None, 7, 15,
    ]  # fmt: skip
    parts = read(event, seconds=at("t.seconds", "timestamp", unit="s"), w=at("w.value", "long"))
    assert parts == [-2_000, 0]
    for path, type_, why in (
        ("u64", "long", "18446744073709551615 is beyond 64 bits"),
        ("by", "string", "the bytes b'\\xff' is not a string"),
        ("kind", "long", "the string 'CARD' is not a long"),
        ("again", "long", "the array [{}"),
        ("again.i32", "long", "is not an object, at again"),
        ("i32.x", "long", "the number -7 is not an object, at i32"),
        ("by_name", "string", "the object {} is not a string"),
        ("s", "string", "the object {'"),
        ("t.seconds.x", "long", "is not an object, at t.seconds"),
        ("fl", "decimal(9,2)", "a binary float is no exact decimal(9,2)"),
    ):
        refused = read(event, x=at(path, type_))
        assert isinstance(refused, Refused)
        assert why in str(refused), refused


def test_a_whole_message() -> None:
    """As a document, for drafts."""
    event = EVENT[1](
        i32=-7, u64=(1 << 64) - 1, tx="ü", by=b"\xff", ok=True, kind=1, by_name={"x": 5}, by_ok={True: 1},
        again=[EVENT[1](i32=n) for n in range(20)],
    )  # fmt: skip
    event.t.seconds, event.d.value, event.d.scale = -2, b"\5", 2
    event.w.SetInParent()
    event.s.update({"a": [1, {"b": 2.5}], "n": None})
    event.again[0].t.seconds = 3
    found = document_of(event)
    assert [each["i32"] for each in found["again"]] == list(range(16))
    inner = found.pop("again")[0]
    assert (inner["t"], inner["again"], inner["s"], inner["w"]) == (3_000, [], None, None)
    assert found == {
        "i32": -7, "u64": (1 << 64) - 1, "fl": 0.0, "tx": "ü", "by": b"\xff", "ok": True, "db": 0.0,
        "t": -2_000, "s": {"a": [1, {"b": 2.5}], "n": None}, "v": None, "w": 0, "d": Decimal("0.05"),
        "kind": "CARD", "by_name": {"x": 5}, "by_ok": {"true": 1},
    }  # fmt: skip
    assert isinstance(found["t"], Milliseconds)


def test_a_number_without_a_name_stays_one() -> None:
    event = EVENT[1].FromString(bytes([20 << 3 & 0x7F | 0x80, 1, 9]))
    assert event.kind == 9
    assert str(read(event, kind="string")) == "kind: the number 9 is not a string"


def test_64_kib_of_unknown_fields() -> None:
    event = EVENT[1](i32=5).SerializeToString()
    junk = bytes([0xFA, 0x7F, 0x80, 0x80, 0x04]) + b"x" * 65_536
    assert read(junk + event + junk, i32="long") == [5]


@pytest.mark.parametrize(
    ("path", "type_", "why"),
    [
        ("t", "long", "it: t is google.protobuf.Timestamp and cannot be long"),
        ("again[2].t", "string", "it: again[2].t is google.protobuf.Timestamp and cannot be string"),
        ("d", "double", "it: d is confluent.type.Decimal and cannot be double"),
    ],
)
def test_fields_that_cannot_be(path: str, type_: str, why: str) -> None:
    with pytest.raises(ValueUnreadableError) as caught:
        ProtobufReader("it", *EVENT, stream(x=at(path, type_)).incoming(1))
    assert str(caught.value) == why


def test_a_decimal_of_very_many_digits() -> None:
    event = EVENT[1]()
    event.d.value = b"\x7f" * 41
    with pytest.raises(
        ValueUnreadableError, match=r"no Protobuf of the message shop\.Event: a decimal of 41 b"
    ):
        read(event, d="decimal(9,2)")


def test_descriptor_sets() -> None:
    assert [each.name for each in files_of_set("it", set_of(files()))] == ["shop.proto", "common.proto"]
    for data in (b"", b"\xff\xff", b"\x0a\x01"):
        with pytest.raises(ValueUnreadableError, match="it is no descriptor set"):
            files_of_set("it", data)
    main, common = files()
    with pytest.raises(ValueUnreadableError) as caught:
        named_message("it", [main], "shop.Event")
    assert str(caught.value) == (
        "it: shop.proto imports common.proto, which is not there: a registry needs it as a reference, a descriptor set "
        "--include_imports"
    )
    with pytest.raises(ValueUnreadableError) as caught:
        named_message("it", [main, common], "Event")
    assert str(caught.value) == "it has no message Event; it has shop.Event, shop.Out"
    common.dependency.append("shop.proto")
    with pytest.raises(ValueUnreadableError) as caught:
        named_message("it", [main, common], "shop.Event")
    assert str(caught.value) == "it: its imports go in a circle: shop.proto -> common.proto -> shop.proto"
    broken = files()
    broken[0].message_type[0].field[0].type_name = ".shop.Nothing"
    broken[0].message_type[0].field[0].ClearField("type")
    with pytest.raises(ValueUnreadableError, match=r"^it cannot be read: "):
        named_message("it", broken, "shop.Event")


def b64(found: Any) -> str:
    return base64.b64encode(found.SerializeToString()).decode()


def test_files_of_a_registry() -> None:
    main, common = files()
    found = files_of_registry("schema 1", b64(main), [("common.proto", b64(common))])
    for indexes, name in (((0,), "shop.Event"), ((1,), "shop.Out"), ((1, 0), "shop.Out.In")):
        assert numbered_message("schema 1", found, indexes)[0].full_name == name
    for indexes, shown in (((2,), "2"), ((1, 1), "1.1"), ((-1,), "-1"), ((0, 0, 0), "0.0.0")):
        with pytest.raises(ValueUnreadableError, match=rf"^schema 1 has no message {shown}$"):
            numbered_message("schema 1", found, indexes)
    with pytest.raises(ValueUnreadableError) as caught:
        files_of_registry("schema 1", 'syntax = "proto3";', ())
    assert str(caught.value) == (
        "schema 1: the schema registry gives the schema as text; it has to serve descriptors (format=serialized)"
    )
    with pytest.raises(ValueUnreadableError, match=r"^schema 1: common\.proto is no file's descriptor$"):
        files_of_registry("schema 1", b64(main), [("common.proto", base64.b64encode(b"\xff").decode())])


def schema_of(text: str) -> WrittenSchema:
    return WrittenSchema(PROTOBUF, text, (("common.proto", b64(files()[1])),))


def framed(value: bytes, headers: Any = None, text: str = b64(files()[0])) -> Any:
    """The values of a record, or why it is refused."""
    defined = stream(x="long")
    schemas = OneSchema(schema_of(text))
    found = events_of([Message(value=value, headers=headers)], RecordValues(schemas), defined.incoming(1))
    if found.refused:
        return found.refused[0]
    return outcome(intake_of(defined).take(found.texts, LATEST_MS), 0)


def test_frames() -> None:
    inner, frame = b"\x08\x05", b"\0\0\0\0\1"
    guid = b"\1" + bytes(15) + b"\7"
    # Which message it is: two numbers, 1 and 0; doubled, as a sign comes last.
    assert framed(frame + b"\4\2\0" + inner) == [5]
    assert framed(inner, [("__value_schema_id", guid + b"\4\2\0")]) == [5]
    # An empty list is the first message, which has no x.
    assert framed(frame + b"\0" + inner) == [None]
    for value, why in (
        (frame, "framed Protobuf that does not say which message it is"),
        (frame + b"\4\2", "framed Protobuf that does not say which message it is"),
        (frame + b"\x80" * 9, "framed Protobuf that does not say which message it is"),
        (frame + b"\x7e", "framed Protobuf of a message in 63 messages"),
        (frame + b"\3", "framed Protobuf of a message in -2 messages"),
        (frame + b"\2\1", "schema 1 has no message -1"),
        (frame + b"\4\2\0\x08", "no Protobuf of the message shop.Out.In: "),
    ):
        assert str(framed(value)).startswith(why), framed(value)


def test_a_schema_that_cannot_be_used_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    of_registry = descriptors.files_of_registry

    def counted(*words: Any) -> Any:
        tried.append(words[0])
        return of_registry(*words)

    monkeypatch.setattr(descriptors, "files_of_registry", counted)
    defined = stream(x="long")
    messages = [Message(value=b"\0\0\0\0\1\0\x08\x05")] * 5
    found = events_of(messages, RecordValues(OneSchema(schema_of("AAAA"))), defined.incoming(1))
    assert len(found.refused) == 5
    assert tried == ["schema 1"]
