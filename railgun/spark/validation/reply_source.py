"""A data source of recorded replies: those of a cluster's output topic, or of files with one reply on each line."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Context, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from railgun.language.types import Kind, Type
from railgun.plan.outputs import is_wide
from railgun.spark.errors import ReplyFileError
from railgun.spark.tables.broker_place import broker_settings
from railgun.spark.tables.record_log import Bounds, Piece
from railgun.spark.tables.topic_log import TopicRecordLog, connected
from railgun.spark.validation.reply_file import recorded_type
from railgun.spark.validation.run_source import whole_type
from railgun.spark.validation.task_log_source import number_of, place_of_number

FORMAT = "railgun_replies"
REPLY_NUMBER, REPLY_ID, REPLY_MS = "reply_n", "reply_id", "reply_t"
ABSENT, UNFIT, WARMING, PARTIAL, UNKNOWN = "absent", "unfit", "warming", "partial", "unknown"
"""UNFIT: by column, the JSON of values that do not have the column's type; the column is null there.
UNKNOWN: by name, the JSON of values whose names never were those of metrics."""
LATE_AT, DUPLICATE_AT = "late_at", "duplicate_at"

_BATCH = 8_192
_PIECE_RECORDS = 500_000


class _Reply(msgspec.Struct, gc=False):
    """The JSON of one reply."""

    id: str | int
    time: int
    metrics: dict[str, Any]
    late: dict[str, str] | None = None
    duplicate: list[str] | None = None
    warming: list[str] | None = None
    partial: dict[str, int] | None = None


class _Problem(msgspec.Struct, gc=False):
    """The JSON that stands in place of a reply to a refused event, which is in no log."""

    title: str
    status: int


def _is_problem(line: bytes) -> bool:
    if b'"metrics"' in line:
        return False
    try:
        msgspec.json.decode(line, type=_Problem)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column for the results of a metric. kind, precision, scale: of the type of the results."""

    column: str
    name: str
    kind: str
    precision: int
    scale: int

    @classmethod
    def of(cls, column: str, name: str, type_: Type) -> "ResultColumn":
        """Return the column for results of a type."""
        return cls(column, name, type_.kind.value, type_.precision, type_.scale)

    @property
    def type(self) -> Type:
        """The type of the results."""
        return Type(Kind(self.kind), self.precision, self.scale)


@dataclass(frozen=True, slots=True)
class ReplyPlace:
    """The place of replies, and the columns that are read. files: NDJSON; read if there is no broker.  topic: else."""

    files: tuple[str, ...]
    broker: str | None
    topic: str
    kafka: Mapping[str, str]
    columns: tuple[ResultColumn, ...]

    def options(self) -> dict[str, str]:
        """Return the options of the data source."""
        return {"place": json.dumps(asdict(self))}

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> "ReplyPlace":
        """Return the place that `options` described."""
        body = json.loads(options["place"])
        columns = tuple(ResultColumn(**each) for each in body.pop("columns"))
        return cls(tuple(body.pop("files")), columns=columns, **body)

    def of_number(self, number: int) -> str:
        """Return the place of a reply by its number, for people."""
        part, at = place_of_number(number)
        if self.broker is None:
            return f"{self.files[part]} line {at}"
        return f"{self.topic}, partition {part}, offset {at}"

    def open(self) -> TopicRecordLog:
        """Return the output topic. Raises PlaceError."""
        assert self.broker is not None
        return TopicRecordLog(
            connected(broker_settings(self.broker, dict(self.kafka))), self.topic, "", self.broker
        )


class ReplySource(DataSource):
    """The data source. It has one row for each reply."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(_schema(ReplyPlace.of_options(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReplyReader(ReplyPlace.of_options(self.options))


@dataclass(frozen=True, slots=True)
class _Lines:
    """A file of replies, by its index."""

    number: int
    path: str


class ReplyPartition(InputPartition):
    """Offsets of a partition of the topic, or one file."""

    def __init__(self, part: Piece | _Lines) -> None:
        self.part = part


class ReplyReader(DataSourceReader):
    """The reader. Raises PlaceError if the topic cannot be read, ReplyFileError for a line that is not a reply."""

    def __init__(self, place: ReplyPlace) -> None:
        self._place = place

    def partitions(self) -> Sequence[InputPartition]:
        if self._place.broker is None:
            return [ReplyPartition(_Lines(number, path)) for number, path in enumerate(self._place.files)]
        log = self._place.open()
        try:
            return [ReplyPartition(piece) for piece in log.pieces(Bounds(), _PIECE_RECORDS)]
        finally:
            log.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReplyPartition)
        part, rows = partition.part, _Rows(self._place)
        if isinstance(part, _Lines):
            yield from rows.of_lines(part)
            return
        log = self._place.open()
        try:
            for raw in log.read(part, Bounds(), payloads=True):
                assert raw.records is not None
                values = raw.records.to_list()
                numbers = [number_of(part.partition, offset) for offset in raw.offsets.tolist()]
                yield rows.batch(values, numbers, "offset")
        finally:
            log.close()


def _schema(place: ReplyPlace) -> pa.Schema:
    fields = [
        (REPLY_NUMBER, pa.int64()),
        (REPLY_ID, pa.string()),
        (REPLY_MS, pa.int64()),
        (LATE_AT, pa.map_(pa.string(), pa.string())),
        (DUPLICATE_AT, pa.list_(pa.string())),
        (ABSENT, pa.list_(pa.string())),
        (UNFIT, pa.map_(pa.string(), pa.string())),
        (WARMING, pa.list_(pa.string())),
        (PARTIAL, pa.map_(pa.string(), pa.int64())),
        (UNKNOWN, pa.map_(pa.string(), pa.string())),
    ]
    return pa.schema(fields + [(each.column, whole_type(recorded_type(each.type))) for each in place.columns])


class _Rows:
    """Makes rows of replies."""

    def __init__(self, place: ReplyPlace) -> None:
        self._place, self._schema = place, _schema(place)
        self._decode = msgspec.json.Decoder(_Reply).decode
        self._names = frozenset(each.name for each in place.columns)

    def of_lines(self, lines: _Lines) -> Iterator[pa.RecordBatch]:
        """Yield the replies of a file. Empty lines, and those of refused events, are skipped."""
        values: list[bytes] = []
        numbers: list[int] = []
        with Path(lines.path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not _is_problem(line):
                    values.append(line)
                    numbers.append(number_of(lines.number, number))
                if len(values) == _BATCH:
                    yield self.batch(values, numbers, f"{lines.path} line")
                    values, numbers = [], []
        if values:
            yield self.batch(values, numbers, f"{lines.path} line")

    def batch(self, values: Sequence[bytes], numbers: Sequence[int], where: str) -> pa.RecordBatch:
        """Replies as columns. Raises ReplyFileError."""
        replies: list[_Reply] = []
        for value, number in zip(values, numbers):
            try:
                replies.append(self._decode(value))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise ReplyFileError(
                    f"{where} {place_of_number(number)[1]}: it is no reply: {error}"
                ) from error
        metrics = [each.metrics for each in replies]
        absent: list[list[str] | None] = []
        unfit: list[list[tuple[str, str]] | None] = [None] * len(replies)
        for each in metrics:
            absent.append(None if each.keys() == self._names else sorted(self._names - each.keys()) or None)
        columns = []
        for wanted in self._place.columns:
            found = [each.get(wanted.name) for each in metrics]
            columns.append(_array(wanted, found, unfit, self._schema.field(wanted.column).type))
        columns_of_replies: list[Any] = [
            numbers,
            [str(each.id) for each in replies],
            [each.time for each in replies],
            [None if each.late is None else list(each.late.items()) for each in replies],
            [each.duplicate for each in replies],
            absent,
            unfit,
            [each.warming for each in replies],
            [None if each.partial is None else list(each.partial.items()) for each in replies],
            [self._unknown(each) for each in replies],
        ]
        arrays = [
            pa.array(values, each.type) for values, each in zip(columns_of_replies, self._schema)
        ] + columns
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _unknown(self, reply: _Reply) -> list[tuple[str, str]] | None:
        """Return the entries of a reply with names that no metric has ever had."""
        found = [
            (name, json.dumps(reply.metrics[name])) for name in sorted(reply.metrics.keys() - self._names)
        ]
        warming = [name for name in reply.warming or () if name not in self._names]
        partial = {name: at for name, at in (reply.partial or {}).items() if name not in self._names}
        # In parentheses, so that it cannot be the name of a metric.
        found += [(f"({WARMING})", json.dumps(warming))] if warming else []
        found += [(f"({PARTIAL})", json.dumps(partial))] if partial else []
        return found or None


def _array(
    wanted: ResultColumn, values: list[Any], unfit: list[list[tuple[str, str]] | None], type_: pa.DataType
) -> pa.Array:
    """Return the results of a metric. A value that does not have its type is null, and is put into `unfit` by its
    column.
    """
    try:
        return pa.array([_read(wanted, value) for value in values], type_)
    except (TypeError, ValueError, ArithmeticError, pa.ArrowException):
        fitting = []
        for row, value in enumerate(values):
            try:
                fitting.append(pa.scalar(_read(wanted, value), type_))
            except (TypeError, ValueError, ArithmeticError, pa.ArrowException):
                fitting.append(pa.scalar(None, type_))
                unfit[row] = [*(unfit[row] or ()), (wanted.column, json.dumps(value))]
        return pa.array([each.as_py() for each in fitting], type_)


def _read(wanted: ResultColumn, value: Any) -> Any:
    """Return the Python value for Arrow of a JSON value. Raises TypeError, ValueError, ArithmeticError."""
    if value is None:
        return None
    kind = Kind(wanted.kind)
    if type(value) not in _JSON_TYPES[kind]:
        raise TypeError(f"{value!r} is no {kind.value}")
    if kind is Kind.INTEGER128:
        return Decimal(value)
    if kind is not Kind.DECIMAL:
        return value
    number = Decimal(value)
    if number.as_tuple().exponent != -wanted.scale:
        raise InvalidOperation(f"{value!r} has not {wanted.scale} digits behind the point")
    return number.scaleb(wanted.scale, _EXACT) if is_wide(wanted.type) else number


_JSON_TYPES: Mapping[Kind, tuple[type, ...]] = {
    Kind.STRING: (str,),
    Kind.LONG: (int,),
    Kind.TIMESTAMP: (int,),
    Kind.INTEGER128: (int,),
    Kind.DOUBLE: (int, float),
    Kind.BOOLEAN: (bool,),
    Kind.DECIMAL: (str,),
}
_EXACT = Context(prec=60)
