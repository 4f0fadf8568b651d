"""Parquet files, batch by batch: never more than a few pages of each column in memory."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from railgun.files.block import Block
from railgun.files.errors import TruncatedFileError, UnreadableFileError
from railgun.files.limits import block_rows
from railgun.files.selection import check_arrow_columns
from railgun.wire.schema import Schema

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
        names, done = [field.name for field in self._schema.fields], 0
        batches = self._parquet.iter_batches(block_rows(len(names)), columns=names)
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
            yield Block(self.file, batch.select(names), done, (), read_bytes)
            done += len(batch)

    def close(self) -> None:
        self._parquet.close()


def _check_end(path: Path, size_bytes: int) -> None:
    """Tell a file that was cut off from one that is damaged. Raises TruncatedFileError."""
    with path.open("rb") as file:
        file.seek(max(0, size_bytes - len(_MAGIC)), os.SEEK_SET)
        if file.read() not in (_MAGIC, _ENCRYPTED):
            raise TruncatedFileError(
                str(path),
                "the file is cut off: the end that a Parquet file has is missing; write or copy it again",
            )
