"""Reads Avro files block by block. Decimals and times are read as the integers that are stored for them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro

from railgun.files.avro_bounds import UnboundedSchemaError, check_file_bounds
from railgun.files.avro_conversion import Conversions, without_logical_types
from railgun.files.errors import TruncatedFileError, UnreadableFileError
from railgun.files.python_columns import read_events
from railgun.files.selection import check_columns
from railgun.files.source import Block, block_rows
from railgun.wire.schema import Schema


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
        named: dict[str, Any] = {}
        try:
            self._blocks = fastavro.block_reader(self._input)
            written = self._blocks.writer_schema
            self._plain = fastavro.parse_schema(without_logical_types(written), named_schemas=named)
            check_file_bounds(self._plain, named)
        except UnboundedSchemaError as error:
            raise UnreadableFileError(
                self.file, f"its schema: {error}; write them with another schema"
            ) from None
        except Exception as error:  # foreign bytes make a decoder fail in any way
            raise TruncatedFileError(
                self.file, f"its head cannot be read: {error}; write or copy it again"
            ) from error
        if not isinstance(written, Mapping) or written.get("type") != "record":
            raise UnreadableFileError(self.file, "its schema is no record; events are records")
        self.ignored = check_columns(self.file, [field["name"] for field in written["fields"]], self._schema)
        self._conversions = Conversions(self.file, written, self._schema)

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
        self._conversions.convert(record)
        return record

    def _block(self, records: list[Mapping[str, Any]], done: int) -> Block:
        batch, refused = read_events(records, self._schema)
        return Block(self.file, batch, done, tuple(refused), self._input.tell())
