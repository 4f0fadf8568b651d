"""Nested tables in Python, and nested files through `railgun run`."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import railgun
from railgun.cli.main import main
from tests.paths.test_http import DEFINITIONS

ROWS = [
    {"header": {"id": f"e{n}", "created-at": 1_700_000_000 + n}, "payments": [None, {"amount": f"{n}.50"}]}
    for n in range(1, 4)
] + [{"header": {"id": "e4", "created-at": 1_700_000_004}, "payments": None}]
EXPECTED = [("e1", "1.50"), ("e2", "2.50"), ("e3", "3.50"), ("e4", "3.50")]


def test_a_table(tmp_path: Path) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(DEFINITIONS)
        found = engine.score_table("s", pa.Table.from_pylist(ROWS))
        assert [(row["id"], str(row["amount"])) for row in found.to_pylist()] == EXPECTED
        assert [row["at"] for row in found.to_pylist()] == [
            1_700_000_000_000 + 1_000 * n for n in range(1, 5)
        ]
        assert engine.score("s", {**ROWS[0], "payments": [0, {"amount": "9"}]})["duplicate"] == ["*"]
        # What a path does not meet is null, be it a column; the id has to be there.
        more = [{"header": {"id": "e5", "created-at": 1_700_000_005}}]
        assert engine.score_table("s", pa.Table.from_pylist(more)).num_rows == 1
        with pytest.raises(railgun.EngineError, match=r"header\.id: the id of an event is needed"):
            engine.score_table("s", pa.table({"other": [1]}))
        with pytest.raises(
            railgun.EngineError, match=r"column header is int64, not an object, and has no header\.id"
        ):
            engine.score_table("s", pa.table({"header": [1]}))


@pytest.mark.parametrize("suffix", ["parquet", "ndjson"])
def test_a_run_over_files(tmp_path: Path, suffix: str) -> None:
    definitions, events, out = (tmp_path / name for name in ("d.toml", f"e.{suffix}", "o.ndjson"))
    definitions.write_text(DEFINITIONS)
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), events)
    else:
        events.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    assert main(["run", str(definitions), str(events), "--out", str(out)]) == 0
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], str(row["amount"])) for row in found] == EXPECTED
