"""An off-line run as a table for validation: its events, with numbers and tasks, joined with its recorded replies.

Kafka's default partitioner is implemented here a second time, in NumPy. A validator that used the engine's could not
find an error in it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from railgun.catalog.definitions import load_definitions
from railgun.catalog.model import ALL, MetricDefinition, StreamDefinition
from railgun.files.reading import EventFiles
from railgun.ingest.file_events import CheckedBlock, EventChecks
from railgun.language.computed import ComputedField
from railgun.language.derive import ResolvedDerived
from railgun.language.typed import fields_of
from railgun.language.types import RESULT_DIGITS, STRING, Type
from railgun.plan.hot import fields_needed
from railgun.plan.outputs import MetricColumn
from railgun.spark.errors import ReplyFileError
from railgun.spark.validation.reply_file import (
    ReplyFile,
    file_columns,
    id_column,
    recorded_columns,
    recorded_type,
)
from railgun.spark.validation.translate import FIELD_PREFIX, InexpressibleError, sql_of
from railgun.wire.columns import Column

_M = np.uint32(0x5BD1E995)
_SEED = 0x9747B28C


def partition_numbers(keys: pa.Array, partitions: int) -> pa.Array:
    """int32: the partition of each key (strings or longs), null if the key is null."""
    if partitions == 1:
        return pc.if_else(pc.is_valid(keys), pa.scalar(0, pa.int32()), pa.scalar(None, pa.int32()))
    encoded = pc.dictionary_encode(keys.cast(pa.string()))
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    numbers = np.zeros(max(1, len(encoded.dictionary)), np.int32)
    for place, key in enumerate(encoded.dictionary.to_pylist()):
        numbers[place] = (murmur2(key.encode()) & 0x7FFFFFFF) % partitions
    return pa.array(numbers).take(encoded.indices)


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 hash of bytes, as an unsigned number."""
    words: NDArray[np.uint32] = np.frombuffer(data[: len(data) & ~3], "<u4").astype(np.uint32)
    mixed = words * _M
    mixed ^= mixed >> np.uint32(24)
    mixed *= _M
    h = (_SEED ^ len(data)) & 0xFFFFFFFF
    for word in mixed.tolist():
        h = ((h * int(_M)) & 0xFFFFFFFF) ^ word
    rest = data[len(data) & ~3 :]
    if rest:
        h = ((h ^ int.from_bytes(rest, "little")) * int(_M)) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * int(_M)) & 0xFFFFFFFF
    return h ^ (h >> 15)


NUMBER, EVENT_ID, EVENT_MS = "n", "id", "t"

_NO_HEAP = np.zeros(0, np.uint8)


def task_column(place: int) -> str:
    """Return the column of the partition of a partitioner; null if the event is not sent there.

    place: of the partitioner in the stream's list.
    """
    return f"p{place}"


def field_column(name: str) -> str:
    """Return the column of a field of the event."""
    return FIELD_PREFIX + name


def reply_column(name: str) -> str:
    """Return the column of a column of the recorded reply."""
    return f"r_{name}"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files that a run read and wrote."""

    definitions: str
    stream: str
    events: tuple[str, ...]
    out: str
    skip_bad: bool = False

    def defined(self) -> "Defined":
        """Return the stream and its metrics. Raises DefinitionError, OSError."""
        definitions = load_definitions(self.definitions)
        return Defined(
            definitions.streams[self.stream],
            definitions.metrics_of(self.stream),
            definitions.derived_of(self.stream),
        )

    def rows(self, session: SparkSession, defined: "Defined") -> DataFrame:
        """Return a row for each event of a run, in the order of its files. Refused events have no time.

        The rows are in one Spark partition, because their order is that of the log. They have the fields that the
        metrics need.
        """
        shape = from_arrow_schema(_schema(defined))
        reading = _RunReading(self, defined, time.time_ns() // 1_000_000)
        # A data source would give the same rows, but start three more Python processes. A range of one row would make
        # Spark plan everything that follows for one core.
        rows = session.sql("VALUES (0)").mapInArrow(reading.of_one, shape)
        return with_partitions(rows, defined.stream)


@dataclass(frozen=True, slots=True)
class Defined:
    """The stream and the metrics in a run's definitions."""

    stream: StreamDefinition
    metrics: tuple[MetricDefinition, ...]
    derived: tuple[ResolvedDerived, ...]

    @property
    def recorded(self) -> dict[str, pa.DataType]:
        """The columns to compare, by name."""
        return recorded_columns(self.stream, self.metrics, self.derived)

    @property
    def file_columns(self) -> dict[str, pa.DataType]:
        """The columns that a file of results must have."""
        return file_columns(self.stream, self.metrics, self.derived)


@dataclass(frozen=True, slots=True)
class _RunReading:
    """All that a worker needs to read a run, also repeatedly. now_ms: the wall clock that is used."""

    files: RunFiles
    defined: Defined
    now_ms: int

    def of_one(self, once: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the run, for the single row that Spark passes in."""
        for _ in once:
            yield from self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        stream = self.defined.stream
        schema = stream.incoming(1)
        checks = EventChecks(stream, schema, self.now_ms)
        replies = _InStep(ReplyFile(Path(self.files.out), self.defined.file_columns))
        ids = reply_column(id_column(stream))
        made, number = _schema(self.defined), 0
        with EventFiles([Path(each) for each in self.files.events], schema) as files:
            for block in checks.blocks(files):
                if block.refused.first is not None and not self.files.skip_bad:
                    raise block.refused.first
                if block.rows:
                    found = event_arrays(block, stream, number) | replies.take(block.rows)
                    self._check_ids(number, found[EVENT_ID], found[ids])
                    yield pa.RecordBatch.from_arrays([found[name] for name in made.names], schema=made)
                number += block.rows
        replies.finish(number)

    def _check_ids(self, number: int, events: pa.Array, replies: pa.Array) -> None:
        """Raise ReplyFileError if a reply has another id than its event. number: that of the first event."""
        differs = pc.not_equal(events, replies.cast(pa.string())).fill_null(True)
        # A refused row has no event.
        wrong = np.flatnonzero(pc.and_(differs, events.is_valid()))
        if len(wrong):
            row = int(wrong[0])
            raise ReplyFileError(
                f"{self.files.out}: row {number + row} is of id {replies[row]}, the event there has id {events[row]}; "
                "is it what the run wrote of these files, named in the same order?"
            )


class _InStep:
    """Reads replies in step with events, whatever the batches of the file are."""

    def __init__(self, file: ReplyFile) -> None:
        self._file, self._batches = file, file.batches()
        self._rest: pa.Table | None = None
        self._taken = 0

    def take(self, rows: int) -> dict[str, pa.Array]:
        """Return the columns of the next rows, by name. Raises ReplyFileError if there are fewer rows."""
        pieces = [] if self._rest is None else [self._rest]
        held = sum(map(len, pieces))
        while held < rows:
            batch = next(self._batches, None)
            if batch is None:
                raise ReplyFileError(
                    f"{self._file.path}: it ends after {self._taken + held} replies, there are more events; name all "
                    "that the run read, and its own output"
                )
            pieces.append(pa.Table.from_batches([batch]))
            held += len(batch)
        table = pa.concat_tables(pieces)
        self._rest = table.slice(rows)
        self._taken += rows
        taken = table.slice(0, rows)
        return {
            reply_column(name): _whole(column.combine_chunks())
            for name, column in zip(taken.column_names, taken.columns)
        }

    def finish(self, events: int) -> None:
        """Raise ReplyFileError if there are more replies than events."""
        if (self._rest is not None and len(self._rest)) or any(len(batch) for batch in self._batches):
            raise ReplyFileError(
                f"{self._file.path}: it has more replies than the {events} events of the files; name all that "
                "the run read"
            )


def _schema(defined: Defined) -> pa.Schema:
    stream = defined.stream
    fields = [(NUMBER, pa.int64()), (EVENT_ID, pa.string()), (EVENT_MS, pa.int64())]
    fields += [(task_column(place), pa.int32()) for place in range(len(stream.partitioners))]
    needed = dict(fields_needed((each.resolved for each in defined.metrics), stream.recorded_types))
    for each in defined.derived:
        needed |= each.fields
    for computed in computed_partitioners(stream).values():
        needed |= {name: stream.recorded_types[name] for name in sorted(fields_of(computed.expression))}
    fields += [(field_column(name), recorded_type(type_)) for name, type_ in needed.items()]
    return pa.schema(
        fields + [(reply_column(name), whole_type(type_)) for name, type_ in defined.recorded.items()]
    )


def whole_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which results are compared. Wide decimals become whole numbers, because Spark would round
    them.
    """
    is_wide = pa.types.is_decimal(type_) and type_.precision == RESULT_DIGITS
    return pa.decimal128(RESULT_DIGITS, 0) if is_wide else type_


def _whole(array: pa.Array) -> pa.Array:
    type_ = whole_type(array.type)
    if type_ == array.type:
        return array
    return pa.Array.from_buffers(type_, len(array), array.buffers(), array.null_count, array.offset)


def event_arrays(block: CheckedBlock, stream: StreamDefinition, number: int) -> dict[str, pa.Array]:
    """Return the columns of a block's events, by name.

    Rows of refused events are null, and so are the partitions of computed partitioners, which `with_partitions` sets.
    """
    events, bad = block.events, block.bad
    arrays = {EVENT_ID: _arrow(events.ids, STRING, len(events)), EVENT_MS: pa.array(events.times)}
    for (name, type_), column in zip(stream.recorded_types.items(), events.fields):
        arrays[field_column(name)] = _arrow(column, type_, len(events))
    for place, partitioner in enumerate(stream.partitioners):
        arrays[task_column(place)] = (
            pa.array(np.zeros(len(events), np.int32))
            if partitioner == ALL
            else pa.nulls(len(events), pa.int32())
            if partitioner not in stream.recorded_types
            else partition_numbers(arrays[field_column(partitioner)], stream.partitions)
        )
    if bad.any():
        places: NDArray[np.int64] = np.zeros(block.rows, np.int64)
        places[~bad] = np.arange(len(events))
        chosen = pa.array(places, mask=bad)
        arrays = {name: array.take(chosen) for name, array in arrays.items()}
    return {NUMBER: pa.array(np.arange(number, number + block.rows, dtype=np.int64)), **arrays}


def computed_partitioners(stream: StreamDefinition) -> dict[int, ComputedField]:
    """Return the computed fields among a stream's partitioners, by their places."""
    computed = {each.name: each for each in stream.computed}
    return {place: computed[name] for place, name in enumerate(stream.partitioners) if name in computed}


def sql_of_partitioner(field: ComputedField) -> str:
    """Return the SQL of a computed partitioner. Raises InexpressibleError that names it."""
    try:
        return sql_of(field.expression)
    except InexpressibleError as error:
        raise InexpressibleError(
            f"Spark cannot compute the partitioner {field.name} ({field.text}), so its stream cannot be validated: "
            f"{error}"
        ) from error


def with_partitions(rows: DataFrame, stream: StreamDefinition) -> DataFrame:
    """Return rows with the partitions of computed partitioners, whose values Spark computes. The order stays.

    Raises InexpressibleError.
    """
    computed = computed_partitioners(stream)
    if not computed:
        return rows
    shape, partitions = to_arrow_schema(rows.schema), stream.partitions
    values = {task_column(place): f"v_{task_column(place)}" for place in computed}

    def routed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(
                [
                    partition_numbers(batch.column(values[name]), partitions)
                    if name in values
                    else batch.column(name)
                    for name in shape.names
                ],
                schema=shape,
            )

    made = [f"{sql_of_partitioner(each)} AS v_{task_column(place)}" for place, each in computed.items()]
    return rows.selectExpr("*", *made).mapInArrow(routed, rows.schema)


def _arrow(column: Column, type_: Type, n: int) -> pa.Array:
    nulls = np.zeros(n, np.uint8) if column.nulls is None else column.nulls
    heap = _NO_HEAP if column.heap is None else column.heap
    return MetricColumn("", type_, column.words.reshape(-1, 1), nulls, heap).arrow()
