"""`spark.read.format("railgun")`: logs and reservoirs as tables, by PySpark's Python data sources."""

from collections.abc import Iterable, Iterator, Sequence

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

from railgun.spark.tables.columns import all_columns, check_types, chosen
from railgun.spark.tables.filters import narrowed
from railgun.spark.tables.following import FollowingReader
from railgun.spark.tables.opening import Place, place_of
from railgun.spark.tables.options import ReadOptions, read_options
from railgun.spark.tables.reads import PiecePartition, Reads

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
        columns = _columns(options, place_of(options))
        return columns if options.columns is None else chosen(columns, options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_options(self.options)
        place = place_of(options)
        check_types(schema, _columns(options, place))
        return BatchReader(options, place, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = read_options(self.options)
        place = place_of(options)
        check_types(schema, _columns(options, place))
        return FollowingReader(options, place, schema)


class BatchReader(DataSourceReader):
    """Reads what is there now, once."""

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        self._reads, self._prefix = Reads(options, place, schema), options.prefix

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what speaks of times, offsets and partitions; Spark applies all of them to the rows again."""
        self._reads.bounds = narrowed(self._reads.bounds, filters, self._prefix)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return [PiecePartition(piece) for piece in self._reads.pieces(self._reads.bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, PiecePartition):
            yield from self._reads.batches(partition.piece)


def _columns(options: ReadOptions, place: Place) -> StructType:
    return all_columns(place.known.stream.types, options.prefix, times_as_long=options.times_as_long)
