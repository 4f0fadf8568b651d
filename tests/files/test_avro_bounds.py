"""Schemas of Avro by which a few bytes would end the process, or take all memory, are refused; their like are not: of
records of topics, and of files.
"""

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from frontend.formats.avro import AvroReader
from frontend.formats.errors import ValueUnreadableError
from railgun.catalog.stream_reading import stream_from_json
from railgun.cli.main import main
from railgun.files.errors import FileError, UnreadableFileError
from railgun.files.reading import EventFiles
from railgun.files.sampling import sample_file

FIELDS = stream_from_json({"name": "s", "fields": {"x": "long"}}).incoming(1)


def record(name: str, *types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{at}", "type": each} for at, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def nested(levels: int) -> Any:
    return "long" if levels == 0 else array(nested(levels - 1))


def chain(levels: int) -> list[Any]:
    return [record("T0", "long"), *(record(f"T{at}", f"T{at - 1}") for at in range(1, levels))]


# Each type three times within the next one: what looks at each again does not come to an end.
WIDE = [record("T0", "long"), *(record(f"T{at}", *[f"T{at - 1}"] * 3) for at in range(1, 90))]


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        (record("A", record("B", "string"), "B", ["null", "B"], array("B"), array(["null", "long"])), []),
        (
            record(
                "A", {"type": "map", "values": "null"}, array({"type": "enum", "name": "E", "symbols": ["x"]})
            ),
            [],
        ),
        (record("A", "T50"), chain(51)),
        (record("A", "T89"), [WIDE]),
        (record("A", nested(90)), []),
    ],
)
def test_schemas_that_are_taken(schema: Any, references: list[Any]) -> None:
    AvroReader("it", json.dumps(schema), list(map(json.dumps, references)), FIELDS)


ITSELF, NO_BYTES = "contains itself; such events are not read", "an array whose elements have no bytes"


@pytest.mark.parametrize(
    ("schema", "references", "why"),
    [
        (record("A", ["null", "A"]), [], f"the type A {ITSELF}"),
        ({**record("A", ["null", "n.A"]), "namespace": "n"}, [], f"the type n.A {ITSELF}"),
        (record("A", {"type": "map", "values": record("B", array("A"))}), [], f"the type A {ITSELF}"),
        (record("A", "B"), [record("B", ["null", "B"])], f"the type B {ITSELF}"),
        (record("A", array("null")), [], NO_BYTES),
        (record("A", array(record("B", "null", record("C")))), [], NO_BYTES),
        (record("A", array({"type": "fixed", "name": "F", "size": 0})), [], NO_BYTES),
        (record("A", "T199"), [chain(200)], "its values have more than 100 levels"),
        (record("A", "T4999"), [chain(5_000)], "its values have more than 100 levels"),
        (record("A", nested(120)), [], "its values have more than 100 levels"),
        (record("A", nested(450)), [], "recursion"),
    ],
)
def test_schemas_that_are_not(schema: Any, references: list[Any], why: str) -> None:
    with pytest.raises(ValueUnreadableError, match=why):
        AvroReader("it", json.dumps(schema), list(map(json.dumps, references)), FIELDS)


SYNC = b"sixteen letters."


def avro_file(path: Path, schema: Any, data: bytes, records: int = 1) -> Path:
    """A file with one block that says how many records it has."""
    head = io.BytesIO()
    fastavro.writer(head, schema, [], sync_marker=SYNC)
    out = io.BytesIO()
    for number in (records, len(data)):
        fastavro.schemaless_writer(out, "long", number)
    path.write_bytes(head.getvalue() + out.getvalue() + data + SYNC)
    return path


def encoded_long(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    return out.getvalue()


@pytest.mark.parametrize(
    ("schema", "data", "records", "why"),
    [
        (record("A", ["null", "A"]), b"\2" * 100_000 + b"\0", 1, f"the type A {ITSELF}"),
        (record("A", array("null")), encoded_long(1 << 60) + b"\0", 1, NO_BYTES),
        (record("A", "null", record("B")), b"", 1 << 60, "its records have no bytes"),
        (record("A", nested(120)), b"\2" * 120 + b"\0" * 121, 1, "its values have more than 100 levels"),
    ],
)
def test_files(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    schema: Any,
    data: bytes,
    records: int,
    why: str,
) -> None:
    path = avro_file(tmp_path / "e.avro", schema, data, records)
    for read in (lambda: EventFiles([path], FIELDS), lambda: sample_file(path)):
        with pytest.raises(UnreadableFileError) as caught:
            read()
        assert str(caught.value).startswith(f"{path}: its schema: ")
        assert why in str(caught.value)
        assert str(caught.value).endswith("; write them with another schema")
    definitions = tmp_path / "d.toml"
    definitions.write_text('[streams.s.fields]\nx = "long"\n')
    assert main(["run", str(definitions), str(path), "--out", str(tmp_path / "o.csv")]) == 2
    assert why in capsys.readouterr().err.splitlines()[-1]


def test_a_file_that_is_like_them_is_taken(tmp_path: Path) -> None:
    path = avro_file(tmp_path / "e.avro", record("A", "null", array("long")), b"\2\2\0", 1)
    assert sample_file(path).documents == [{"f0": None, "f1": [1]}]
    # What it announces and does not have is one error, with its place.
    path = avro_file(tmp_path / "f.avro", record("A", array("long")), encoded_long(1 << 60) + b"\2", 1)
    fields = stream_from_json({"name": "s", "fields": {"x": {"type": "long", "from": "f0[0]"}}}).incoming(1)
    with (
        EventFiles([path], fields) as files,
        pytest.raises(FileError, match=r"row 1: its block at byte \d+ is"),
    ):
        list(files.blocks())
