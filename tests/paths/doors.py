"""The ways by which a document comes in as an event of a stream, each as a function, without a server or a broker."""

import base64
import io
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Message
from pyarrow import ipc

from frontend.exchange.streams import StreamIntake
from frontend.formats.values import RecordValues, events_of
from frontend.formats.written_schema import AVRO, JSON_SCHEMA, PROTOBUF, WrittenSchema
from railgun.catalog import input_format
from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import PutStream
from railgun.catalog.input_format import InputFormat
from railgun.catalog.model import InputDefinition, StreamDefinition
from railgun.files.errors import FileError
from railgun.files.reading import EventFiles
from railgun.ingest.accepted import AcceptedBatch
from railgun.ingest.file_events import EventChecks
from railgun.ingest.intake import EventText, ParsedEvent
from railgun.wire.arrow_paths import field_columns
from railgun.wire.columns import EventColumns
from railgun.wire.schema import WireKind
from railgun.wire.table_validator import TableError, TableValidator, row_number_ids
from railgun.wire.validator import Roles
from tests.paths.protobuf_documents import Encoded, UnfitError, encoded

LATEST_MS = 1 << 62


@dataclass(frozen=True)
class Refused:
    """errors: place and text; of files and tables one text, which names the place."""

    errors: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "; ".join(f"{place}: {text}" for place, text in self.errors)


class NotExpressedError(Exception):
    """The format has no such document: a gap that is listed."""


Outcome = list[Any] | Refused
Door = Callable[[StreamDefinition, str, Path], Outcome]
"""Takes the text of a JSON document, and gives the values of the fields: decimals unscaled, times in ms."""


def intake_of(stream: StreamDefinition) -> StreamIntake:
    catalog = Catalog([PutStream(1, stream, 1)])
    return StreamIntake(catalog.streams[stream.name])


def _taken(stream: StreamDefinition, texts: list[EventText], row: int = 0) -> Outcome:
    accepted = intake_of(stream).take(texts, LATEST_MS)
    return outcome(accepted, row)


def outcome(accepted: AcceptedBatch, row: int) -> Outcome:
    if row in accepted.refused:
        return Refused(tuple((".".join(map(str, loc)), text) for loc, text in accepted.refused[row].errors))
    at = row if accepted.rows is None else accepted.rows.tolist().index(row)
    if isinstance(accepted.events, EventColumns):
        return values_of(accepted.events, at)
    event = accepted.events[at]
    array_head = b"\xdc" + event.fields.to_bytes(2, "big")
    return list(msgspec.msgpack.decode(array_head + event.encoded))


def values_of(columns: EventColumns, row: int) -> list[Any]:
    found: list[Any] = []
    for column in columns.fields:
        if column.nulls is not None and column.nulls[row]:
            found.append(None)
        elif column.type.kind is WireKind.STRING:
            found.append(column.string(row))
        elif column.type.kind is WireKind.DOUBLE:
            found.append(float(column.words.view("f8")[row]))
        elif column.type.kind is WireKind.BOOLEAN:
            found.append(bool(column.words[row]))
        else:
            found.append(int(column.words.view("i8")[row]))
    return found


def single(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    return _taken(stream, [text.encode()])


def after_others(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    """Between events that have unknown keys, and none of the fields."""
    other = b'{"unknown": 1}'
    return _taken(stream, [other, text.encode(), other], 1)


def columns(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    """Among so many that they are checked together, as in arrays and lines."""
    many = 1 + 24 * len(stream.fields)
    return _taken(stream, [text.encode()] * many, many - 1)


def of_record(stream: StreamDefinition, message: Message, schemas: Any = None) -> Outcome:
    intake = intake_of(stream)
    found = events_of([message], RecordValues(schemas), intake.incoming, stream.input.format)
    if found.refused:
        return Refused((("", found.refused[0]),))
    return outcome(intake.take(found.texts, LATEST_MS), 0)


def kafka_json(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    return of_record(stream, Message(value=text.encode()))


class OneSchema:
    """A registry that gives one schema, whatever it is asked for."""

    def __init__(self, schema: WrittenSchema) -> None:
        self._schema = schema

    def schema(self, schema_id: object) -> WrittenSchema:
        return self._schema


_FRAME = b"\0\0\0\0\1"


def kafka_json_schema(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    return of_record(
        stream, Message(value=_FRAME + text.encode()), OneSchema(WrittenSchema(JSON_SCHEMA, "{}"))
    )


def kafka_avro(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    schema, value = _avro(text)
    return of_record(stream, Message(value=_FRAME + value), OneSchema(WrittenSchema(AVRO, schema)))


def kafka_plain_avro(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    """Without a framing, by the schema of the stream's definition."""
    schema, value = _avro(text)
    stream = replace(stream, input=InputDefinition(format=InputFormat(input_format.AVRO, schema)))
    return of_record(stream, Message(value=value))


def _avro(text: str) -> tuple[str, bytes]:
    document = _document(text)
    schema = avro_schema(document)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, document)
    return json.dumps(schema), out.getvalue()


def kafka_protobuf(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    """The second message of a registry's file."""
    found = _protobuf(text, "Other")
    descriptor = found.descriptor
    return of_record(
        stream,
        Message(value=_FRAME + b"\2\2" + found.value),
        OneSchema(WrittenSchema(PROTOBUF, descriptor)),
    )


def kafka_plain_protobuf(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    """Without a framing, by the descriptor set of the stream's definition."""
    return of_record(*plain_protobuf(stream, _protobuf(text)))


def kafka_proto3(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    """Fields without presence, which have no null."""
    if _has_null(_document(text)):
        raise NotExpressedError
    return of_record(*plain_protobuf(stream, _protobuf(text, syntax="proto3")))


def _has_null(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_null, value.values() if isinstance(value, dict) else value))
    return value is None


def plain_protobuf(stream: StreamDefinition, found: Encoded) -> tuple[StreamDefinition, Message]:
    """A stream that takes such messages, and a record with one."""
    descriptors = base64.b64encode(found.set).decode()
    format_ = InputFormat(input_format.PROTOBUF, descriptors, found.name)
    return replace(stream, input=InputDefinition(format=format_)), Message(value=found.value)


def _protobuf(text: str, *before: str, syntax: str = "proto2") -> Encoded:
    try:
        return encoded(_document(text), syntax, before)
    except UnfitError:
        raise NotExpressedError from None


def python(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    return _taken(stream, [ParsedEvent(_document(text), 0)])


def _document(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict) or json.loads(json.dumps(document)) != document:
        raise NotExpressedError
    return document


def _of_files(stream: StreamDefinition, path: Path) -> Outcome:
    schema = stream.incoming(1)
    try:
        with EventFiles([path], schema) as files:
            (block,) = list(EventChecks(stream, schema, LATEST_MS).blocks(files))
    except FileError as error:
        return Refused((("", str(error)),))
    if (first := block.refused.first) is not None:
        return Refused(((first.field or "", first.reason),))
    return values_of(block.events, 0)


def ndjson_file(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    path = folder / "events.ndjson"
    path.write_text(text + "\n")
    return _of_files(stream, path)


def avro_file(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    document, path = _document(text), folder / "events.avro"
    if not _avro(text)[1]:
        # A block of such records would be as long as it says.
        raise NotExpressedError
    with path.open("wb") as file:
        fastavro.writer(file, avro_schema(document), [document])
    return _of_files(stream, path)


def arrow_table(text: str) -> pa.Table:
    document = _document(text)
    if not document:
        # A table without columns has no rows.
        raise NotExpressedError
    try:
        return pa.Table.from_pylist([document])
    except (pa.ArrowException, OverflowError):
        # Lists of one type, structs of the same fields.
        raise NotExpressedError from None


def parquet(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    path = folder / "events.parquet"
    try:
        pq.write_table(arrow_table(text), path)
    except pa.ArrowNotImplementedError:
        raise NotExpressedError from None  # a struct without fields
    return _of_files(stream, path)


def arrow_file(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    table, path = arrow_table(text), folder / "events.arrow"
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return _of_files(stream, path)


def python_table(stream: StreamDefinition, text: str, folder: Path) -> Outcome:
    table, schema = arrow_table(text), stream.incoming(1)
    validator = TableValidator(Roles(schema))
    try:
        validator.check_types(table.schema)
    except TableError as error:
        return Refused((("", str(error)),))
    (batch,) = table.to_batches()
    admitted = validator.admit(
        field_columns(batch, schema), LATEST_MS, row_number_ids(0, 1), row_number_ids(0, 1).words.view("i8")
    )
    if admitted.first_bad is not None:
        return Refused(((admitted.first_bad.field, admitted.first_bad.msg),))
    return values_of(admitted.events, 0)


_NAMES = itertools.count()


def avro_schema(value: Any) -> Any:
    """Return a schema that a document fits."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise NotExpressedError
        return "long"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        if not all(name.isascii() and name.isidentifier() for name in value):
            raise NotExpressedError
        fields = [{"name": name, "type": avro_schema(each)} for name, each in value.items()]
        return {"type": "record", "name": f"R{next(_NAMES)}", "fields": fields}
    kinds = [avro_schema(each) for each in value]
    simple = [kind for kind in kinds if isinstance(kind, str)]
    if len(kinds) - len(simple) > 1:
        raise NotExpressedError
    return {"type": "array", "items": [*dict.fromkeys(simple), *(k for k in kinds if not isinstance(k, str))]}


OF_JSON: dict[str, Door] = {
    "single": single,
    "after others": after_others,
    "columns": columns,
    "Kafka": kafka_json,
    "Kafka JSON Schema": kafka_json_schema,
    "NDJSON": ndjson_file,
}
"""The doors that take any JSON, and say the same of it."""
TYPED: dict[str, Door] = {
    "Python": python,
    "Kafka Avro": kafka_avro,
    "Kafka plain Avro": kafka_plain_avro,
    "Kafka Protobuf": kafka_protobuf,
    "Kafka plain Protobuf": kafka_plain_protobuf,
    "Kafka proto3": kafka_proto3,
    "Avro": avro_file,
    "Parquet": parquet,
    "Arrow": arrow_file,
    "table": python_table,
}
"""The doors of formats with gaps: what they cannot express, they do not take."""
