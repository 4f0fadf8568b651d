"""Makes logs and reservoirs tables of Spark, as a data source in Python: `spark.read.format("railgun")`.

Spark's filters on times, offsets and partitions become bounds, by which chunks are left out.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from railgun.spark.tables.columns import EVENT_TIME, OFFSET, PARTITION, all_columns, check_types, chosen
from railgun.spark.tables.following import FollowingReader
from railgun.spark.tables.opening import Place, place_of
from railgun.spark.tables.options import ALL_PARTITIONS, ReadOptions, read_options
from railgun.spark.tables.reads import PiecePartition, Reads
from railgun.spark.tables.record_log import Bounds
from reservoir.layout import INT64_MAX

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def narrowed(bounds: Bounds, filters: Iterable[Filter], prefix: str) -> Bounds:
    """Return the bounds narrowed by all filters. Filters on other columns are ignored."""
    for each in filters:
        column = getattr(each, "attribute", ("",))
        if len(column) != 1 or not column[0].startswith(prefix):
            continue
        name = column[0][len(prefix) :]
        if name == EVENT_TIME:
            bounds = _times(bounds, each)
        elif name == OFFSET:
            bounds = _offsets(bounds, each)
        elif name == PARTITION:
            bounds = _partitions(bounds, each)
    return bounds


def _times(bounds: Bounds, each: Filter) -> Bounds:
    value = getattr(each, "value", None)
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        floor = since // _MS
        least, greatest = floor + (1 if since % _MS else 0), floor
    elif isinstance(value, int) and not isinstance(value, bool):
        least = greatest = value
    else:
        return bounds
    # Times in the log are whole milliseconds: one is at least a finer time iff it is at least the next whole
    # millisecond.
    first, last = bounds.first_ms, bounds.last_ms
    if isinstance(each, EqualTo | GreaterThanOrEqual | GreaterThan):
        first = max(first, least)
    if isinstance(each, EqualTo | LessThanOrEqual | LessThan):
        last = min(last, greatest)
    return dataclasses.replace(bounds, first_ms=first, last_ms=last)


def _offsets(bounds: Bounds, each: Filter) -> Bounds:
    value: Any = getattr(each, "value", None)
    if not isinstance(value, int) or isinstance(value, bool):
        return bounds
    first, last = dict(bounds.first_offset or {}), dict(bounds.last_offset or {})
    first.setdefault(ALL_PARTITIONS, 0)
    last.setdefault(ALL_PARTITIONS, INT64_MAX)
    if isinstance(each, EqualTo | GreaterThanOrEqual | GreaterThan):
        first = {partition: max(offset, value) for partition, offset in first.items()}
    if isinstance(each, EqualTo | LessThanOrEqual | LessThan):
        last = {partition: min(offset, value) for partition, offset in last.items()}
    return dataclasses.replace(bounds, first_offset=first, last_offset=last)


def _partitions(bounds: Bounds, each: Filter) -> Bounds:
    if isinstance(each, EqualTo) and isinstance(each.value, int):
        requested = frozenset({each.value})
    elif isinstance(each, In) and all(isinstance(value, int) for value in each.value):
        requested = frozenset(each.value)
    else:
        return bounds
    known = bounds.partitions
    return dataclasses.replace(bounds, partitions=requested if known is None else known & requested)


FORMAT = "railgun"
_PUSH_FILTERS = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make the formats of `spark.read.format("railgun")` and `spark.readStream.format("railgun")` known to a session.

    Turns on the session's spark.sql.python.filterPushdown.enabled. Without it a source is not told of filters.
    """
    spark.conf.set(_PUSH_FILTERS, "true")
    spark.dataSource.register(RailgunSource)


class RailgunSource(DataSource):
    """The events of one partitioner of one stream. docs/spark.md lists the options."""

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
    """Reads the present records, once."""

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        self._reads, self._prefix = Reads(options, place, schema), options.prefix

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Use the filters on times, offsets and partitions. All are returned: Spark applies them to the rows again."""
        self._reads.bounds = narrowed(self._reads.bounds, filters, self._prefix)
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        return [PiecePartition(piece) for piece in self._reads.pieces(self._reads.bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, PiecePartition):
            yield from self._reads.batches(partition.piece)


def _columns(options: ReadOptions, place: Place) -> StructType:
    return all_columns(place.known.stream.recorded_types, options.prefix, times_as_long=options.times_as_long)
