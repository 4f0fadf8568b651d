"""Reads the history of a backfill again, for validation: its events with their tasks and the bytes of their records."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from railgun.catalog.model import StreamDefinition
from railgun.ingest.file_events import CheckedBlock, Refusals
from railgun.spark.backfill.build import SETTINGS
from railgun.spark.backfill.columns import fields_of
from railgun.spark.backfill.rows import read_any
from railgun.spark.backfill.source import REFUSED, HistorySource
from railgun.spark.errors import HistoryError
from railgun.spark.sessions import own_session
from railgun.spark.validation.reply_file import recorded_type
from railgun.spark.validation.run_source import (
    EVENT_ID,
    EVENT_MS,
    NUMBER,
    event_arrays,
    field_column,
    task_column,
    with_partitions,
)
from railgun.spark.validation.task_log_source import RECORD
from railgun.wire.arrow_records import array_of
from railgun.wire.arrow_values import read_array
from railgun.wire.encode import encode_columns
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles

_BAD = "bad"


@dataclass(frozen=True, slots=True)
class HistoryInput:
    """The input of a backfill, as its options named it.

    source: where the rows of the history are.
    columns: by field, the SQL expression that gives it. A field that is missing here has the column of its name.
    skips_bad: whether refused rows were left out.
    """

    source: HistorySource
    columns: Mapping[str, str] = field(default_factory=dict)
    skips_bad: bool = False

    def events(self, spark: SparkSession, stream: StreamDefinition, version: int) -> DataFrame:
        """Return a row for each row of the history. Refused rows have no time. Raises HistoryError, ColumnError.

        stream, version: the stream when it got the history, and the version of its schema.
        """
        # With the settings of the backfill, on which the meaning of the columns' SQL depends.
        session = own_session(spark, SETTINGS)
        frame = self.source.read(session, stream.schema(version), self.columns)
        fields = fields_of(frame, self.source, stream, self.columns)
        reading = _reading(stream, version, is_text=self.source.is_text)
        return with_partitions(fields.mapInArrow(reading, from_arrow_schema(_schema(stream))), stream)

    def check(self, events: DataFrame) -> int:
        """Return the number of refused rows. Raises HistoryError if there must be none."""
        refused = events.where(f"{EVENT_MS} IS NULL")
        count = refused.count()
        if count and not self.skips_bad:
            why = refused.select(_BAD).limit(1).collect()[0][0]
            raise HistoryError(
                f"{', '.join(self.source.places)}: {count:,} rows are refused ({why}), and a backfill installs nothing "
                "then; name the same files, --column and --option, and --skip-bad if it was told to go on without them"
            )
        return count


def _schema(stream: StreamDefinition) -> pa.Schema:
    made = [(EVENT_ID, pa.string()), (EVENT_MS, pa.int64())]
    made += [(task_column(place), pa.int32()) for place in range(len(stream.partitioners))]
    made += [(field_column(name), recorded_type(type_)) for name, type_ in stream.recorded_types.items()]
    return pa.schema([(NUMBER, pa.int64()), *made, (RECORD, pa.binary()), (_BAD, pa.string())])


def _reading(
    stream: StreamDefinition, version: int, *, is_text: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow, from rows with the stream's fields to rows of `_schema`."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        roles = Roles(stream.schema(version), stream.time, stream.id, stream.recorded_partitioners)
        validator = TableValidator(roles, read_any if is_text else read_array)
        shape = _schema(stream)
        for batch in batches:
            unreadable: list[str | None] = [None] * batch.num_rows
            if REFUSED in batch.schema.names:
                unreadable = batch.column(REFUSED).to_pylist()
                batch = batch.select([name for name in batch.schema.names if name != REFUSED])
            found = _columns(validator, stream, version, batch, unreadable)
            yield pa.RecordBatch.from_arrays([found[name] for name in shape.names], schema=shape)

    return read


def _columns(
    validator: TableValidator,
    stream: StreamDefinition,
    version: int,
    batch: pa.RecordBatch,
    why: list[str | None],
) -> dict[str, pa.Array]:
    """Return the columns of `_schema` for a batch. why: for each row that cannot be read, the reason; is added to."""
    admitted = validator.admit(batch)
    bad = np.array([each is not None for each in why], np.bool_)
    for complaint in admitted.complaints:
        for row in np.flatnonzero((complaint.rows != 0) & ~bad).tolist():
            bad[row], why[row] = True, f"{complaint.first.field}: {complaint.what}"
    events = admitted.events.take(np.flatnonzero(~bad)) if bad.any() else admitted.events
    records = array_of(encode_columns(version, events)).cast(pa.binary())
    if bad.any():
        places: NDArray[np.int64] = np.zeros(len(bad), np.int64)
        places[~bad] = np.arange(len(events))
        records = records.take(pa.array(places, mask=bad))
    block = CheckedBlock(batch.num_rows, events, bad, (), Refusals(), 0)
    reasons = pa.array([None if each is None else each.replace("\0", ": ") for each in why], pa.string())
    return event_arrays(block, stream, 0) | {RECORD: records, _BAD: reasons}
