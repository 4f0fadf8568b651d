"""A deepening built without Spark: the history and the stream's own events, in the order that Spark gives them."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from railgun.catalog.names import column_name
from railgun.history.accepted_events import SEGMENTS, read_rows
from railgun.history.build import HistoryBuild, HistoryPlan
from railgun.ingest.routing import Router
from railgun.ingest.stream_tasks import TaskBatch
from railgun.spark.tables.record_log import Bounds
from railgun.spark.tables.reservoir_log import ReservoirRecordLog
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles

Key = tuple[int, int, bytes]


Row = tuple[Key, int, bytes]
"""What it is sorted by, when it counted (own events) or is (history), its record."""


def build_deepening(folder: Path, plan: HistoryPlan, table: pa.Table, settings: TaskSettings) -> None:
    """All tasks of a plan in a folder. table: the history's rows, those from the cut on among them maybe."""
    for (partitioner, partition), rows in rows_of_tasks(plan, table).items():
        place = folder / column_name(partitioner) / str(partition)
        place.mkdir(parents=True)
        build = HistoryBuild(place, plan, partitioner, partition, settings)
        for is_own, each in groupby(rows, key=lambda row: row[0][0] == plan.cut_ms):
            part = list(each)
            for first in range(0, len(part), 64):
                some = part[first : first + 64]
                records = Records.of([record for _, _, record in some])
                if is_own:
                    build.take_own(records, np.array([time_ms for _, time_ms, _ in some], np.int64))
                else:
                    build.take(records)
        build.finish()


def rows_of_tasks(plan: HistoryPlan, table: pa.Table) -> dict[tuple[str, int], list[Row]]:
    """What each task is built of, in order."""
    found = _history(plan, table)
    for task, rows in found.items():
        rows += _own(plan, task)
        rows.sort(key=lambda row: row[0])
    return found


def _history(plan: HistoryPlan, table: pa.Table) -> dict[tuple[str, int], list[Row]]:
    stream, version = plan.stream, max(plan.schemas)
    assert stream.id is not None
    roles = Roles(stream.schema(version), stream.time, stream.id, stream.recorded_partitioners)
    found: dict[tuple[str, int], list[Row]] = {task: [] for task in plan.tasks}
    for batch in table.combine_chunks().to_batches():
        admitted = TableValidator(roles).admit(batch)
        assert admitted.first_bad is None
        records = encode_columns(version, admitted.events)
        for shares in Router(stream).shares(admitted.events):
            for share in shares:
                task_batch = TaskBatch.of(share, records).records
                found[share.partitioner, share.partition] += [
                    row for row in map(_row, task_batch.to_list()) if row[1] < plan.cut_ms
                ]
    return found


def _own(plan: HistoryPlan, task: tuple[str, int]) -> Iterator[Row]:
    own, folder = plan.own[task], plan.own_folder / column_name(task[0]) / str(task[1])
    rows: list[tuple[int, int, bytes]] = []
    log = ReservoirRecordLog(task[0], {0: folder / SEGMENTS})
    for piece in log.pieces(Bounds(), 1_000):
        for raw in log.read(piece, Bounds(), payloads=True):
            assert raw.times is not None
            assert raw.records is not None
            texts = raw.records.to_list()
            rows += zip(raw.times.tolist(), raw.offsets.tolist(), texts, strict=True)
    rows += [tuple(row.values()) for row in read_rows(folder, own).to_pylist()]
    for time_ms, offset, record in rows:
        if time_ms < plan.cut_ms:
            yield _row(record)
        else:
            yield (plan.cut_ms, offset, b""), time_ms, record


def _row(record: bytes) -> Row:
    body = msgspec.msgpack.decode(record[1:])
    return (body[2], 0, str(body[1]).encode()), body[2], record
