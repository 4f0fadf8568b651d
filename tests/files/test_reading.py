"""Every format gives the same events, exactly, in order, in blocks of bounded size."""

from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from railgun.files import source
from railgun.files.errors import ColumnError
from railgun.files.ndjson_source import FastReader
from railgun.files.reading import EventFiles
from railgun.wire.schema import Field, FieldType, Schema, WireKind, decimal_type
from tests.counts import examples
from tests.files.event_files import (
    EVENTS,
    NAMES,
    SCHEMA,
    SUFFIXES,
    Event,
    arrow_table,
    events_of,
    read_back,
    wire_values,
    write_events,
)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_events(suffix: str, tmp_path: Path) -> None:
    path = write_events(tmp_path / f"events{suffix}", EVENTS)
    blocks = read_back([path])
    assert [block.refused.first for block in blocks] == [None] * len(blocks)
    assert events_of(blocks) == [wire_values(event) for event in EVENTS]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_follow_one_another_and_progress_ends_at_their_size(suffix: str, tmp_path: Path) -> None:
    first = write_events(tmp_path / f"a{suffix}", EVENTS[:2])
    second = write_events(tmp_path / "b.csv", EVENTS[2:])
    blocks = read_back([first, second])
    assert events_of(blocks) == [wire_values(event) for event in EVENTS]
    progress = [block.read_bytes for block in blocks]
    assert progress == sorted(progress)
    assert progress[-1] == first.stat().st_size + second.stat().st_size


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_without_events(suffix: str, tmp_path: Path) -> None:
    path = write_events(tmp_path / f"none{suffix}", [])
    assert events_of(read_back([path])) == []


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".avro", ".arrow"])
def test_a_missing_column_is_an_error_that_names_the_nearest(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"events{suffix}"
    write_events(path, EVENTS)
    _rename(path, "amount", "amuont")
    hint = "column amuont is no field: should it be amount?"
    message = f"{path}: there is no column for the field amount; {hint}"
    with pytest.raises(ColumnError) as caught:
        EventFiles([path], SCHEMA)
    assert str(caught.value) == message


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".ndjson", ".avro", ".arrow"])
def test_columns_that_are_no_fields_are_left_out_and_named(suffix: str, tmp_path: Path) -> None:
    path = write_events(tmp_path / f"events{suffix}", EVENTS)
    schema = SCHEMA.__class__(1, tuple(field for field in SCHEMA.fields if field.name not in ("fee", "from")))
    with EventFiles([path], schema) as files:
        assert all(block.batch.num_columns == 5 for block in files.blocks())
        assert files.ignored == {str(path): ("fee", "from")}


def test_rows_are_known_before_where_every_file_says_so(tmp_path: Path) -> None:
    parquet = write_events(tmp_path / "a.parquet", EVENTS)
    csv = write_events(tmp_path / "b.csv", EVENTS)
    with EventFiles([parquet, parquet], SCHEMA) as files:
        assert files.rows == 2 * len(EVENTS)
    with EventFiles([parquet, csv], SCHEMA) as files:
        assert files.rows is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_blocks_are_bounded(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "ROWS_MAX", 5)
    monkeypatch.setattr(source, "_ROWS_MIN", 5)
    events = [{**EVENTS[0], "id": str(n)} for n in range(23)]
    blocks = read_back([write_events(tmp_path / f"events{suffix}", events)])
    assert max(block.rows for block in blocks) <= 5
    assert [values[0] for values in events_of(blocks)] == [str(n) for n in range(23)]


def test_an_arrow_stream_is_read_too(tmp_path: Path) -> None:
    path, table = tmp_path / "events.arrow", arrow_table(EVENTS)
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    assert events_of(read_back([path])) == [wire_values(event) for event in EVENTS]


@pytest.mark.parametrize(("unit", "ticks"), [("s", 0.001), ("ms", 1), ("us", 1000), ("ns", 1_000_000)])
def test_arrow_timestamps_of_any_unit(unit: str, ticks: float, tmp_path: Path) -> None:
    path, table = tmp_path / "events.parquet", arrow_table(EVENTS[:1])
    times = pa.array([int(1_700_000_000_000 * ticks)], pa.int64()).cast(pa.timestamp(unit))
    with pq.ParquetWriter(path, table.schema.set(1, pa.field("ts", times.type))) as writer:
        writer.write_table(table.set_column(1, "ts", times))
    assert events_of(read_back([path]))[0][1] == 1_700_000_000_000


@pytest.mark.parametrize(
    ("logical", "value", "expected"),
    [
        ("timestamp-micros", 1_999, 1),
        ("timestamp-micros", -1, -1),
        ("local-timestamp-millis", 7, 7),
        (None, 7, 7),
    ],
)
def test_avro_times_are_floored(logical: str | None, value: int, expected: int, tmp_path: Path) -> None:
    path = tmp_path / "events.avro"
    of_time: dict[str, str] = {"type": "long"} | ({} if logical is None else {"logicalType": logical})
    fields: list[dict[str, object]] = [{"name": name, "type": ["null", "string"]} for name in NAMES]
    fields[1] = {"name": "ts", "type": of_time}
    with path.open("wb") as file:
        record = dict.fromkeys(NAMES) | {"id": "a", "ts": value}
        fastavro.writer(file, {"type": "record", "name": "P", "fields": fields}, [record])
    assert events_of(read_back([path]))[0][1] == expected


def _rename(path: Path, old: str, new: str) -> None:
    """Rename a column in place."""
    if path.suffix == ".csv":
        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode(), 1))
        return
    names = [new if name == old else name for name in NAMES]
    table = arrow_table(EVENTS).rename_columns(names)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".arrow":
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        fields = [{"name": name, "type": ["null", "long"]} for name in names]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "P", "fields": fields}, [])


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)
_EVENT = st.fixed_dictionaries(
    {
        "id": _TEXT,
        "ts": st.integers(0, 253_402_300_799_999),
        "count": st.none() | st.integers(-(2**63), 2**63 - 1),
        "amount": st.none() | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
        "fee": st.none() | st.decimals(-(10**13), 10**13, places=4),
        "online": st.none() | st.booleans(),
        "from": st.none() | _TEXT,
    }
)


@settings(max_examples=examples(20, 50))
@given(events=st.lists(_EVENT, min_size=1, max_size=8), suffix=st.sampled_from(SUFFIXES))
def test_what_is_written_is_read(
    events: list[Event], suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = write_events(tmp_path_factory.mktemp("files") / f"events{suffix}", events)
    blocks = read_back([path])
    assert [block.refused.first for block in blocks] == [None] * len(blocks)
    assert events_of(blocks) == [wire_values(event) for event in events]


def test_nulls_of_decimals_and_times_are_read_with_the_other_lines() -> None:
    schema = Schema(1, (Field("m", decimal_type(9, 2)), Field("t", FieldType(WireKind.TIMESTAMP, unit="s"))))
    batch = FastReader(schema).read([b'{"m":1.5,"t":2}', b'{"m":null,"t":null}', b"{}"])
    assert batch is not None
    assert [each["m"] for each in batch.to_pylist()] == ["1.5", None, None]
    assert [batch.column("t").is_null().to_pylist()] == [[False, True, True]]
