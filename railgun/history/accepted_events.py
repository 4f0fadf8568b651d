"""Exports a snapshot of a task's accepted events, from which a deepening builds the task again with older history.

A deepening gives a live stream older events than its log has. The task continues meanwhile. See FORMAT.md.
"""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa

from railgun.history.durable_files import make_durable
from railgun.plan.program import TIME_MAX
from railgun.task.processor import TaskProcessor
from railgun.wire.arrow_records import array_of
from railgun.wire.records import Records
from reservoir.segments.frozen import Frozen
from reservoir.segments.source import ScannedRows

SEGMENTS, ROWS = "segments", "rows.arrow"
_TIME, _OFFSET, _RECORD = "time", "offset", "record"
_PIECE_BYTES = 1 << 20


class OwnEvents(msgspec.Struct, frozen=True):
    """What one task had accepted up to a position of its log. The files are in a folder of the task's own. See
    FORMAT.md.

    position: the export has all events before it that were accepted and not deleted.
    held_ms: the export has all events from this time on, in ms; None if no event was deleted.
    least_ms: the least time ever accepted, in ms; None before the first event.
    clock_ms: the task's clock at the position; None before the first event.
    floor_ms: F at the position.
    chunks: how many chunks are in the segments.
    inputs: what is remembered of input topics, as MessagePack.
    rows_crc32: the checksum of the file of rows.
    has_bounds: whether the task has a metric that may lack some of these events. It is True if an older version of
        the program wrote the file, which did not note this.
    """

    position: int
    held_ms: int | None
    least_ms: int | None
    clock_ms: int | None
    floor_ms: int
    chunks: int
    inputs: bytes = b""
    rows_crc32: int = 0
    has_bounds: bool = True


class SnapshotExport:
    """An export of accepted events that has begun.

    The constructor is fast, and runs while the task processes nothing. `finish` may take long, and runs while the
    task continues.

    folder: the folder to create.
    Raises OSError.
    """

    def __init__(self, task: TaskProcessor, folder: Path) -> None:
        self._folder = folder
        frozen = self._frozen = task.reservoir.frozen(task.checkpoints.durable_chunks)
        self._copies: list[tuple[Path, BinaryIO, int]] = []
        admission = task.admission
        has_any = admission.least_ms < TIME_MAX
        self._own = OwnEvents(
            position=task.position,
            held_ms=None if frozen.first_ms is None else frozen.first_ms + 1,
            least_ms=admission.least_ms if has_any else None,
            clock_ms=admission.clock_ms if has_any else None,
            floor_ms=admission.floor_ms,
            chunks=frozen.chunks,
            inputs=msgspec.msgpack.encode(task.inputs.to_json()),
            has_bounds=task.metrics.has_bounds,
        )
        (folder / SEGMENTS).mkdir(parents=True)
        try:
            self._take(frozen)
        except BaseException:
            self.give_up()
            raise

    @property
    def own(self) -> OwnEvents:
        """What the export will hold, without the checksum."""
        return self._own

    def finish(self) -> OwnEvents:
        """Write what was kept in memory, and make all files durable. Returns what the export holds."""
        try:
            for place, source, size_bytes in self._copies:
                with place.open("xb") as copy:
                    while size_bytes:
                        piece = source.read(min(size_bytes, _PIECE_BYTES))
                        if not piece:
                            raise OSError(f"{place}: the segment was cut short while it was copied")
                        copy.write(piece)
                        size_bytes -= len(piece)
                make_durable(place)
        finally:
            self.give_up()
        checksum = _write_rows(self._folder / ROWS, self._frozen.rows)
        for folder in (self._folder / SEGMENTS, self._folder):
            make_durable(folder)
        return msgspec.structs.replace(self._own, rows_crc32=checksum)

    def give_up(self) -> None:
        """Close the files that are open."""
        for _, source, _ in self._copies:
            source.close()
        self._copies.clear()

    def _take(self, frozen: Frozen) -> None:
        for segment in frozen.segments:
            place = self._folder / SEGMENTS / segment.path.name
            if segment.is_fixed and _linked(segment.path, place):
                continue
            # The file is held open, because the task may delete it before it is copied.
            self._copies.append((place, segment.path.open("rb"), segment.size_bytes))


def read_rows(folder: Path, own: OwnEvents) -> pa.Table:
    """Read the rows that no segment held: `time` (the event time at which they count, in ms), `offset` and `record`.

    Raises OSError, and ValueError if the file is not what was written.
    """
    body = (folder / ROWS).read_bytes()
    if zlib.crc32(body) != own.rows_crc32:
        raise ValueError(f"{folder / ROWS}: its checksum is another: it is damaged, or was changed")
    return pa.ipc.open_file(body).read_all()


def _linked(path: Path, place: Path) -> bool:
    """Create a hard link to a file. Returns False if the file system does not support it."""
    try:
        place.hardlink_to(path)
    except OSError:
        return False
    return True


def _write_rows(place: Path, rows: Sequence[ScannedRows]) -> int:
    """Write rows, and make them durable. Returns the CRC-32 of the file."""
    schema = pa.schema([(_TIME, pa.int64()), (_OFFSET, pa.int64()), (_RECORD, pa.large_binary())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for each in rows:
            writer.write_batch(_batch(each, schema))
    body = sink.getvalue()
    place.write_bytes(body)
    make_durable(place)
    return zlib.crc32(body)


def _batch(rows: ScannedRows, schema: pa.Schema) -> pa.RecordBatch:
    records = array_of(Records(rows.payload, rows.offsets))
    return pa.RecordBatch.from_arrays([pa.array(rows.time), pa.array(rows.seq), records], schema=schema)
