"""Reads files of recorded replies, as `railgun run --out` writes them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from railgun.catalog.model import MetricDefinition, StreamDefinition
from railgun.catalog.names import column_name
from railgun.files.errors import FileError
from railgun.files.formats import Format, writable_format
from railgun.language.derive import ResolvedDerived
from railgun.language.errors import nearest
from railgun.language.types import RESULT_DIGITS, Kind, Type
from railgun.spark.errors import ReplyFileError
from railgun.wording import listed

_BATCH_ROWS = 16_384
_PLAIN: Mapping[Kind, Callable[[], pa.DataType]] = {
    Kind.STRING: pa.string,
    Kind.LONG: pa.int64,
    Kind.TIMESTAMP: pa.int64,
    Kind.DOUBLE: pa.float64,
    Kind.BOOLEAN: pa.bool_,
}


def recorded_type(type_: Type) -> pa.DataType:
    """Return the Arrow type of results in files. Times are integer milliseconds."""
    if type_.kind is Kind.INTEGER128:
        return pa.decimal128(RESULT_DIGITS, 0)
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(type_.precision, type_.scale)
    return _PLAIN[type_.kind]()


def recorded_columns(
    stream: StreamDefinition, metrics: Sequence[MetricDefinition], derived: Sequence[ResolvedDerived]
) -> dict[str, pa.DataType]:
    """Return the columns to compare, by name: metrics, derived metrics, then `late_<p>` and `duplicate_<p>` by
    partitioner.
    """
    columns = {metric.name: recorded_type(metric.resolved.result_type) for metric in metrics}
    columns |= {each.name: recorded_type(each.result_type) for each in derived}
    for partitioner in stream.partitioners:
        columns[f"late_{column_name(partitioner)}"] = pa.string()
        columns[f"duplicate_{column_name(partitioner)}"] = pa.bool_()
    return columns


def id_column(stream: StreamDefinition) -> str:
    """Return the column of the events' ids."""
    return stream.id or "id"


def file_columns(
    stream: StreamDefinition, metrics: Sequence[MetricDefinition], derived: Sequence[ResolvedDerived]
) -> dict[str, pa.DataType]:
    """Return the columns that a file must have: the ids, and the columns to compare."""
    type_ = pa.string() if stream.id is None else recorded_type(stream.types[stream.id])
    return {id_column(stream): type_, **recorded_columns(stream, metrics, derived)}


class ReplyFile:
    """One file of replies. Raises ReplyFileError if it lacks a column, or if one has another type."""

    def __init__(self, path: Path, columns: Mapping[str, pa.DataType]) -> None:
        self.path = path
        self._columns = dict(columns)
        try:
            self._format = writable_format(path)
            if not path.is_file():
                raise ReplyFileError(
                    f"{path}: there is no such file; name the one that railgun run --out wrote"
                )
            self._check()
        except FileError as error:
            raise ReplyFileError(str(error)) from error
        except (pa.ArrowException, ValueError) as error:
            raise ReplyFileError(
                f"{path}: it cannot be read ({error}); name the one that railgun run --out wrote"
            ) from error

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, in order, with the given columns in the given order and types."""
        try:
            for batch in self._raw():
                yield self._typed(batch)
        except (pa.ArrowException, ValueError, KeyError) as error:
            raise ReplyFileError(f"{self.path}: a reply cannot be read: {error}") from error

    def _check(self) -> None:
        if self._format is Format.NDJSON:
            with self.path.open("rb") as file:
                line = file.readline()
            first = json.loads(line) if line.strip() else self._columns
            if not isinstance(first, Mapping):
                raise ValueError("its first line is no JSON object")
            self._check_names(list(first))
            return
        if self._format is Format.CSV:
            with csv.open_csv(self.path) as reader:
                self._check_names(reader.schema.names)
            return
        schema = pq.read_schema(self.path) if self._format is Format.PARQUET else _arrow(self.path).schema
        self._check_names(schema.names)
        for name, type_ in self._columns.items():
            found = schema.field(name).type
            is_text = pa.types.is_string(type_) and pa.types.is_large_string(found)
            if found != type_ and not is_text:
                raise ReplyFileError(
                    f"{self.path}: column {name} is {found}, the definitions make it {type_}; were the replies "
                    "recorded with other definitions?"
                )

    def _check_names(self, names: list[str]) -> None:
        missing = [name for name in self._columns if name not in names]
        if missing:
            near = nearest(missing[0], [name for name in names if name not in self._columns])
            hint = f"did it become {near}?" if near else "were the replies recorded with other definitions?"
            raise ReplyFileError(f"{self.path}: there is no column {listed(missing, 1)}; {hint}")

    def _raw(self) -> Iterator[pa.RecordBatch]:
        names = list(self._columns)
        if self._format is Format.PARQUET:
            with pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(_BATCH_ROWS, columns=names)
        elif self._format is Format.ARROW:
            reader = _arrow(self.path)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
        elif self._format is Format.CSV:
            convert = csv.ConvertOptions(
                column_types=self._columns,
                include_columns=names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            parse = csv.ParseOptions(newlines_in_values=True)
            with csv.open_csv(self.path, convert_options=convert, parse_options=parse) as reader:
                yield from reader
        else:
            yield from self._lines()

    def _lines(self) -> Iterator[pa.RecordBatch]:
        with self.path.open("rb") as file:
            rows: list[dict[str, Any]] = []
            for line in file:
                rows.append(json.loads(line))
                if len(rows) == _BATCH_ROWS:
                    yield self._from_rows(rows)
                    rows = []
            if rows:
                yield self._from_rows(rows)

    def _from_rows(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        arrays: list[pa.Array] = []
        for name, type_ in self._columns.items():
            values = [row[name] for row in rows]
            if pa.types.is_decimal(type_):
                values = [None if value is None else Decimal(value) for value in values]
            arrays.append(pa.array(values, type_))
        return pa.RecordBatch.from_arrays(arrays, names=list(self._columns))

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [batch.column(name).cast(type_) for name, type_ in self._columns.items()]
        return pa.RecordBatch.from_arrays(arrays, names=list(self._columns))


def _arrow(path: Path) -> ipc.RecordBatchFileReader:
    return ipc.open_file(pa.memory_map(str(path)))
