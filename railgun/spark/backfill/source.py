"""History as a DataFrame: whatever Spark can read. Avro is read by fastavro if Spark's own module is missing."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from railgun.files.avro_source import AvroSource
from railgun.files.errors import FileError
from railgun.files.python_columns import arrow_type
from railgun.spark.errors import HistoryError
from railgun.spark.worker_errors import SPARK_ERRORS, first_line, of_file
from railgun.wire.schema import Field, Schema

REFUSED = "railgun_refused"
"""A column that Avro files get. It says why a row could not be read, as "field\\0reason"; null if it could."""

_FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".ndjson": "json",
    ".jsonl": "json",
    ".avro": "avro",
    ".orc": "orc",
}
_TEXT = ("csv", "text")
_CSV = {"header": "true"}


@dataclass(frozen=True, slots=True)
class HistorySource:
    """The place and the format of history.

    places: files, folders and globs; or the name of one table, with the format "table".
    format: Spark's name of the format; taken from the suffix unless given.
    options: the options of Spark's reader.
    """

    places: tuple[str, ...]
    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, places: Sequence[str], format_: str | None = None, options: Mapping[str, str] | None = None
    ) -> "HistorySource":
        """Return the source that the arguments name. Raises HistoryError if the format is not clear."""
        suffixes = {Path(place.rstrip("/*")).suffix for place in places}
        if format_ is None:
            known = {_FORMATS[suffix] for suffix in suffixes if suffix in _FORMATS}
            if len(known) != 1 or not all(suffix in _FORMATS for suffix in suffixes):
                raise HistoryError(
                    f"{', '.join(places)}: the names do not say one format ({', '.join(_FORMATS)}); name it with "
                    "--format, as in --format parquet for a folder of such files, or --format table for a table of the "
                    "session's catalogue"
                )
            format_ = known.pop()
        return cls(tuple(places), format_, dict(options or {}))

    @property
    def is_text(self) -> bool:
        """Whether all columns are strings as they are written in the files."""
        return self.format in _TEXT and self.options.get("inferSchema", "false") != "true"

    def files_mark(self, rows: DataFrame) -> str:
        """Return a mark that changes if the files do: by their names, sizes and times.

        For a table it knows the names only.

        rows: the rows that were read from the source. The mark is empty if there are no files.
        """
        if self.format in _FORMATS.values():
            reader = rows.sparkSession.read.format("binaryFile").options(**self.options)
            found = reader.load(list(self.places)).selectExpr(
                "path", "length", "unix_micros(modificationTime)"
            )
            listing = sorted(tuple(row) for row in found.collect())
        else:
            listing = sorted((file,) for file in rows.inputFiles())
        return hashlib.sha256(json.dumps(listing).encode()).hexdigest() if listing else ""

    def read(self, spark: SparkSession, schema: Schema, columns: Mapping[str, str]) -> DataFrame:
        """Return the rows. schema, columns: how Avro is read; see `backfill_columns`.

        Raises HistoryError if the history is missing or cannot be read.
        """
        try:
            if self.format == "table":
                return spark.table(self.places[0])
            options = {**_CSV, **self.options} if self.format == "csv" else dict(self.options)
            return spark.read.format(self.format).options(**options).load(list(self.places))
        except AnalysisException as error:
            if self.format == "avro" and "find data source" in str(error):
                return _avro(spark, self.places, schema, columns)
            if error.getCondition() == "PATH_NOT_FOUND":
                missing = (error.getMessageParameters() or {}).get("path", ", ".join(self.places))
                raise HistoryError(
                    f"{missing.removeprefix('file:')}: there is no such file or folder; is the path right?"
                ) from error
            raise HistoryError(f"{', '.join(self.places)}: {first_line(error)}") from error
        except SPARK_ERRORS as error:
            raise HistoryError(of_file(error) or f"{', '.join(self.places)}: {first_line(error)}") from error


def _avro(
    spark: SparkSession, places: Sequence[str], schema: Schema, columns: Mapping[str, str]
) -> DataFrame:
    """Read Avro with one Spark task for each file. Columns keep the file's names, and get the types of the fields."""
    fields = [Field(columns.get(each.name, each.name), each.type) for each in schema.fields]
    named = Schema(schema.version, tuple(dict.fromkeys(fields)))
    paths = [
        row["path"] for row in spark.read.format("binaryFile").load(list(places)).select("path").collect()
    ]
    if not paths:
        raise HistoryError(f"{', '.join(places)}: there are no files")
    files = [_local(path) for path in sorted(paths)]
    try:
        for file in files:
            AvroSource(Path(file), named).close()
    except (FileError, OSError) as error:
        raise HistoryError(str(error)) from error
    table = spark.createDataFrame([(file,) for file in files], "file string")
    shape = pa.schema(
        [(each.name, arrow_type(each.type)) for each in named.fields] + [(REFUSED, pa.string())]
    )
    spread = table.repartition(len(files), "file")
    return spread.mapInArrow(_reading(named, shape), from_arrow_schema(shape))


def _local(path: str) -> str:
    parts = urlparse(path)
    if parts.scheme not in ("", "file"):
        raise HistoryError(
            f"{path}: Avro is read by fastavro here, from files that all machines see under one path; for other "
            "storage give Spark its own module: --packages org.apache.spark:spark-avro_2.13:VERSION"
        )
    return unquote(parts.path)


def _reading(
    schema: Schema, shape: pa.Schema
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.column(0).to_pylist():
                source = AvroSource(Path(file), schema)
                try:
                    for block in source.blocks():
                        reasons: list[str | None] = [None] * block.batch.num_rows
                        for each in block.refused:
                            reasons[each.row] = f"{each.field or ''}\0{each.reason}"
                        arrays = [*block.batch.columns, pa.array(reasons, pa.string())]
                        yield pa.RecordBatch.from_arrays(arrays, schema=shape)
                finally:
                    source.close()

    return read
