"""Reads pieces of logs and reservoirs into Arrow batches, on the machines where Spark runs it."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from railgun.spark.tables.columns import RowMaker
from railgun.spark.tables.opening import Place
from railgun.spark.tables.options import ReadOptions, SourceKind
from railgun.spark.tables.ranges import within_ranges
from railgun.spark.tables.record_log import Bounds, Piece


class PiecePartition(InputPartition):
    """The piece that one Spark partition reads."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece


class Reads:
    """Reads pieces into batches.

    It travels to executors, so it holds no open log. `BatchReader` and `FollowingReader` use it.
    """

    def __init__(self, options: ReadOptions, place: Place, schema: StructType) -> None:
        self._options, self._place, self._schema = options, place, schema
        self.bounds = options.bounds

    def batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield Arrow batches of a piece's events, a few thousand rows each."""
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
        """Return the pieces within bounds. Raises OptionError for ranges that a log does not have."""
        log = self._place.open()
        try:
            if self._place.source is SourceKind.LOG:
                bounds = within_ranges(bounds, self._options, log)
            return log.pieces(bounds, self._options.piece_records)
        finally:
            log.close()
