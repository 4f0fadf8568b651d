"""Reads Avro files block by block. Decimals and times are read as the integers that are stored for them."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import fastavro

from railgun.files.errors import ColumnError, TruncatedFileError, UnreadableFileError
from railgun.files.python_columns import read_columns
from railgun.files.selection import check_columns
from railgun.files.source import Block, block_rows
from railgun.wire.schema import Field, Schema, WireKind

Convert = Callable[[Any], Any]

_TICKS_PER_MS = {"millis": 1, "micros": 1_000, "nanos": 1_000_000}
_TIMESTAMPS = {
    f"{prefix}timestamp-{unit}": ticks for unit, ticks in _TICKS_PER_MS.items() for prefix in ("", "local-")
}
# Logical types that events take as the type that is stored.
_PLAIN = ("uuid",)
_EXACT = Context(prec=100)


def without_logical_types(schema: Any) -> Any:
    """Return a schema for the same bytes with only primitive and complex types."""
    if isinstance(schema, list):
        return [without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in ("logicalType", "precision", "scale")}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = without_logical_types(kept[key])
    if "fields" in kept:
        kept["fields"] = [{**field, "type": without_logical_types(field["type"])} for field in kept["fields"]]
    return kept


def converter(file: str, field: Field, schema: Any) -> Convert | None:
    """Return the function that turns a column's stored values into those for the validator; None if none is needed.

    Raises ColumnError for a logical type that the field cannot have.
    """
    branches = [branch for branch in (schema if isinstance(schema, list) else [schema]) if branch != "null"]
    logical = [branch for branch in branches if isinstance(branch, dict) and branch.get("logicalType")]
    logical = [branch for branch in logical if branch["logicalType"] not in _PLAIN]
    if not logical:
        return None
    name = str(logical[0]["logicalType"])
    if len(branches) == 1 and field.type.kind is WireKind.TIMESTAMP and name in _TIMESTAMPS:
        ticks = _TIMESTAMPS[name]
        return lambda value: value // ticks
    if len(branches) == 1 and field.type.kind is WireKind.DECIMAL and name == "decimal":
        scale = int(logical[0].get("scale", 0))
        return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _EXACT)
    types = " or ".join(_describe(branch) for branch in branches)
    raise ColumnError(file, f"column {field.name} is {types} and cannot be {field.type}; convert it before")


def _describe(branch: Any) -> str:
    if isinstance(branch, dict):
        return str(branch.get("logicalType") or branch.get("name") or branch.get("type"))
    return str(branch)


class AvroSource:
    """A Source of an Avro object container file."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.file, self._schema = str(path), schema
        self.size_bytes = path.stat().st_size
        self.rows: int | None = None
        self._input = path.open("rb")
        try:
            self._open()
        except BaseException:
            self._input.close()
            raise

    def _open(self) -> None:
        try:
            self._blocks = fastavro.block_reader(self._input)
            written = self._blocks.writer_schema
            self._plain = fastavro.parse_schema(without_logical_types(written))
        except Exception as error:  # foreign bytes make a decoder fail in any way
            raise TruncatedFileError(
                self.file, f"its head cannot be read: {error}; write or copy it again"
            ) from error
        if not isinstance(written, Mapping) or written.get("type") != "record":
            raise UnreadableFileError(self.file, "its schema is no record; events are records")
        types = {field["name"]: field["type"] for field in written["fields"]}
        self.ignored = check_columns(self.file, list(types), self._schema)
        self._converters = {
            field.name: converter(self.file, field, types[field.name]) for field in self._schema.fields
        }

    def blocks(self) -> Iterator[Block]:
        done, size = 0, block_rows(len(self._schema.fields))
        records: list[Mapping[str, Any]] = []
        for found in self._records():
            records += found
            while len(records) >= size:
                yield self._block(records[:size], done)
                done, records = done + size, records[size:]
        if records:
            yield self._block(records, done)

    def close(self) -> None:
        self._input.close()

    def _records(self) -> Iterator[list[Mapping[str, Any]]]:
        """Yield the records of each of the file's blocks."""
        done = 0
        while True:
            before = self._input.tell()
            try:
                block = next(self._blocks, None)
                found = [] if block is None else [self._read(block.bytes_) for _ in range(block.num_records)]
            except Exception as error:  # as above
                raise UnreadableFileError(
                    self.file, f"its block at byte {before} is damaged or cut off: {error}", done + 1
                ) from error
            if block is None:
                break
            done += len(found)
            yield found
        if before != self.size_bytes:
            raise TruncatedFileError(
                self.file, f"its last block is cut off at byte {before}; write or copy it again"
            )

    def _read(self, data: Any) -> Mapping[str, Any]:
        # Bytes that are not UTF-8 become lone surrogates. For these the row is refused, not the file.
        record: Mapping[str, Any] = fastavro.schemaless_reader(
            data, self._plain, None, handle_unicode_errors="surrogateescape"
        )
        return record

    def _block(self, records: list[Mapping[str, Any]], done: int) -> Block:
        columns = []
        for field in self._schema.fields:
            values = [record[field.name] for record in records]
            convert = self._converters[field.name]
            if convert is not None:
                values = [None if value is None else convert(value) for value in values]
            columns.append(values)
        batch, refused = read_columns(columns, self._schema, len(records))
        return Block(self.file, batch, done, tuple(refused), self._input.tell())
