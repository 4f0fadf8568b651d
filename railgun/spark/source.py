"""`spark.read.format("railgun")`: logs and reservoirs as tables, by PySpark's Python data sources."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from railgun.spark.columns import RowMaker, all_columns, check_types, chosen
from railgun.spark.filters import narrowed
from railgun.spark.opening import Place
from railgun.spark.options import ReadOptions, read_options
from railgun.spark.record_log import Bounds, Piece

FORMAT = "railgun"
_PUSH_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("railgun")` and `spark.readStream.format("railgun")` known to a session.

    Turns on the session's spark.sql.python.filterPushdown.enabled, without which filters do not reach a source.
    """
    spark.conf.set(_PUSH_FILTERS, "true")
    spark.dataSource.register(RailgunSource)


class RailgunSource(DataSource):
    """The events of one partitioner of one stream. docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        options = read_options(self.options)
        columns = _columns(options, Place(options))
        return columns if options.columns is None else chosen(columns, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        place = Place(options)
        check_types(schema, _columns(options, place))
        return BatchReader(options, place, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = read_options(self.options)
        place = Place(options)
        check_types(schema, _columns(options, place))
        return FollowingReader(options, place, schema)


class PiecePartition(InputPartition):
    """One piece, for one Spark partition."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece


class _Reads:
    """Reads pieces into batches; travels to executors, so it holds no open log."""

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        self._options, self._place, self._schema = options, place, schema
        self.bounds = options.bounds

    def batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Arrow batches of a piece's events, a few thousand rows each."""
        options, place = self._options, self._place
        maker = RowMaker(
            self._schema,
            place.known,
            options.prefix,
            place.partitioner,
            times_as_long=options.times_as_long,
        )
        log = place.open()
        try:
            for raw in log.read(piece, self.bounds, payloads=maker.needs_payloads):
                yield from maker.batches(raw, piece, self.bounds)
        finally:
            log.close()

    def pieces(self, bounds: Bounds) -> list[Piece]:
        """What there is to read within bounds."""
        log = self._place.open()
        try:
            return log.pieces(bounds, self._options.piece_records)
        finally:
            log.close()


class BatchReader(DataSourceReader):
    """Reads what is there now, once."""

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        self._reads, self._prefix = _Reads(options, place, schema), options.prefix

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what speaks of times, offsets and partitions; Spark applies all of them to the rows again."""
        self._reads.bounds = narrowed(self._reads.bounds, filters, self._prefix)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return [PiecePartition(piece) for piece in self._reads.pieces(self._reads.bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, PiecePartition):
            yield from self._reads.batches(partition.piece)


class FollowingReader(DataSourceStreamReader):
    """Reads a log as it grows. Offsets of a micro-batch are those of the log, by partition."""

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        self._reads, self._options, self._place = _Reads(options, place, schema), options, place

    def initialOffset(self) -> dict[str, int]:
        log = self._place.open()
        try:
            starts = log.start_offsets()
        finally:
            log.close()
        return {
            str(partition): max(start, self._options.bounds.offsets(partition)[0])
            for partition, start in starts.items()
            if self._options.bounds.wants(partition)
        }

    def latestOffset(self, start: dict[str, int], limit: Any = None) -> dict[str, int]:
        """The ends of the logs; how much a micro-batch takes is not limited by options."""
        log = self._place.open()
        try:
            ends = log.end_offsets()
        finally:
            log.close()
        bounds = self._options.bounds
        return {
            partition: max(first, min(ends.get(int(partition), first), bounds.offsets(int(partition))[1] + 1))
            for partition, first in start.items()
        }

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        bounds = dataclasses.replace(
            self._reads.bounds,
            first_offset={int(partition): offset for partition, offset in start.items()},
            last_offset={int(partition): offset - 1 for partition, offset in end.items()},
            partitions=frozenset(int(each) for each in start if end[each] > start[each]),
        )
        return [PiecePartition(piece) for piece in self._reads.pieces(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, PiecePartition):
            yield from self._reads.batches(partition.piece)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept by the source: Spark's checkpoint holds the offsets."""

    def stop(self) -> None:
        """Nothing is held open between micro-batches."""


def _columns(options: ReadOptions, place: Place) -> StructType:
    return all_columns(place.known.stream.types, options.prefix, times_as_long=options.times_as_long)
