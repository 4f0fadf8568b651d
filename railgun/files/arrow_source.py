"""Reads Arrow IPC and Parquet files batch by batch. Only a few pages of each column are in memory at a time."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from railgun.files.errors import TruncatedFileError, UnreadableFileError
from railgun.files.formats import ARROW_FILE_MAGIC
from railgun.files.selection import check_arrow_columns
from railgun.files.source import Block, block_rows
from railgun.wire.arrow_paths import field_columns
from railgun.wire.finding import steps_of
from railgun.wire.schema import Schema

# The last bytes of a Parquet file, and of one whose footer is encrypted.
_MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"


class ParquetSource:
    """A Source of a Parquet file."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.file, self._schema = str(path), schema
        self.size_bytes = path.stat().st_size
        _check_end(path, self.size_bytes)
        try:
            self._parquet = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableFileError(self.file, f"no whole Parquet file: {error}") from error
        self.rows: int | None = self._parquet.metadata.num_rows
        self.ignored = check_arrow_columns(self.file, self._parquet.schema_arrow, schema)

    def blocks(self) -> Iterator[Block]:
        names, done = _columns(self._parquet.schema_arrow, self._schema), 0
        batches = self._parquet.iter_batches(block_rows(len(self._schema.fields)), columns=names)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                raise UnreadableFileError(
                    self.file, f"it cannot be read on from here: {error}", done + 1
                ) from error
            if batch is None:
                break
            read_bytes = self.size_bytes * (done + len(batch)) // max(self.rows or 0, 1)
            yield Block(self.file, _fields(batch, names, self._schema), done, (), read_bytes)
            done += len(batch)

    def close(self) -> None:
        self._parquet.close()


def _columns(found: pa.Schema, schema: Schema) -> list[str]:
    """Return the names of the columns in which fields are, in the order of the fields."""
    names = dict.fromkeys(str(steps[0]) for steps in map(steps_of, schema.fields) if steps)
    return [name for name in names if name in found.names]


def _fields(batch: pa.RecordBatch, names: list[str], schema: Schema) -> pa.RecordBatch:
    """Return a column for each field. names: the names of the columns in which they are."""
    return field_columns(batch, schema) if schema.has_paths else batch.select(names)


def _check_end(path: Path, size_bytes: int) -> None:
    """Raise TruncatedFileError for a file that was cut off, to tell it from one that is damaged."""
    with path.open("rb") as file:
        file.seek(max(0, size_bytes - len(_MAGIC)), os.SEEK_SET)
        if file.read() not in (_MAGIC, _ENCRYPTED):
            raise TruncatedFileError(
                str(path),
                "the file is cut off: the end that a Parquet file has is missing; write or copy it again",
            )


class ArrowSource:
    """A Source of an Arrow file, mapped into memory, or of an Arrow stream."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.file, self._schema = str(path), schema
        self.size_bytes = path.stat().st_size
        self.rows: int | None = None
        self._map = pa.memory_map(self.file)
        try:
            self._open()
        except BaseException:
            self._map.close()
            raise

    def _open(self) -> None:
        self._is_file = self._map.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC
        self._map.seek(0)
        try:
            self._reader = ipc.open_file(self._map) if self._is_file else ipc.open_stream(self._map)
        except (pa.ArrowException, OSError) as error:
            if self._is_file:
                raise TruncatedFileError(
                    self.file,
                    f"the file is cut off: its end cannot be read ({error}); write or copy it again",
                ) from error
            raise UnreadableFileError(self.file, f"no Arrow stream: {error}") from error
        self.ignored = check_arrow_columns(self.file, self._reader.schema, self._schema)

    def blocks(self) -> Iterator[Block]:
        names, done, size = (
            _columns(self._reader.schema, self._schema),
            0,
            block_rows(len(self._schema.fields)),
        )
        for number, batch in enumerate(self._batches()):
            chosen, end = _fields(batch, names, self._schema), self._end(number)
            for start in range(0, len(chosen), size):
                part = chosen.slice(start, size)
                yield Block(self.file, part, done, (), end)
                done += len(part)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, each with all its values checked. Raises UnreadableFileError."""
        number = 0
        while True:
            try:
                if self._is_file:
                    batch = (
                        self._reader.get_batch(number) if number < self._reader.num_record_batches else None
                    )
                else:
                    batch = self._next_of_stream()
                if batch is not None:
                    batch.validate(full=True)
            except (pa.ArrowException, OSError) as error:
                raise UnreadableFileError(
                    self.file, f"batch {number + 1} cannot be read: {error}; write or copy the file again"
                ) from error
            if batch is None:
                break
            yield batch
            number += 1

    def _next_of_stream(self) -> pa.RecordBatch | None:
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            return None

    def _end(self, number: int) -> int:
        """Return how much of the file is read with a batch, in bytes; of an Arrow file, by its batches."""
        if self._is_file:
            return self.size_bytes * (number + 1) // int(self._reader.num_record_batches)
        return int(self._map.tell())

    def close(self) -> None:
        self._map.close()
