"""Writes results, table by table, for `railgun run`. The file gets its own name when it is complete.

Text (CSV, and NDJSON with exact numbers) is made from whole columns at a time.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from railgun.files.errors import UnwritableFileError
from railgun.files.formats import Format, writable_format

_NEEDS_QUOTES = r'[",\r\n]|^$'
_NEEDS_ESCAPES = r'["\\\x00-\x1f]'


def csv_header(names: Sequence[str]) -> bytes:
    """Return the first line of a CSV file."""
    return (",".join(names) + "\n").encode()


def csv_rows(table: pa.Table) -> bytes:
    """Return lines of CSV. Null is an empty field, an empty string a quoted one."""
    columns = [pc.fill_null(_text(column, _quoted), "") for column in _arrays(table)]
    return _lines(columns, ",", "")


def ndjson_rows(table: pa.Table, integers: frozenset[str]) -> bytes:
    """Return lines of JSON. Decimals are strings, except in the columns named `integers`, where they are numbers."""
    pieces: list[pa.Array] = []
    for name, column in zip(table.column_names, _arrays(table)):
        text = _text(column, _json_string)
        if pa.types.is_decimal(column.type) and name not in integers:
            text = pc.binary_join_element_wise('"', text, '"', "")
        start = "{" if not pieces else ","
        pieces.append(pc.binary_join_element_wise(f'{start}"{name}":', pc.fill_null(text, "null"), ""))
    return _lines(pieces, "", "}")


def _arrays(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.itercolumns()]


def _lines(columns: Sequence[pa.Array], separator: str, end: str) -> bytes:
    """Return the joined rows, each with `end` and a line feed."""
    if not columns or not len(columns[0]):
        return b""
    rows = pc.binary_join_element_wise(*columns, separator) if len(columns) > 1 else columns[0]
    line_end, nothing = pa.scalar(f"{end}\n", pa.large_string()), pa.scalar("", pa.large_string())
    lines = pc.binary_join_element_wise(rows.cast(pa.large_string()), line_end, nothing)
    _, offsets, data = lines.buffers()
    return bytes(data[: np.frombuffer(offsets, np.int64)[len(lines)]])


def _text(column: pa.Array, of_string: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return the text of each value. Null stays null."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return of_string(column.cast(pa.string()))
    text = column.cast(pa.string())
    if pa.types.is_floating(column.type):
        is_whole = pc.invert(pc.match_substring_regex(text, r"[.en]"))
        return pc.if_else(is_whole, pc.binary_join_element_wise(text, ".0", ""), text)
    if pa.types.is_decimal(column.type) and pc.any(pc.match_substring(text, "E")).as_py():
        return pa.array([None if each is None else _plain(each) for each in column.to_pylist()], pa.string())
    return text


def _plain(value: Decimal) -> str:
    return f"{value:f}"


def _quoted(column: pa.Array) -> pa.Array:
    doubled = pc.binary_join_element_wise('"', pc.replace_substring(column, '"', '""'), '"', "")
    return pc.if_else(pc.match_substring_regex(column, _NEEDS_QUOTES), doubled, column)


def _json_string(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPES)).as_py():
        escaped = [
            None if each is None else json.dumps(each, ensure_ascii=False) for each in column.to_pylist()
        ]
        return pa.array(escaped, pa.string())
    return pc.binary_join_element_wise('"', column, '"', "")


class _Rows(Protocol):
    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class ResultFile:
    """A file of results in the format of its suffix. It appears if its `with` block is left without an error.

    Nothing is on the disk before the block. A file that had the name before stays until then, or for good after an
    error.
    integers: columns of decimal128(38, 0) that hold integers of 128 bits, which JSON has as numbers.
    """

    def __init__(self, path: Path, schema: pa.Schema, integers: frozenset[str] = frozenset()) -> None:
        """Check the suffix. Raises SuffixError."""
        self._format, self._schema, self._integers = writable_format(path), schema, integers
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")

    def write(self, table: pa.Table) -> None:
        """Append rows. Raises UnwritableFileError."""
        with self._failures():
            self._rows.write(table)

    def __enter__(self) -> "ResultFile":
        """Create the file under another name. Raises UnwritableFileError."""
        # A signal's exception may come at any call. No call is made between here and the block.
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
