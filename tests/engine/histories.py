"""History for tests: built without Spark, and what a task holds in words that can be compared."""

from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from railgun.catalog.names import column_name
from railgun.history.build import HistoryBuild, HistoryPlan
from railgun.history.manifest import HistoryManifest
from railgun.history.open_records import FIRST_OFFSET
from railgun.ingest.routing import Router
from railgun.ingest.stream_tasks import TaskBatch
from railgun.task import digest
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_columns
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles

Words = npt.NDArray[np.uint64]

_SPAN = 1 << 40
_SEQUENCE = 5  # of an event record
_SIGN = np.uint64(1 << 63)


def build_history(
    folder: Path, plan: HistoryPlan, table: pa.Table, settings: TaskSettings, batch_rows: int = 64
) -> list[HistoryManifest]:
    """All tasks of a plan, made of the rows of a table in this order."""
    stream = plan.stream
    assert stream.id is not None
    roles = Roles(stream.schema(1), stream.time, stream.id, stream.recorded_partitioners)
    builds = {}
    for partitioner, partition in plan.tasks:
        place = folder / column_name(partitioner) / str(partition)
        place.mkdir(parents=True)
        builds[partitioner, partition] = HistoryBuild(place, plan, partitioner, partition, settings)
    for batch in table.combine_chunks().to_batches(max_chunksize=batch_rows):
        admitted = TableValidator(roles).admit(batch)
        assert admitted.first_bad is None
        records = encode_columns(1, admitted.events)
        for shares in Router(stream).shares(admitted.events):
            for share in shares:
                builds[share.partitioner, share.partition].take(TaskBatch.of(share, records).records)
    return [each.finish() for each in builds.values()]


def chunks(task: TaskProcessor) -> list[pa.Table]:
    """Every sealed chunk as it is on disk, all its columns; log positions are told from the first one kept.

    Of payloads the number by which a reply would find back is left out: nobody waits for one.
    """
    reservoir = task.reservoir
    reservoir.sync(reservoir.chunks)
    reservoir._collect()
    found, first = [], None
    for number in range(reservoir._index.base, reservoir._index.next):
        place = reservoir._index[number].place
        table = _table(reservoir._reader.hot(place)[1])
        seq = table.column("1:seq")
        first = pc.min(seq) if first is None else first
        table = table.set_column(1, "1:seq", pc.subtract(seq, first))
        table = table.append_column("id", _table(reservoir._reader.section(place, 1)).column(0))
        payloads = _table(reservoir._reader.section(place, 2)).column(0).to_pylist()
        events = [msgspec.msgpack.decode(payload[1:]) for payload in payloads]
        said = [msgspec.msgpack.encode(event[:_SEQUENCE] + event[_SEQUENCE + 1 :]) for event in events]
        found.append(table.append_column("payload", pa.array(said)).combine_chunks())
    return found


def first_seq(task: TaskProcessor) -> int:
    """The first log position among all rows kept."""
    return min(int(rows.seq.min()) for rows in task.reservoir.scan())


def state(task: TaskProcessor, shift: int = 0) -> dict[tuple[str, int, int], list[bytes]]:
    """By grouping and entity, what every metric holds, pages followed. shift: added to the log positions of history."""
    found: dict[tuple[str, int, int], list[bytes]] = {}
    for group, parts in digest._parts(task).items():
        fields = ",".join(task.runtime.layouts[group].fields)
        for ids, rows in task.table.reader.rows(group):
            for (high, low), cells in zip(ids.tolist(), rows):
                said = [part.name + _part(task, part, cells, shift) for part in parts]
                if any(len(each) > len(part.name) for each, part in zip(said, parts)):
                    found[fields, high, low] = said
    return found


def _table(section: memoryview) -> pa.Table:
    return pa.ipc.open_stream(pa.BufferReader(section)).read_all()


def _part(task: TaskProcessor, part: digest._Part, row: Words, shift: int) -> bytes:
    content = digest._part(task, part, row)
    if not content:
        return b""
    words = np.frombuffer(content[len(part.name) + 1 :], np.uint64).copy()
    for flipped in (np.uint64(0), _SIGN):
        # Keys of trees have their sign turned. No count, time or sum here is near such a number.
        seqs = (words ^ flipped).view(np.int64)
        near = (seqs >= FIRST_OFFSET) & (seqs < FIRST_OFFSET + _SPAN)
        words[near] = (seqs[near] + shift).view(np.uint64) ^ flipped
    return words.tobytes()
