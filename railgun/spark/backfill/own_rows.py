"""Reads, in Spark's executors, the events that a live stream's tasks have accepted, to be sorted among older history.

An event before the cut is sorted by its time and id, like one of history: it may be in both. From the cut on, the
stream's own events come in the order of its log, with the times at which they counted.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from railgun.catalog.names import column_name
from railgun.history.accepted_events import SEGMENTS, read_rows
from railgun.history.build import HistoryPlan
from railgun.language.types import Kind
from railgun.spark.backfill.rows import ROWS, long_ids, text_ids
from railgun.spark.errors import PlaceError, RecordError
from railgun.spark.tables.record_log import Bounds, Piece, RawRecords
from railgun.spark.tables.reservoir_log import ReservoirRecordLog
from railgun.wire.arrow_records import array_of, records_of
from railgun.wire.columns import REF_LENGTH_BITS
from railgun.wire.decode import Decoder

PIECES_SQL = "task int, first long, end long"
_PIECE_ROWS = 262_144
_OPEN = -1
_KEY_BYTES = 16

Pieces = list[tuple[int, int, int]]


def own_pieces(plan: HistoryPlan, numbers: Mapping[tuple[str, int], int]) -> Pieces:
    """Return the pieces to read as (number of the task, first chunk, chunk after the last).

    Both chunks are -1 for the events that no chunk held. Raises PlaceError if chunks are missing.
    """
    found: Pieces = []
    for (partitioner, partition), number in numbers.items():
        log = _log(plan, partitioner, partition)
        pieces = log.pieces(Bounds(), _PIECE_ROWS)
        chunks = sum(log.chunks(piece) for piece in pieces)
        if chunks != plan.own[partitioner, partition].chunks:
            raise PlaceError(
                f"{_folder(plan, partitioner, partition)}: {chunks} chunks of the stream's own events are there, not "
                f"{plan.own[partitioner, partition].chunks}; give the deepening up and begin it again"
            )
        found.append((number, _OPEN, _OPEN))
        found += [(number, piece.first, piece.end) for piece in pieces]
    return found


def own_events(plan: HistoryPlan) -> list[int]:
    """Return how many events the stream itself has in each task, in the order of the plan. Raises PlaceError."""
    return [
        _log(plan, *task).rows(task[1]) + sum(len(raw.offsets) for raw in _raw(plan, *task, _OPEN, _OPEN))
        for task in plan.tasks
    ]


def reading_own(
    plan: HistoryPlan, numbers: Mapping[tuple[str, int], int]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow that takes pieces and gives ROWS."""
    tasks = {number: task for task, number in numbers.items()}

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _OwnRows(plan)
        for batch in batches:
            for number, first, end in zip(*(column.to_pylist() for column in batch.columns)):
                for raw in _raw(plan, *tasks[number], first, end):
                    yield from rows.of(number, raw)

    return read


def due_times(keys: pa.Array) -> NDArray[np.int64]:
    """Return the times in ms, int64[n], at which own events from the cut on counted. keys: of `_keys`."""
    _, places, data = keys.buffers()
    offsets = np.frombuffer(places, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    body = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].reshape(len(keys), _KEY_BYTES)
    words = np.ascontiguousarray(body[:, _KEY_BYTES // 2 :]).view(">u8").astype(np.uint64).reshape(-1)
    return (words ^ np.uint64(1 << 63)).view(np.int64)


class _OwnRows:
    def __init__(self, plan: HistoryPlan) -> None:
        stream = plan.stream
        assert stream.id is not None
        self._cut_ms = plan.cut_ms
        self._has_long_ids = stream.types[stream.id].kind is Kind.LONG
        schemas = [each.schema(version) for version, each in plan.schemas.items()]
        self._decoder = Decoder(schemas, [stream.id], None)

    def of(self, number: int, raw: RawRecords) -> Iterator[pa.RecordBatch]:
        """Yield ROWS of one task's records, in the order in which they come."""
        assert raw.records is not None
        assert raw.times is not None
        decoded = self._decoder.decode(raw.records)
        count = decoded.n
        if decoded.exceptions:
            raise RecordError(
                "an event that the stream has accepted cannot be read; railgun inspect says more"
            )
        counted_ms, offsets = raw.times, raw.offsets
        before = counted_ms < self._cut_ms
        times = np.where(before, decoded.time[:count], self._cut_ms)
        if self._has_long_ids:
            ids = long_ids(decoded.words[0, :count])
        else:
            lengths = decoded.id_length[:count]
            references = (decoded.id_offset[:count] << REF_LENGTH_BITS) | lengths
            ids = text_ids(references.view(np.uint64), decoded.buffer)
        keys = _keys(offsets, counted_ms)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(np.full(count, number, np.int32)),
                pa.array(times),
                pc.if_else(pa.array(before), ids, keys),
                array_of(raw.records),
            ],
            schema=ROWS,
        )


def _keys(offsets: NDArray[np.int64], counted_ms: NDArray[np.int64]) -> pa.Array:
    """Return (offset, time) of each event as bytes that sort in this order."""
    words = np.stack([offsets, counted_ms], axis=1).view(np.uint64) ^ np.uint64(1 << 63)
    body = pa.py_buffer(np.ascontiguousarray(words.astype(">u8")))
    ends = pa.py_buffer(np.arange(len(offsets) + 1, dtype=np.int32) * np.int32(_KEY_BYTES))
    return pa.Array.from_buffers(pa.binary(), len(offsets), [None, ends, body])


def _raw(plan: HistoryPlan, partitioner: str, partition: int, first: int, end: int) -> Iterator[RawRecords]:
    if first != _OPEN:
        yield from _log(plan, partitioner, partition).read(
            Piece(partition, first, end), Bounds(), payloads=True
        )
        return
    folder = _folder(plan, partitioner, partition)
    try:
        table = read_rows(folder, plan.own[partitioner, partition])
    except (OSError, ValueError) as error:
        raise PlaceError(f"{error}; give the deepening up and begin it again") from error
    for batch in table.to_batches():
        if batch.num_rows:
            times, offsets = (batch.column(name).to_numpy() for name in ("time", "offset"))
            records = records_of(batch.column("record"))
            yield RawRecords(offsets, times, records)


def _log(plan: HistoryPlan, partitioner: str, partition: int) -> ReservoirRecordLog:
    return ReservoirRecordLog(partitioner, {partition: _folder(plan, partitioner, partition) / SEGMENTS})


def _folder(plan: HistoryPlan, partitioner: str, partition: int) -> Path:
    return plan.own_folder / column_name(partitioner) / str(partition)
