"""Stores the history records that no sealed chunk of the reservoir holds yet. See FORMAT.md.

A build of history writes them. Earlier releases, and a recovery from their checkpoints, read them from this file,
because the log does not have them.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from railgun.history.manifest import HISTORY, check_file, read_manifest
from railgun.task.errors import HistoryDamagedError
from railgun.task.recovery import ReadLog
from railgun.wire.arrow_records import array_of, records_of
from railgun.wire.records import Records

FIRST_OFFSET = -(1 << 48)
"""The offset of the first record of history. It is further below 0 than any history is long."""

TAIL = "tail.arrow"
_FIRST = b"first_offset"
_COLUMN = "record"


def log_reader_with_history(folder: Path, read_log: ReadLog) -> ReadLog:
    """Return a function that reads offsets from 0 on from the log, and negative offsets from the task's history."""
    tail: list[tuple[int, pa.Array]] = []

    def read(first: int, end: int) -> Iterable[tuple[int, Records]]:
        if first >= 0:
            return read_log(first, end)
        if not tail:
            tail.append(_read_tail(folder))
        return _part(folder, *tail[0], first, end)

    return read


def write_tail(folder: Path, parts: Iterable[tuple[int, Records]]) -> None:
    """Write consecutive records to the file, as pairs of (offset of the first one, records). This makes nothing
    durable yet.
    """
    (folder / HISTORY).mkdir(exist_ok=True)
    batches = []
    first_offset = 0
    for offset, records in parts:
        first_offset = first_offset or offset
        batches.append(pa.RecordBatch.from_arrays([array_of(records)], [_COLUMN]))
    schema = pa.schema([(_COLUMN, pa.large_binary())], {_FIRST: str(first_offset).encode()})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    place = str(folder / HISTORY / TAIL)
    with pa.OSFile(place, "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def check_tail(folder: Path) -> Path:
    """Return the path of the file, after checking that it is as it was written. Raises HistoryDamagedError and
    OSError.
    """
    place = folder / HISTORY / TAIL
    listed = {name: (size, checksum) for name, size, checksum in read_manifest(folder).files}
    found = listed.get(f"{HISTORY}/{TAIL}")
    if found is None:
        raise HistoryDamagedError(str(place), "its manifest does not name it; build the history again")
    check_file(place, *found)
    return place


def _read_tail(folder: Path) -> tuple[int, pa.Array]:
    """Return (offset of the first record, records). Raises HistoryDamagedError."""
    place = check_tail(folder)
    with pa.memory_map(str(place)) as file:
        table = pa.ipc.open_file(file).read_all()
    records = table.column(_COLUMN).combine_chunks()
    return int(table.schema.metadata[_FIRST]), records


def _part(
    folder: Path, first_offset: int, records: pa.Array, first: int, end: int
) -> Iterator[tuple[int, Records]]:
    if not first_offset <= first <= end <= first_offset + len(records):
        raise HistoryDamagedError(
            str(folder / HISTORY / TAIL),
            f"it has the offsets from {first_offset} to {first_offset + len(records)}, {first} to {end} are wanted; "
            "restore the folder from a copy",
        )
    yield first, records_of(records[first - first_offset : end - first_offset])
