"""The format of a stream's input in definitions: what is read, what is refused, what may change, how it is recorded."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.changes import PutStream, change_to_json
from railgun.catalog.definitions import load_definitions, parse_definitions
from railgun.catalog.errors import DefinitionError
from railgun.catalog.input_format import SCHEMA_LIMIT_BYTES, InputFormat
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.catalog.stream_reading import definition_to_json, stream_from_json, stream_to_json
from railgun.registry.change_log import logged
from railgun.registry.entries import CatalogState, begin_entry
from railgun.registry.errors import CatalogVersionError
from railgun.registry.evolution import changed_stream
from railgun.registry.origin import Made

SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "ü", "type": "long"}]})
FIELDS = '[streams.s.fields]\nx = "long"\n[streams.s.input]\n'


def descriptor_set() -> bytes:
    found = descriptor_pb2.FileDescriptorSet()
    message = found.file.add(name="a.proto", package="p").message_type.add(name="M")
    message.field.add(name="x", number=1, type=3, label=1)
    return found.SerializeToString()


SET = descriptor_set()
PROTOBUF = InputFormat("protobuf", base64.b64encode(SET).decode(), "p.M")


def load(folder: Path, text: str) -> StreamDefinition:
    (folder / "d.toml").write_text(FIELDS + text)
    return load_definitions(folder / "d.toml").streams["s"]


def error(folder: Path, text: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        load(folder, text)
    return str(caught.value).partition("d.toml: ")[2].replace(str(folder), "FOLDER")


def test_a_file_is_copied(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "m.desc").write_bytes(SET)
    (tmp_path / "r.avsc").write_text("\ufeff" + SCHEMA, encoding="utf-8")
    said = 'format = "protobuf"\nschema_file = "schemas/m.desc"\nmessage = "p.M"'
    stream = load(tmp_path, said)
    assert stream.input.format == PROTOBUF
    assert stream.input.format.descriptor_set == SET
    avro = load(tmp_path, 'format = "avro"\nschema_file = "r.avsc"')
    assert avro.input.format == InputFormat("avro", SCHEMA)
    assert load(tmp_path, 'format = "json"').input.format == InputFormat("json")
    assert load(tmp_path, "").input.format is None
    for each in (stream, avro):
        # As requests have it, and without a file.
        assert stream_from_json(json.loads(json.dumps(definition_to_json(each)))) == each
        assert "input" not in stream_to_json(each)


def test_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.desc").write_bytes(SET)
    (tmp_path / "m.proto").write_text('syntax = "proto3";\nmessage M {\r\n\tint64 x = 1;\n}\n')
    (tmp_path / "bad.avsc").write_text("{")
    (tmp_path / "deep.avsc").write_text("[" * 100_000)
    (tmp_path / "large.desc").write_bytes(b"\xff" * (SCHEMA_LIMIT_BYTES + 1))
    place = "streams.s.input"
    for text, said in (
        ('format = "xml"', f"{place}.format: no 'xml' here; known here: avro, json, protobuf"),
        ('formt = "json"', f"{place}.formt: unknown key; did you mean format?"),
        ('schema = "{}"', f"{place}.schema: unknown key; did you mean schema_file?"),
        ('message = "M"', f'{place}.message: a message is of Protobuf; say format = "protobuf"'),
        (
            'format = "avro"\nschema_file = "bad.avsc"\nmessage = "M"',
            f'{place}.message: a message is of Protobuf; say format = "protobuf"',
        ),
        (
            'schema_file = "m.desc"',
            f'{place}.schema_file: a schema is of format "avro" or "protobuf"; say which',
        ),
        (
            'format = "json"\nschema_file = "m.desc"',
            f'{place}.schema_file: a schema is of format "avro" or "protobuf"; say which',
        ),
        (
            'format = "avro"',
            f"{place}.format: records without a framing need their avro schema; add schema_file",
        ),
        (
            'format = "protobuf"\nmessage = "p.M"',
            f"{place}.format: records without a framing need their protobuf schema; add schema_file",
        ),
        (
            'format = "protobuf"\nschema_file = "m.desc"',
            f"{place}: the key message is missing; it holds the full name of a record's message",
        ),
        (
            'format = "protobuf"\nschema_file = "m.proto"\nmessage = "M"',
            (
                f"{place}.schema_file: this is a textual .proto; make a descriptor set of it, with protoc "
                "--include_imports --descriptor_set_out=FILE.desc, and name that"
            ),
        ),
        (
            'format = "avro"\nschema_file = "none.avsc"',
            f"{place}.schema_file: FOLDER/none.avsc: No such file or directory",
        ),
        (
            'format = "protobuf"\nschema_file = "large.desc"\nmessage = "M"',
            (
                f"{place}.schema_file: the schema is larger than 512 KiB; leave out what the message does not "
                "need, and source information"
            ),
        ),
        (
            'format = "avro"\nschema_file = "deep.avsc"',
            f"{place}.schema_file: no Avro schema: nested too deep; it is JSON, as in an .avsc file",
        ),
    ):
        assert error(tmp_path, text) == said
    assert error(tmp_path, 'format = "avro"\nschema_file = "bad.avsc"').startswith(
        f"{place}.schema_file: no Avro schema: Expecting property name"
    )
    with pytest.raises(DefinitionError, match="a file belongs to a definitions file; this is a text"):
        parse_definitions(FIELDS + 'format = "avro"\nschema_file = "bad.avsc"')


def request(said: dict[str, Any]) -> StreamDefinition:
    return stream_from_json({"name": "s", "fields": {"x": "long"}, "input": said})


def test_requests() -> None:
    assert request({}).input.format is None
    assert request({"format": "avro", "schema": SCHEMA}).input.format == InputFormat("avro", SCHEMA)
    for said, why in (
        ({"format": "avro", "schema_file": "x"}, "input.schema_file: unknown key; did you mean schema?"),
        ({"format": "avro"}, "input.format: records without a framing need their avro schema; add schema"),
        (
            {"format": "protobuf", "schema": "message M {}", "message": "M"},
            "input.schema: a descriptor set is in base64 here",
        ),
        (
            {"format": "protobuf", "schema": base64.b64encode(b"message M {}").decode(), "message": "M"},
            "input.schema: this is a textual .proto; ",
        ),
        ({"format": "avro", "schema": "\ud800"}, "input.schema: no Avro schema: 'utf-8' codec"),
    ):
        with pytest.raises(DefinitionError) as caught:
            request(said)
        assert str(caught.value).startswith(why)


def test_entries_of_the_catalogue() -> None:
    stream = request({"format": "protobuf", "schema": PROTOBUF.schema, "message": "p.M"})
    state = CatalogState("log")
    entry = begin_entry(PutStream(1, stream, 1), Made(), bytes(16))
    assert json.loads(entry)["version"] == 4
    # Tasks do not know it.
    assert "input" not in json.dumps(change_to_json(PutStream(1, stream, 1)))
    state.take(0, entry)
    assert state.catalog.streams["s"].stream == stream
    (change,) = changed_stream(state.catalog, "s", {"input": None})
    state.take(1, begin_entry(change, Made(), before=stream))
    assert state.catalog.streams["s"].stream.input.format is None
    with pytest.raises(CatalogVersionError):
        state.take(2, entry.replace(b'"version":4', b'"version":99'))


def test_it_may_change_and_is_told_without_the_schema() -> None:
    stream = request({"format": "protobuf", "schema": PROTOBUF.schema, "message": "p.M"})
    catalog = Catalog([PutStream(1, stream, 1)])
    (change,) = changed_stream(catalog, "s", {"input": {"format": "avro", "schema": SCHEMA}})
    assert isinstance(change, PutStream)
    assert change.schema_version == 1
    what = logged(change, Made(), catalog).what
    assert what == ("input format protobuf; schema 14dafecd; message p.M -> format avro; schema 22b5152a")
    # A file that says otherwise changes nothing, as of all settings.
    changes, differences = missing_changes(catalog, Definitions({"s": change.stream}))
    assert changes == []
    assert list(map(str, differences)) == [
        "s: input is format protobuf; schema 14dafecd; message p.M, the definition says format avro; schema 22b5152a"
    ]
    catalog.apply(change)
    assert catalog.streams["s"].stream.input.format == InputFormat("avro", SCHEMA)
