"""Paths in files whose formats have columns: what is missing, what is in the way, what types say themselves."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.files.errors import ColumnError
from railgun.files.reading import EventFiles
from railgun.ingest.file_events import CheckedBlock, EventChecks
from tests.files.event_files import events_of


def _stream(**fields: Any) -> StreamDefinition:
    return stream_from_json({"name": "s", "fields": fields})


def _read(path: Path, stream: StreamDefinition) -> tuple[list[CheckedBlock], tuple[str, ...]]:
    schema = stream.incoming(1)
    with EventFiles([path], schema) as files:
        blocks = list(EventChecks(stream, schema, 1 << 60).blocks(files))
        return blocks, files.ignored.get(str(path), ())


TIME = dt.datetime(2026, 1, 31, 23, 59, 59, 500_000, tzinfo=dt.UTC)
TIME_MS = 1_769_903_999_500
AVRO = {
    "type": "record",
    "name": "Event",
    "namespace": "n",
    "fields": [
        {
            "name": "head",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Head",
                    "fields": [
                        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                        {"name": "raw", "type": "long"},
                        {
                            "name": "price",
                            "type": [
                                "null",
                                {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
                            ],
                        },
                    ],
                },
            ],
        },
        {"name": "all", "type": {"type": "array", "items": ["null", "Head"]}},
        {"name": "by", "type": {"type": "map", "values": "n.Head"}},
    ],
}


def test_logical_types_of_avro_wherever_they_are(tmp_path: Path) -> None:
    """Several fields may read one place, and a typed time ignores the unit."""
    time, price = {"type": "timestamp", "unit": "s"}, "decimal(9,2)"
    stream = _stream(
        at={**time, "from": "head.at"},
        again={"type": "timestamp", "from": "head.at"},
        raw={**time, "from": "head.raw"},
        price={"type": price, "from": "all[1].price"},
        by={**time, "from": "by['a b'].at"},
        none={"type": "string", "from": "head.absent.deep"},
        missing={"type": "long", "from": "absent.deep"},
    )
    head = {"at": TIME, "raw": 7, "price": Decimal("1.50")}
    path = tmp_path / "e.avro"
    rows = [
        {"head": head, "all": [None, head], "by": {"a b": head}},
        {"head": None, "all": [], "by": {}},
    ]
    with path.open("wb") as file:
        fastavro.writer(file, AVRO, rows)
    blocks, ignored = _read(path, stream)
    assert events_of(blocks) == [[TIME_MS, TIME_MS, 7_000, 150, TIME_MS, None, None], [None] * 7]
    assert ignored == ()
    with pytest.raises(ColumnError, match=r"column head\.at is timestamp-micros and cannot be long"):
        _read(path, _stream(x={"type": "long", "from": "head.at"}))


def test_types_of_arrow_wherever_they_are(tmp_path: Path) -> None:
    time = {"type": "timestamp", "unit": "us"}
    stream = _stream(
        at={**time, "from": "head.at"},
        raw={**time, "from": "head.raw"},
        real={**time, "from": "head.real"},
        exact={**time, "from": "head.exact"},
        text={**time, "from": "head.text"},
        big={**time, "from": "head.big"},
    )
    head = {
        "at": TIME, "raw": -1, "real": 2_500.75, "exact": Decimal("3999.999"), "text": "1970-01-01T00:00:01Z",
        "big": 2**63 + 5,
    }  # fmt: skip
    types = pa.struct(
        [
            ("at", pa.timestamp("ns", "UTC")),
            ("raw", pa.int32()),
            ("real", pa.float64()),
            ("exact", pa.decimal128(10, 3)),
            ("text", pa.string()),
            ("big", pa.uint64()),
        ]
    )
    table = pa.table({"head": pa.array([head, None, head], types), "other": [1, 2, 3]})
    path = tmp_path / "e.parquet"
    pq.write_table(table, path)
    blocks, ignored = _read(path, stream)
    row = [TIME_MS, -1, 2, 3, 1_000, (2**63 + 5) // 1_000]
    assert events_of(blocks) == [row, [None] * 6, row]
    assert ignored == ("other",)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("n.x", "column n is int64, not an object, and has no n.x"),
        ("s[0]", "not an array, and has no s[0]"),
        ("l.x", "not an object, and has no l.x"),
        ("s.a.b", "column s.a is int64, not an object, and has no s.a.b"),
        ("s", "cannot be long"),
    ],
)
def test_what_is_in_the_way_of_a_path_is_an_error_of_the_column(
    tmp_path: Path, path: str, words: str
) -> None:
    table = pa.table({"n": [1], "s": [{"a": 1}], "l": [[1]]})
    file = tmp_path / "e.parquet"
    pq.write_table(table, file)
    with pytest.raises(ColumnError) as caught:
        _read(file, _stream(x={"type": "long", "from": path}))
    assert words in str(caught.value)


def test_csv_has_paths_of_one_step(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(
        "total amount,at,plain,more\n1.50,1700000000.001,4,x\n,,,\n2,2026-01-31T23:59:59.5Z,5,y\n"
    )
    time = {"type": "timestamp", "unit": "s", "from": "at"}
    stream = _stream(
        amount={"type": "decimal(9,2)", "from": "['total amount']"},
        at=time,
        again=time,
        plain="long",
        missing={"type": "long", "from": "absent"},
        deep={"type": "long", "from": "absent.deep"},
        record={"type": "string", "from": "@key"},
    )
    blocks, ignored = _read(path, stream)
    assert events_of(blocks) == [
        [150, 1_700_000_000_001, 1_700_000_000_001, 4, None, None, None],
        [None] * 7,
        [200, TIME_MS, TIME_MS, 5, None, None, None],
    ]
    assert ignored == ("more",)
    with pytest.raises(
        ColumnError, match=r"column at is text and has no at\.x; a CSV file has nothing nested"
    ):
        _read(path, _stream(x={"type": "long", "from": "at.x"}))
    with pytest.raises(ColumnError, match="there is no column for the field gone"):
        _read(path, _stream(gone="long", at=time))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7_000),
        ("-0.0015", -2),
        ("1.7e9", 1_700_000_000_000),
        ("9223372036854776", None),
        ("7 s", None),
        ("NaN", None),
    ],
)
def test_times_in_csv(tmp_path: Path, text: str, expected: int | None) -> None:
    path = tmp_path / "e.csv"
    path.write_text(f"at\n{text}\n")
    ((block,), _) = _read(path, _stream(at={"type": "timestamp", "unit": "s"}))
    if expected is None:
        assert block.refused.first is not None
        assert block.refused.first.field == "at"
    else:
        assert events_of([block]) == [[expected]]
