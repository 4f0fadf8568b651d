"""A data source of one partitioner's logs for validation: events in order, their input positions, control records."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from railgun.catalog.model import StreamDefinition
from railgun.language.types import STRING, Type
from railgun.plan.outputs import MetricColumn
from railgun.spark.errors import PlaceError, RecordError
from railgun.spark.tables.broker_place import BrokerPlace
from railgun.spark.tables.opening import Place, place_of
from railgun.spark.tables.options import read_options
from railgun.spark.tables.reads import PiecePartition
from railgun.spark.tables.record_log import Bounds, Piece, RawRecords
from railgun.spark.validation.admission import TASK
from railgun.spark.validation.redelivery import INPUT_COLUMNS
from railgun.spark.validation.reply_file import recorded_type
from railgun.spark.validation.run_source import EVENT_ID, EVENT_MS, NUMBER, field_column
from railgun.wire.arrow_records import array_of
from railgun.wire.columns import REF_LENGTH_BITS
from railgun.wire.control_records import ControlRecordError, decode_control
from railgun.wire.decode import Decoded, Decoder
from railgun.wire.msgpack import Status
from railgun.wire.records import EVENT, Records, runs_of

FORMAT = "railgun_task_log"
CONTROL = "control"
RECORD = "record"
OFFSET_BITS = 41
"""The bits of a record's number that hold its offset. Numbers are not negative, even for records before the log."""
FIRST_OFFSET = -(1 << (OFFSET_BITS - 1))
"""The least offset that a number can hold. Records before a log have offsets below 0."""


def number_of(partition: int, offset: int) -> int:
    """Return the number of a record. It is unique within a partitioner, and in the order of the log within a task."""
    return (partition << OFFSET_BITS) + offset - FIRST_OFFSET


def place_of_number(number: int) -> tuple[int, int]:
    """Return (partition, offset) of a number."""
    return number >> OFFSET_BITS, (number & ((1 << OFFSET_BITS) - 1)) + FIRST_OFFSET


class TaskLogSource(DataSource):
    """The data source, with the options of `railgun`. It has a row for each event and for each control record.

    The row of a control record has no other values than CONTROL. RECORD, the bytes of an event's record, is null unless
    the option `columns` names it.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(_schema(place_of(read_options(self.options)).known.stream))

    def reader(self, schema: StructType) -> DataSourceReader:
        return self.log_reader()

    def log_reader(self) -> "TaskLogReader":
        """Return the reader, which also works without Spark. Raises OptionError, PlaceError."""
        options = read_options(self.options)
        return TaskLogReader(place_of(options), options.piece_records, options.columns == (RECORD,))


class TaskLogReader(DataSourceReader):
    """Reads whole logs. Raises PlaceError if the beginning of one is gone, because its windows are then not known."""

    def __init__(self, place: Place, piece_records: int, has_records: bool) -> None:
        self._place, self._piece_records, self._has_records = place, piece_records, has_records

    def partitions(self) -> Sequence[InputPartition]:
        log = self._place.open()
        try:
            for partition, start in log.start_offsets().items():
                if start:
                    raise PlaceError(
                        f"partition {partition} of partitioner {self._place.partitioner}: its log begins at offset "
                        f"{start}; what came before is not known, so its replies cannot be computed again. "
                        + self._remedy
                    )
            bounds = Bounds()
            return [PiecePartition(piece) for piece in log.pieces(bounds, self._piece_records)]
        finally:
            log.close()

    @property
    def _remedy(self) -> str:
        if isinstance(self._place, BrokerPlace):
            return (
                "The whole log is needed: give streams that are to be validated a longer log_retention, from their "
                'beginning. What the tasks of this one still hold can be read with source = "reservoir" from their '
                "folders; a stream that is made anew with these events as its history (railgun backfill) can be "
                "validated"
            )
        return (
            "An embedded engine lets go of what its tasks no longer need, after some thousand events or once a "
            "deepening has taken over: validate such a stream before, or its events as files, by railgun run and "
            "railgun validate of its output"
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, PiecePartition):
            return
        known, piece = self._place.known, partition.piece
        decoder = Decoder(known.schemas.values(), list(known.stream.recorded_types), None)
        rows = _Rows(known.stream, decoder, self._has_records)
        log = self._place.open()
        try:
            bounds = Bounds()
            for raw in log.read(piece, bounds, payloads=True):
                yield from rows.batches(raw, piece)
        finally:
            log.close()


def _schema(stream: StreamDefinition) -> pa.Schema:
    fields = [(NUMBER, pa.int64()), (TASK, pa.int32()), (EVENT_ID, pa.string()), (EVENT_MS, pa.int64())]
    fields += [(name, pa.int64()) for name in INPUT_COLUMNS]
    fields += [(CONTROL, pa.string()), (RECORD, pa.binary())]
    return pa.schema(
        fields + [(field_column(name), recorded_type(type_)) for name, type_ in stream.recorded_types.items()]
    )


class _Rows:
    """Makes rows of records."""

    def __init__(self, stream: StreamDefinition, decoder: Decoder, has_records: bool) -> None:
        self._stream, self._decoder, self._schema = stream, decoder, _schema(stream)
        self._has_records = has_records

    def batches(self, raw: RawRecords, piece: Piece) -> Iterator[pa.RecordBatch]:
        assert raw.records is not None
        done = 0
        for kind, run in runs_of(raw.records):
            offsets = raw.offsets[done : done + len(run)]
            if kind == EVENT:
                yield self._events(self._decoder.decode(run), offsets, self._records(run), piece.partition)
            else:
                for record, offset in zip(run.to_list(), offsets.tolist()):
                    yield self._control(record, offset, piece.partition)
            done += len(run)

    def _records(self, records: Records) -> pa.Array:
        if not self._has_records:
            return pa.nulls(len(records), pa.binary())
        return array_of(records).cast(pa.binary())

    def _events(
        self, decoded: Decoded, offsets: NDArray[np.int64], records: pa.Array, partition: int
    ) -> pa.RecordBatch:
        n = decoded.n
        arrays = [
            pa.array(number_of(partition, 0) + offsets),
            pa.repeat(pa.scalar(partition, pa.int32()), n),
            self._ids(decoded),
            pa.array(decoded.time[:n].copy()),
            *(
                pa.array(each[:n].copy())
                for each in (decoded.source_partition, decoded.source_offset, decoded.source_committed)
            ),
            pa.nulls(n, pa.string()),
            records,
        ]
        for place, type_ in enumerate(self._stream.recorded_types.values()):
            arrays.append(self._field(decoded, place, type_))
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if not decoded.exceptions:
            return batch
        status = decoded.status[:n]
        for row in np.flatnonzero(status == Status.UNKNOWN_SCHEMA).tolist():
            raise RecordError(f"partition {partition} offset {int(offsets[row])}: {decoded.describe(row)}")
        # A task cannot read these records either, and skips them.
        return batch.filter(pa.array(status == Status.OK))

    def _ids(self, decoded: Decoded) -> pa.Array:
        n = decoded.n
        references = ((decoded.id_offset[:n] << REF_LENGTH_BITS) | decoded.id_length[:n]).view(np.uint64)
        none = np.zeros(n, np.uint8)
        return MetricColumn("", STRING, references.reshape(-1, 1), none, decoded.buffer).arrow()

    def _field(self, decoded: Decoded, place: int, type_: Type) -> pa.Array:
        # A copy, because the decoder reuses its columns, and Arrow keeps a reference.
        words = decoded.words[place, : decoded.n].reshape(-1, 1).copy()
        return MetricColumn("", type_, words, decoded.nulls[place, : decoded.n], decoded.buffer).arrow()

    def _control(self, record: bytes, offset: int, partition: int) -> pa.RecordBatch:
        try:
            body = json.dumps(decode_control(record))
        except ControlRecordError as error:
            raise RecordError(f"partition {partition} offset {offset}: {error}") from error
        known = {NUMBER: number_of(partition, offset), TASK: partition, CONTROL: body}
        return pa.RecordBatch.from_arrays(
            [pa.array([known.get(each.name)], each.type) for each in self._schema], schema=self._schema
        )
