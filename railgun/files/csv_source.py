"""Reads CSV files with a header. Every value is its text; an unquoted empty value is null."""

import csv
from collections import deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from railgun.files.errors import ColumnError, EncodingError, TooManyBadRowsError, UnreadableFileError
from railgun.files.selection import check_columns
from railgun.files.source import TEXT_BLOCK_BYTES, Block, Refusal, block_rows
from railgun.wire.finding import steps_of
from railgun.wire.path import has_lone_surrogate
from railgun.wire.schema import Schema

_BAD_ROWS_MAX = 100_000
# Arrow counts the header as row 1.
_FIRST_ROW = 2
_SEPARATORS = (";", "\t", "|")


class CsvSource:
    """A Source of a CSV file: commas, double quotes, UTF-8; quoted values may have several lines."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.file, self._schema = str(path), schema
        self.size_bytes = path.stat().st_size
        self.rows: int | None = None
        self._header, self._has_rows = read_header(path)
        try:
            self.ignored = check_columns(self.file, self._header, schema)
        except ColumnError:
            check_separator(self.file, self._header)
            raise
        self._columns = self._columns_of_fields()
        self._input = _CountingFile(path)
        self._misshapen = _MisshapenRows()
        # The validator refuses bytes that are not UTF-8, row by row. So Arrow is told not to check them.
        self._text_schema = pa.schema([(name, pa.string()) for name in dict.fromkeys(self._columns) if name])

    def blocks(self) -> Iterator[Block]:
        done, size = 0, block_rows(len(self._schema.fields))
        for batch in chain(self._batches(), [None]):
            good = 0 if batch is None else len(batch)
            bad = self._misshapen.among(done, good)
            if not good and not bad:
                continue
            rows, refused = self._with_misshapen(batch, bad)
            for start in range(0, len(rows), size):
                part = rows.slice(start, size)
                within = tuple(
                    Refusal(each.row - start, each.field, each.reason)
                    for each in refused
                    if start <= each.row < start + len(part)
                )
                fields = self._fields(part)
                yield Block(self.file, fields, done + start, within, self._input.read_bytes, is_text=True)
            done += len(rows)
        if self._input.quotes % 2:
            raise UnreadableFileError(
                self.file,
                "its double quotes are odd in number: one is not closed, so rows run together; mend it",
            )

    def close(self) -> None:
        self._input.close()

    def _columns_of_fields(self) -> list[str]:
        """Return for each field the name of its column; empty if the file has none for its path.

        Raises ColumnError for a path that goes on within a column.
        """
        found: list[str] = []
        for field in self._schema.fields:
            steps = steps_of(field)
            name = str(steps[0]) if steps and str(steps[0]) in self._header else ""
            if name and len(steps) > 1:
                raise ColumnError(
                    self.file,
                    f"column {name} is text and has no {field.place}; a CSV file has nothing nested",
                )
            found.append(name)
        return found

    def _fields(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a column for each field."""
        if not self._schema.has_paths:
            return batch
        absent = pa.nulls(len(batch), pa.string())
        columns = [batch.column(name) if name else absent for name in self._columns]
        return pa.RecordBatch.from_arrays(columns, [field.name for field in self._schema.fields])

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if not self._has_rows:
            return
        done = 0
        try:
            reader = pacsv.open_csv(
                self._input,
                pacsv.ReadOptions(use_threads=False, block_size=TEXT_BLOCK_BYTES),
                pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=self._misshapen.meet),
                pacsv.ConvertOptions(
                    check_utf8=False,
                    column_types=self._text_schema,
                    include_columns=self._text_schema.names,
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                done += len(batch)
                yield batch
        except pa.ArrowInvalid as error:
            if self._misshapen.too_many:
                raise TooManyBadRowsError(
                    self.file,
                    f"over {_BAD_ROWS_MAX} rows on end lack the {len(self._header)} columns of the header",
                ) from None
            raise UnreadableFileError(
                self.file, f"it cannot be read on from here: {error}; is a double quote not closed?", done + 1
            ) from error

    def _with_misshapen(
        self, batch: pa.RecordBatch | None, bad: dict[int, int]
    ) -> tuple[pa.RecordBatch, list[Refusal]]:
        """Return the batch with rows of nulls in the places of misshapen rows, and their refusals."""
        if batch is None:
            batch = pa.RecordBatch.from_pylist([], self._text_schema)
        if not bad:
            return batch, []
        is_bad = np.zeros(len(batch) + len(bad), bool)
        is_bad[list(bad)] = True
        rows = np.zeros(len(is_bad), np.int64)
        rows[~is_bad] = np.arange(len(batch))
        columns = len(self._header)
        refused = [
            Refusal(row, None, f"it has {values} values, the header has {columns}")
            for row, values in bad.items()
        ]
        return batch.take(pa.array(rows, mask=is_bad)), refused


class _MisshapenRows:
    """Rows with too few or too many values. Arrow leaves them out; they are put back later as refused rows."""

    def __init__(self) -> None:
        self._rows: deque[tuple[int, int]] = deque()
        self.too_many = False

    def meet(self, row: Any) -> str:
        """Note a misshapen row. Arrow calls this, and may be ahead of the batches that it has given."""
        self.too_many = len(self._rows) >= _BAD_ROWS_MAX
        self._rows.append((row.number - _FIRST_ROW, row.actual_columns))
        return "error" if self.too_many else "skip"

    def among(self, done: int, good: int) -> dict[int, int]:
        """Return how many values misshapen rows have, by place among the next rows.

        These are the rows among, or right behind, the `good` rows that follow the first `done` rows.
        """
        found: dict[int, int] = {}
        while self._rows and self._rows[0][0] - done - len(found) <= good:
            row, values = self._rows.popleft()
            found[row - done] = values
        return found


class _CountingFile:
    """A file that Arrow reads. It counts the bytes that were read, and the double quotes in them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.read_bytes = 0
        self.quotes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.read_bytes += len(data)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False


def read_header(path: Path) -> tuple[list[str], bool]:
    """Return the names in the first line that is not blank, and whether anything follows it.

    Raises UnreadableFileError, EncodingError, OSError.
    """
    try:
        # More than the header is decoded here. Errors behind the header belong to their own rows.
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            header = next((row for row in csv.reader(file) if row), None)
            has_rows = bool(file.read(1))
    except csv.Error as error:
        raise UnreadableFileError(str(path), f"its header cannot be read: {error}") from error
    if header is None:
        raise UnreadableFileError(str(path), "there is no header; the first line names the columns")
    if any(map(has_lone_surrogate, header)):
        raise EncodingError(str(path), "its header is no UTF-8; convert the file with iconv -t UTF-8")
    return header, has_rows


def check_separator(file: str, header: list[str]) -> None:
    """Raise ColumnError if the columns are separated by something else than commas."""
    for separator in _SEPARATORS:
        if len(header) == 1 and separator in header[0]:
            raise ColumnError(file, f"its columns are separated by {separator!r}, not by commas; convert it")
