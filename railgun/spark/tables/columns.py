"""The columns of a read: their names, their types in Spark, and Arrow batches of them made from records."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from railgun.language.errors import nearest
from railgun.language.types import STRING, TIMESTAMP, Kind, Type
from railgun.plan.outputs import MetricColumn
from railgun.spark.errors import ColumnError, RecordError
from railgun.spark.tables.record_log import Bounds, Piece, RawRecords, StreamSchemas
from railgun.wire.columns import REF_LENGTH_BITS
from railgun.wire.decode import Decoded, Decoder
from railgun.wire.msgpack import Status
from railgun.wire.records import EVENT, runs_of

PARTITIONER, PARTITION, OFFSET = "partitioner", "partition", "offset"
EVENT_TIME, EVENT_ID = "event_time", "event_id"
OWN_COLUMNS = (PARTITIONER, PARTITION, OFFSET, EVENT_TIME, EVENT_ID)

_US_PER_MS = 1_000
_FROM_HEADS = frozenset((PARTITIONER, PARTITION, OFFSET, EVENT_TIME))
_PLAIN: Mapping[Kind, Callable[[], DataType]] = {
    Kind.STRING: StringType,
    Kind.LONG: LongType,
    Kind.DOUBLE: DoubleType,
    Kind.BOOLEAN: BooleanType,
}


def spark_type(type_: Type, *, times_as_long: bool) -> DataType:
    """Return a field's type in Spark. Times are TIMESTAMP, or BIGINT in milliseconds."""
    if type_.kind is Kind.DECIMAL:
        return DecimalType(type_.precision, type_.scale)
    if type_.kind is Kind.TIMESTAMP:
        return LongType() if times_as_long else TimestampType()
    return _PLAIN[type_.kind]()


def all_columns(types: Mapping[str, Type], prefix: str, *, times_as_long: bool) -> StructType:
    """Return the fields of a stream, then the record's own columns. Raises ColumnError if two have the same name."""
    clash = [name for name in OWN_COLUMNS if prefix + name in types]
    if clash:
        raise ColumnError(
            f"the stream has a field {prefix + clash[0]}, which is also a column of the record's own; name those "
            'otherwise with option("prefix", "log_")'
        )
    time = spark_type(TIMESTAMP, times_as_long=times_as_long)
    own: dict[str, DataType] = {
        PARTITIONER: StringType(),
        PARTITION: IntegerType(),
        OFFSET: LongType(),
        EVENT_TIME: time,
        EVENT_ID: StringType(),
    }
    fields = [
        StructField(name, spark_type(each, times_as_long=times_as_long)) for name, each in types.items()
    ]
    return StructType(fields + [StructField(prefix + name, each) for name, each in own.items()])


def chosen(everything: StructType, requested: Sequence[str]) -> StructType:
    """Return some of the columns, in the order asked for. Raises ColumnError for one that does not exist."""
    known = {field.name: field for field in everything}
    for name in requested:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
            raise ColumnError(f"there is no column {name[:80]!r}; {hint}")
    return StructType([known[name] for name in requested])


def check_types(requested: StructType, everything: StructType) -> None:
    """Raise ColumnError if a schema that the user gave does not fit."""
    for field, own in zip(requested, chosen(everything, requested.fieldNames())):
        if field.dataType != own.dataType:
            raise ColumnError(
                f"column {field.name} is {own.dataType.simpleString()}, not {field.dataType.simpleString()}; leave "
                "the type as it is and cast afterwards"
            )


class RowMaker:
    """Makes record batches of a given schema from raw records of one partitioner. Threads must not share it."""

    def __init__(
        self, columns: StructType, known: StreamSchemas, prefix: str, partitioner: str, *, times_as_long: bool
    ) -> None:
        self._schema = to_arrow_schema(columns, timezone="UTC")
        self._own = {prefix + name: name for name in OWN_COLUMNS}
        self._types = known.stream.recorded_types
        self._times_as_long = times_as_long
        self._partitioner = partitioner
        self._fields = [name for name in columns.fieldNames() if name not in self._own]
        requested = {self._own[name] for name in columns.fieldNames() if name in self._own}
        self.needs_payloads = bool(self._fields) or not requested <= _FROM_HEADS
        self._decoder = Decoder(known.schemas.values(), self._fields, None)

    def batches(self, raw: RawRecords, piece: Piece, bounds: Bounds) -> Iterator[pa.RecordBatch]:
        """Yield batches of the events that lie within bounds, in order."""
        if raw.records is None:
            assert raw.times is not None
            yield from self._batch(raw.offsets, raw.times, None, piece, bounds)
            return
        done = 0
        for kind, run in runs_of(raw.records):
            rows = slice(done, done + len(run))
            if kind == EVENT:
                decoded = self._decoder.decode(run)
                times = decoded.time[: decoded.n].copy() if raw.times is None else raw.times[rows]
                yield from self._batch(raw.offsets[rows], times, decoded, piece, bounds)
            done = rows.stop

    def _batch(
        self,
        offsets: NDArray[np.int64],
        times: NDArray[np.int64],
        decoded: Decoded | None,
        piece: Piece,
        bounds: Bounds,
    ) -> Iterator[pa.RecordBatch]:
        first, last = bounds.offsets(piece.partition)
        kept = (times >= bounds.first_ms) & (times <= bounds.last_ms) & (offsets >= first) & (offsets <= last)
        if decoded is not None and decoded.exceptions:
            status = decoded.status[: decoded.n]
            for row in np.flatnonzero(status == Status.UNKNOWN_SCHEMA).tolist():
                raise RecordError(
                    f"partition {piece.partition} offset {int(offsets[row])}: {decoded.describe(row)}; name the "
                    "definitions that it was written under"
                )
            kept &= status == Status.OK
        if not kept.any():
            return
        arrays = [self._array(name, offsets, times, decoded, piece) for name in self._schema.names]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        yield batch if kept.all() else batch.filter(pa.array(kept))

    def _array(
        self,
        name: str,
        offsets: NDArray[np.int64],
        times: NDArray[np.int64],
        decoded: Decoded | None,
        piece: Piece,
    ) -> pa.Array:
        n, own = len(offsets), self._own.get(name)
        if own == PARTITIONER:
            return pa.repeat(pa.scalar(self._partitioner, pa.string()), n)
        if own == PARTITION:
            return pa.repeat(pa.scalar(piece.partition, pa.int32()), n)
        if own == OFFSET:
            return pa.array(offsets)
        if own == EVENT_TIME:
            return self._time(pa.array(times), offsets, piece)
        assert decoded is not None
        if own == EVENT_ID:
            references = ((decoded.id_offset[:n] << REF_LENGTH_BITS) | decoded.id_length[:n]).view(np.uint64)
            no_nulls = np.zeros(n, np.uint8)
            return MetricColumn(name, STRING, references.reshape(-1, 1), no_nulls, decoded.buffer).arrow()
        place, type_ = self._fields.index(name), self._types[name]
        # The decoder uses its columns again, but Arrow keeps what it is given. So they are copied.
        words = decoded.words[place, :n].reshape(-1, 1).copy()
        array = MetricColumn(name, type_, words, decoded.nulls[place, :n], decoded.buffer).arrow()
        return self._time(array, offsets, piece) if type_.kind is Kind.TIMESTAMP else array

    def _time(self, array: pa.Array, offsets: NDArray[np.int64], piece: Piece) -> pa.Array:
        """Return times as milliseconds, or as Spark's microseconds."""
        if self._times_as_long:
            return array
        try:
            return pc.multiply_checked(array, _US_PER_MS).cast(pa.timestamp("us", tz="UTC"))
        except pa.ArrowInvalid:
            raise RecordError(
                f"partition {piece.partition}, offsets {int(offsets[0])} to {int(offsets[-1])}: a time is beyond "
                'Spark\'s timestamps (the year 294247); read them as milliseconds: option("times", "long")'
            ) from None
