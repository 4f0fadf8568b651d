"""Segments that earlier releases wrote stay readable."""

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from reservoir.columns import ColumnKind, StoredColumn
from reservoir.files import DiskFiles
from reservoir.native.jit import array_at
from reservoir.reservoir import Reservoir
from reservoir.segments.describe import describe_folder
from reservoir.segments.format import VERSION
from reservoir.thread_executor import ThreadExecutor
from tests.reservoir.event_log import ALL_COLUMNS, Record, compute_columns, value
from tests.reservoir.make_golden import GOLDEN, SETTINGS

VERSIONS = sorted(folder.name for folder in GOLDEN.iterdir())


def values(stored: StoredColumn, rows: int) -> list[object]:
    """A column as Python values."""
    import numpy as np

    if stored.column.kind is ColumnKind.ENTITY:
        codes = array_at(stored.codes_at, rows, np.uint32)
        pairs = array_at(stored.pairs_at, 2 * stored.count, np.uint64).reshape(-1, 2)
        return [tuple(pairs[code].tolist()) for code in codes]
    words = array_at(stored.words_at, rows, np.uint64).tolist()
    nulls = array_at(stored.nulls_at, rows, np.uint8).tolist() if stored.nulls_at else [0] * rows
    if stored.column.kind is ColumnKind.STRING:
        heap = array_at(stored.heap_at, stored.heap_bytes, np.uint8).tobytes()
        words = [heap[word >> 24 : (word >> 24) + (word & 0xFFFFFF)] for word in words]
    return [None if null else word for word, null in zip(words, nulls)]


def test_the_present_version_has_its_golden_files() -> None:
    assert f"v{VERSION}" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_folder_reads_as_it_was_written(version: str, tmp_path: Path) -> None:
    folder = shutil.copytree(GOLDEN / version, tmp_path / "reservoir")
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert not describe_folder(folder, DiskFiles()).damaged
    reservoir = Reservoir.open(
        folder, DiskFiles(), compute_columns=compute_columns, executor=ThreadExecutor(), settings=SETTINGS
    )
    try:
        assert reservoir.recovered.torn == []
        reservoir.set_hot(ALL_COLUMNS)
        found = []
        for rows in reservoir.scan(range(len(ALL_COLUMNS))):
            columns = [values(column, len(rows.time)) for column in rows.columns]
            order = [column.column for column in rows.columns]
            for k, (begin, end) in enumerate(pairwise(rows.offsets.tolist())):
                record = expected[len(found)]
                raw = Record(record["time"], True, record["amount"], record["name"], record["card"])
                assert [held[k] for held in columns] == [value(column, raw) for column in order]
                payload = rows.payload[begin:end].tobytes().decode()
                found.append([int(rows.seq[k]), int(rows.time[k]), rows.ids[k].tolist(), payload])
        assert found == [[row["seq"], row["time"], row["id"], row["payload"]] for row in expected]
    finally:
        reservoir.close()
