"""Follows a log as it grows, in micro-batches of offsets: `spark.readStream.format("railgun")`."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from railgun.spark.errors import OptionError, PlaceError
from railgun.spark.tables.opening import Place
from railgun.spark.tables.options import ReadOptions
from railgun.spark.tables.ranges import within_ranges
from railgun.spark.tables.reads import PiecePartition, Reads
from railgun.spark.tables.record_log import RecordLog


class FollowingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a growing log. A micro-batch's offsets are those of the log, by partition; Spark's checkpoint holds them.

    Raises OptionError, PlaceError.
    """

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        if options.end_appended_ms is not None:
            raise OptionError(
                "option endAppended: it is for what is there already; use endOffset to stop early"
            )
        self._reads, self._options, self._place = Reads(options, place, schema), options, place
        self._log: RecordLog | None = None
        self._target: Mapping[int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # The connection does not travel to executors.
        return {**self.__dict__, "_log": None}

    def _opened(self) -> RecordLog:
        """Return the log, which stays open between micro-batches: Spark asks for its end many times a second."""
        if self._log is None:
            self._log = self._place.open()
        return self._log

    def initialOffset(self) -> dict[str, int]:
        log = self._opened()
        starts = log.start_offsets()
        bounds = within_ranges(self._options.bounds, self._options, log)
        return {
            str(partition): max(start, bounds.offsets(partition)[0])
            for partition, start in starts.items()
            if bounds.wants(partition)
        }

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.trigger_records
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._opened().end_offsets()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return where a micro-batch ends: at the ends of the logs, or at a limit shared in proportion to the rests."""
        ends = self._opened().end_offsets() if self._target is None else self._target
        there: dict[str, int] = {}
        for partition, first in start.items():
            end = min(ends.get(int(partition), first), self._options.bounds.offsets(int(partition))[1] + 1)
            there[partition] = max(0, end - first)
        if isinstance(limit, ReadMaxRows):
            there = _shared(there, limit.max_rows)
        return {partition: first + there[partition] for partition, first in start.items()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        log = self._opened()
        for partition, kept_from in log.start_offsets().items():
            if str(partition) in start and start[str(partition)] < kept_from:
                raise PlaceError(
                    f"partition {partition}: records from offset {start[str(partition)]} on were to be read next, and "
                    f"those before {kept_from} are gone; begin anew with another checkpoint folder, and give the "
                    'stream a longer log_retention. What its tasks still hold is in source = "reservoir"'
                )
        bounds = dataclasses.replace(
            self._options.bounds,
            first_offset={int(partition): offset for partition, offset in start.items()},
            last_offset={int(partition): offset - 1 for partition, offset in end.items()},
            partitions=frozenset(int(each) for each in start if end[each] > start[each]),
        )
        return [PiecePartition(piece) for piece in log.pieces(bounds, self._options.piece_records)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, PiecePartition):
            yield from self._reads.batches(partition.piece)

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing. Spark's checkpoint holds the offsets, so this source keeps nothing."""

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()


def _shared(there: Mapping[str, int], most: int) -> dict[str, int]:
    """Return how much to take of each partition: at most `most` in all, in proportion to what each has."""
    total = sum(there.values())
    if total <= most:
        return dict(there)
    shares = {partition: count * most // total for partition, count in there.items()}
    left = most - sum(shares.values())
    for partition, count in there.items():
        if left and shares[partition] < count:
            shares[partition] += 1
            left -= 1
    return shares
