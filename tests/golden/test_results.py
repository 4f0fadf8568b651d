"""Results as tables and files: names, types and nullability of columns, and how values are written."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from railgun.cli.main import main
from railgun.engine.engine import Engine
from tests.golden.promises import held, held_bytes, masked, rooted

START_MS = 1_700_000_000_000
DEFINITIONS = """
[streams.s]
time = "ts"
id = "id"
partitioners = ["k", "*"]
lateness = "2s"
[streams.s.fields]
id = "long"
ts = "timestamp"
k = "string"
n = "long"
x = "double"
ok = "boolean"
p = "decimal(12,2)"
[[metrics]]
sql = '''SELECT count(*) AS of_long, sum(x) AS of_double, sum(n) AS of_integer128, sum(p) AS of_wide,
  max(p) AS of_decimal, last(ok) AS of_boolean, first(k) AS of_string, max(ts) AS of_timestamp
  FROM s GROUP BY k OVER SLIDING 1 DAY'''
[[metrics]]
sql = "SELECT avg(p) AS everywhere FROM s OVER INFINITE"
"""


def events() -> Iterator[dict[str, Any]]:
    """One is late, one comes twice, one has no partitioner's field, one cannot be an event."""
    for number, at in enumerate((0, 10, 1, 10, 11, 12)):
        yield {
            "id": number if number != 3 else 1,
            "ts": START_MS + 1_000 * at,
            "k": 'a,"b' if number != 4 else None,
            "n": 2**62,
            "x": 0.1 if number != 5 else "no number",
            "ok": True,
            "p": "1.50",
        }


def described(schema: pa.Schema) -> list[str]:
    """As in "n: int64", with what is said of nulls and beside it."""
    assert not schema.metadata or set(schema.metadata) <= {b"ARROW:schema"}
    return [f"{each.name}: {each.type}{'' if each.nullable else ' not null'}" for each in schema]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "definitions.toml").write_text(DEFINITIONS)
    (tmp_path / "events.ndjson").write_text(
        "".join(json.dumps({**each, "more": 1}) + "\n" for each in events())
    )
    return tmp_path


def ran(folder: Path, out: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    words = [str(folder / each) for each in ("definitions.toml", "events.ndjson")]
    assert main(["run", *words, "--out", str(folder / out), "--skip-bad", "--json"]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    return summary


def test_files_of_results(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = ran(folder, "out.parquet", capsys)
    held("run_summary.json", rooted(masked(summary, "seconds", "events_per_s", "refusals"), folder))
    held("run_columns.json", described(pq.read_schema(folder / "out.parquet")))
    for name in ("out.csv", "out.ndjson"):
        ran(folder, name, capsys)
    held_bytes("run_results.csv", (folder / "out.csv").read_bytes())
    held_bytes("run_results.ndjson", (folder / "out.ndjson").read_bytes())


def test_results_in_python(tmp_path: Path) -> None:
    with Engine(tmp_path / "data", durability="os", now_ms=lambda: START_MS + 86_400_000) as engine:
        engine.apply(DEFINITIONS)
        sent = list(events())[:5]
        replies = [engine.score("s", each) for each in sent[:4]]
        table = engine.score_table("s", pa.Table.from_pylist(sent[4:]))
    held("python_replies.json", replies)
    held("python_columns.json", described(table.schema))
