"""Reads the first rows of an event file of any format as documents, whatever their fields are."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from railgun.files.arrow_source import ArrowSource, ParquetSource
from railgun.files.avro_source import AvroSource
from railgun.files.csv_source import CsvSource, check_separator, read_header
from railgun.files.errors import ColumnError, UnreadableFileError
from railgun.files.formats import ARROW_FILE_MAGIC, HEAD_BYTES, Format, check_content, readable_format
from railgun.files.ndjson_source import NdjsonSource, read_object
from railgun.wire.path import Path as FieldPath
from railgun.wire.path import has_digits_of_value, text_of
from railgun.wire.schema import STRING, Field, Schema
from railgun.wire.values import JsonNumber

ROWS_MAX = 10_000
_BYTES_MAX = 64 << 20
_BATCH_ROWS = 1_000
_COLUMNS_MAX = 1_000

_NO_FIELDS = Schema(0, ())
_NO_OBJECT = "no JSON object"
_LONG = re.compile(r"-?(0|[1-9][0-9]{0,29})", re.ASCII)
_DOUBLE = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_BOOLEAN = re.compile(r"true|false", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileSample:
    """The first rows of a file.

    documents: the rows as documents. A time of an unknown zone is in UTC.
    refused: how many rows are no documents, by why.
    left_out: the names of columns that cannot be read, as others have them too, or as they are empty.
    """

    documents: Sequence[Mapping[str, Any]]
    refused: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def sample_file(path: Path) -> FileSample:
    """Read at most ROWS_MAX rows. Raises FileError for a file that is not of its format, and OSError."""
    format_ = readable_format(path)
    with path.open("rb") as file:
        check_content(path, format_, file.read(HEAD_BYTES))
    if format_ is Format.CSV:
        return _csv(path)
    if format_ is Format.NDJSON:
        return _ndjson(path)
    if format_ is Format.AVRO:
        return FileSample(list(islice(_avro(path), ROWS_MAX)))
    return _arrow(path, _parquet_batches(path) if format_ is Format.PARQUET else _arrow_batches(path))


def _ndjson(path: Path) -> FileSample:
    documents: list[Mapping[str, Any]] = []
    refused: Counter[str] = Counter()
    size = 0
    with closing(NdjsonSource(path, _NO_FIELDS)) as source:
        for line in (line for lines in source.lines() for line in lines):
            document, fault = read_object(line)
            size += len(line)
            if fault is None:
                documents.append(document)
            else:
                refused[_NO_OBJECT] += 1
            if len(documents) + refused.total() >= ROWS_MAX or size >= _BYTES_MAX:
                break
    return FileSample(documents, refused)


def _avro(path: Path) -> Iterator[Mapping[str, Any]]:
    AvroSource(path, _NO_FIELDS).close()
    with path.open("rb") as file:
        try:
            for record in fastavro.reader(file, handle_unicode_errors="surrogateescape"):
                yield record
                if file.tell() >= _BYTES_MAX:
                    return
        except Exception as error:  # foreign bytes make a decoder fail in any way
            raise UnreadableFileError(str(path), f"it is damaged or cut off: {error}") from error


# --- Parquet and Arrow ---------------------------------------------------------------------------------


def _arrow(path: Path, batches: Iterator[pa.RecordBatch]) -> FileSample:
    documents: list[Mapping[str, Any]] = []
    left_out: tuple[str, ...] = ()
    size = 0
    try:
        for batch in batches:
            single, left_out = _once(batch.schema.names)
            table = pa.Table.from_batches([batch.select([batch.schema.names.index(name) for name in single])])
            part = table.slice(0, ROWS_MAX - len(documents))
            size += part.nbytes
            documents += part.cast(_without_nanoseconds(part.schema), safe=False).to_pylist()
            if len(documents) >= ROWS_MAX or size >= _BYTES_MAX:
                break
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableFileError(str(path), f"its first rows cannot be read: {error}") from error
    return FileSample(documents, {}, left_out)


def _parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    ParquetSource(path, _NO_FIELDS).close()
    with pq.ParquetFile(path) as file:
        yield from file.iter_batches(_BATCH_ROWS)


def _arrow_batches(path: Path) -> Iterator[pa.RecordBatch]:
    ArrowSource(path, _NO_FIELDS).close()
    with pa.memory_map(str(path)) as file:
        is_file = file.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC
        file.seek(0)
        if not is_file:
            yield from ipc.open_stream(file)
            return
        reader = ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _without_nanoseconds(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose times Python can hold."""
    return pa.schema([field.with_type(_micros(field.type)) for field in schema])


def _micros(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_micros(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_micros(type_.value_type))
    return type_


def _once(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return (the names that say which column is meant, the others)."""
    single = [name for name in names if name and names.count(name) == 1]
    return single, tuple(sorted(set(names).difference(single)))


# --- CSV -----------------------------------------------------------------------------------------------


def _csv(path: Path) -> FileSample:
    header, _ = read_header(path)
    check_separator(str(path), header)
    _check_names(str(path), header)
    single, left_out = _once(header[:_COLUMNS_MAX])
    if not single:
        raise ColumnError(str(path), "no column has a name of its own; rename them")
    fields = [Field(f"c{n}", STRING, FieldPath(text_of((name,)), (name,))) for n, name in enumerate(single)]
    columns: list[list[Any]] = [[] for _ in single]
    refused: Counter[str] = Counter()
    rows = 0
    with closing(CsvSource(path, Schema(0, tuple(fields)))) as source:
        for block in source.blocks():
            part = block.batch.slice(0, ROWS_MAX - rows)
            bad = {each.row for each in block.refused if each.row < len(part)}
            for values, column in zip(columns, part.columns):
                texts = column.cast(pa.binary()).to_pylist()
                values += [_text(each) for row, each in enumerate(texts) if row not in bad]
            rows += len(part)
            refused.update(each.reason for each in block.refused if each.row in bad)
            if rows >= ROWS_MAX:
                break
    typed = [_values_of(values) for values in columns]
    return FileSample([dict(zip(single, row)) for row in zip(*typed)], refused, left_out)


def _check_names(file: str, header: Sequence[str]) -> None:
    """Raise ColumnError if the first line is an event. Its values are not shown."""
    like = sum(bool(_DOUBLE.fullmatch(name)) for name in header)
    if 2 * like > len(header) or any(map(has_digits_of_value, header)):
        raise ColumnError(
            file,
            "its first line seems to be an event: it has numbers or times where names of columns belong; "
            "put a line with the names before it",
        )


def _text(data: bytes | None) -> str | bytes | None:
    """Return a value as text; as bytes if it is no UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _values_of(column: list[Any]) -> list[Any]:
    """Return the values of a column of text: numbers or booleans, if all of its values are."""
    if all(each is None or (type(each) is str and _LONG.fullmatch(each)) for each in column):
        return [None if each is None else int(each) for each in column]
    if all(each is None or (type(each) is str and each and _DOUBLE.fullmatch(each)) for each in column):
        return [None if each is None else JsonNumber(each) for each in column]
    if all(each is None or (type(each) is str and _BOOLEAN.fullmatch(each)) for each in column):
        return [None if each is None else each.lower() == "true" for each in column]
    return column
