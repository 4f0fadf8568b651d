"""Arrow files in data folders: the columns of chunks, of a history's open rows, and of rows put aside."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from railgun.history.accepted_events import ROWS, SnapshotExport
from railgun.history.manifest import HISTORY
from railgun.history.open_records import FIRST_OFFSET, TAIL, write_tail
from railgun.wire.records import Records
from reservoir.segments.chunk import ChunkRows, encode_chunk
from reservoir.segments.index import Span
from tests.golden.promises import held
from tests.history.test_accepted_events import SETTINGS, log_with_inputs


def described(schema: pa.Schema) -> dict[str, object]:
    """Columns as in "time: int64", and what is said beside them."""
    beside = {} if schema.metadata is None else schema.metadata
    return {
        "columns": [f"{each.name}: {each.type}{'' if each.nullable else ' not null'}" for each in schema],
        "metadata": {name.decode(): value.decode() for name, value in beside.items()},
    }


def test_sections_of_a_chunk() -> None:
    one = np.array([1], np.int64)
    rows = ChunkRows(
        one, one, np.zeros((1, 2), np.uint64), np.zeros(3, np.uint8), np.array([0, 3], np.int64), ()
    )
    (_, *sections), _ = encode_chunk(0, Span(*[1] * len(Span._fields)), rows)
    held("chunk_columns.json", [described(pa.ipc.open_stream(each).schema) for each in sections])


def test_open_rows_of_a_history(tmp_path: Path) -> None:
    records = Records(np.zeros(5, np.uint8), np.array([0, 2, 5], np.int64))
    write_tail(tmp_path, [(FIRST_OFFSET + 7, records)])
    held("history_tail.json", described(pa.ipc.open_file((tmp_path / HISTORY / TAIL).read_bytes()).schema))


def test_rows_that_are_put_aside(tmp_path: Path) -> None:
    log = log_with_inputs()
    task = log.open(tmp_path / "task", SETTINGS)
    try:
        log.feed(task)
        SnapshotExport(task, tmp_path / "own").finish()
    finally:
        task.close()
    held("own_rows.json", described(pa.ipc.open_file((tmp_path / "own" / ROWS).read_bytes()).schema))
