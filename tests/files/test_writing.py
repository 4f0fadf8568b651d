"""Results are written exactly, and a file appears whole or not at all."""

import csv
import json
import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.files.errors import SuffixError, UnwritableFileError
from railgun.files.writing import ResultFile
from tests.counts import examples

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("total", pa.decimal128(38, 0)),
        ("mean", pa.float64()),
        ("fee", pa.decimal128(38, 8)),
        ("flag", pa.bool_()),
        ("last", pa.string()),
    ]
)
INTEGERS = frozenset({"total"})

_NAMES = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
_ROW = st.fixed_dictionaries(
    {
        "id": _NAMES,
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "total": st.none() | st.integers(-(2**120), 2**120).map(Decimal),
        "mean": st.none() | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
        "fee": st.none() | st.integers(-(10**20), 10**20).map(lambda x: Decimal(x).scaleb(-8)),
        "flag": st.none() | st.booleans(),
        "last": _NAMES,
    }
)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def write(path: Path, *tables: pa.Table) -> None:
    with ResultFile(path, SCHEMA, INTEGERS) as results:
        for table in tables:
            results.write(table)


@settings(max_examples=examples(20, 60))
@given(rows=st.lists(_ROW, max_size=6), cut=st.integers(0, 6))
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather", ".ndjson", ".jsonl", ".csv"])
def test_values_come_back_exactly(
    suffix: str, rows: list[dict[str, Any]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("results") / f"scores{suffix}"
    table = table_of(rows)
    write(path, table.slice(0, cut), table.slice(cut))
    if suffix == ".parquet":
        assert pq.read_table(path).equals(table)
    elif suffix in (".arrow", ".feather"):
        assert ipc.open_file(path).read_all().equals(table)
    elif suffix == ".csv":
        assert _read_csv(path) == [[_csv_text(row[name]) for name in SCHEMA.names] for row in rows]
    else:
        lines = path.read_bytes().decode().split("\n")[:-1]
        assert [json.loads(line, parse_float=str) for line in lines] == [_as_json(row) for row in rows]


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    """What a reader that keeps the digits of floats finds; those are compared as numbers."""
    fee, mean, total = row["fee"], row["mean"], row["total"]
    return row | {
        "fee": None if fee is None else f"{fee:.8f}",
        "mean": None if mean is None else _Digits(mean),
        "total": None if total is None else int(total),
    }


class _Digits:
    """Equal to any text that is this double, written as a number that is no integer."""

    def __init__(self, value: float) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and float(other) == self._value

    __hash__ = None  # type: ignore[assignment]


def _csv_text(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _Digits(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _read_csv(path: Path) -> list[list[str | None]]:
    """Rows of CSV, an unquoted empty value as None, by a reader written for this test alone."""
    text, rows, row, value, at = path.read_bytes().decode(), [], [], "", 0
    header, _, text = text.partition("\n")
    assert header == ",".join(SCHEMA.names)
    while at < len(text):
        quoted = text[at] == '"'
        value = ""
        if quoted:
            at += 1
            while True:
                if text[at] == '"' and text[at + 1 : at + 2] == '"':
                    value, at = value + '"', at + 2
                elif text[at] == '"':
                    at += 1
                    break
                else:
                    value, at = value + text[at], at + 1
        while text[at] not in ",\n":
            assert not quoted
            value, at = value + text[at], at + 1
        row.append(value if quoted or value else None)
        if text[at] == "\n":
            rows.append(row)
            row = []
        at += 1
    return rows


def test_other_readers_agree(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    write(path, table_of([dict.fromkeys(SCHEMA.names) | {"id": 'a "b",\nc', "mean": 3.0, "n": 7}]))
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [SCHEMA.names, ['a "b",\nc', "7", "", "3.0", "", "", ""]]


def test_doubles_look_like_doubles_in_text(tmp_path: Path) -> None:
    path = tmp_path / "scores.ndjson"
    write(path, table_of([dict.fromkeys(SCHEMA.names) | {"mean": value} for value in (3.0, 1e300, 0.1)]))
    means = [json.loads(line)["mean"] for line in path.read_text().splitlines()]
    assert means == [3.0, 1e300, 0.1]
    assert all(isinstance(mean, float) and math.isfinite(mean) for mean in means)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".ndjson", ".csv"])
def test_a_broken_run_leaves_what_was_there(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"scores{suffix}"
    path.write_bytes(b"before")

    def broken() -> None:
        with ResultFile(path, SCHEMA) as results:
            results.write(table_of([dict.fromkeys(SCHEMA.names)]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_but_the_result_is_left(tmp_path: Path) -> None:
    write(tmp_path / "scores.parquet", table_of([]))
    assert [each.name for each in tmp_path.iterdir()] == ["scores.parquet"]


def test_before_its_block_nothing_is_there(tmp_path: Path) -> None:
    """Whatever ends the program then leaves nothing behind."""
    results = ResultFile(tmp_path / "scores.csv", SCHEMA)
    assert list(tmp_path.iterdir()) == []
    with results:
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["scores.avro", "scores", "scores.xls"])
def test_a_suffix_that_is_not_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(SuffixError, match=r"results are written to files ending in \.parquet, \.csv"):
        ResultFile(tmp_path / name, SCHEMA)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".ndjson", ".csv"])
def test_a_place_that_cannot_be_written_to(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "gone" / f"scores{suffix}"
    with (
        pytest.raises(UnwritableFileError, match=r"it cannot be written: .*name another place") as caught,
        ResultFile(path, SCHEMA),
    ):
        pass
    assert str(caught.value).startswith(f"{path}: ")


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").mkdir()
    with (
        pytest.raises(UnwritableFileError, match="a folder has this name"),
        ResultFile(tmp_path / "scores.csv", SCHEMA),
    ):
        pass


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".ndjson", ".csv"])
def test_a_full_disk(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"scores{suffix}"
    (tmp_path / f".{path.name}.{os.getpid()}.partial").symlink_to("/dev/full")
    rows = table_of([dict.fromkeys(SCHEMA.names) | {"id": "x" * 1000}] * 5000)
    with pytest.raises(UnwritableFileError, match="No space left on device"):
        write(path, rows, rows)
    assert list(tmp_path.iterdir()) == []
