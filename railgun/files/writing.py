"""Writing results: table by table under another name, which becomes the right one once all is there."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from railgun.files.errors import UnwritableFileError
from railgun.files.formats import Format, writable_format
from railgun.files.text_rows import csv_header, csv_rows, ndjson_rows


class _Rows(Protocol):
    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class ResultFile:
    """A file of results, its format by its suffix. Leaving the `with` block without an error makes it appear; before
    the block nothing is on the disk.

    integers: columns of decimal128(38, 0) that are integers of 128 bits, which JSON has as numbers.
    Whatever was there under its name before stays until then, and for good if anything goes wrong.
    """

    def __init__(self, path: Path, schema: pa.Schema, integers: frozenset[str] = frozenset()) -> None:
        """Raises SuffixError."""
        self._format, self._schema, self._integers = writable_format(path), schema, integers
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")

    def write(self, table: pa.Table) -> None:
        """Append rows. Raises UnwritableFileError."""
        with self._failures():
            self._rows.write(table)

    def __enter__(self) -> "ResultFile":
        """Raises UnwritableFileError."""
        # A signal's exception may come at any call: none is made between here and the block.
        try:
            with self._failures():
                if self._path.is_dir():
                    raise IsADirectoryError("a folder has this name")
                self._rows = _open(self._format, self._partial, self._schema, self._integers)
        except BaseException:
            self._partial.unlink(missing_ok=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._failures():
                self._rows.close()
                if kind is None:
                    os.replace(self._partial, self._path)
        except UnwritableFileError:
            if kind is None:
                raise
        finally:
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UnwritableFileError(
                str(self._path),
                f"it cannot be written: {reason}; see to space and permissions there, or name another place",
            ) from error


class _ParquetRows:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        self._writer = pq.ParquetWriter(path, schema, use_dictionary=texts)

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()


class _ArrowRows:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = pa.OSFile(str(path), "wb")
        self._writer = ipc.new_file(self._file, schema, options=ipc.IpcWriteOptions(compression="lz4"))

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class _TextRows:
    def __init__(self, path: Path, head: bytes, render: Callable[[pa.Table], bytes]) -> None:
        self._render = render
        self._file: Any = path.open("wb")
        self._file.write(head)

    def write(self, table: pa.Table) -> None:
        self._file.write(self._render(table))

    def close(self) -> None:
        self._file.close()


def _open(format_: Format, path: Path, schema: pa.Schema, integers: frozenset[str]) -> _Rows:
    if format_ is Format.PARQUET:
        return _ParquetRows(path, schema)
    if format_ is Format.ARROW:
        return _ArrowRows(path, schema)
    if format_ is Format.CSV:
        return _TextRows(path, csv_header(schema.names), csv_rows)
    return _TextRows(path, b"", lambda table: ndjson_rows(table, integers))
