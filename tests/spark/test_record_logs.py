"""What the data source reads, without Spark's engine: pieces, bounds, columns, and what is wrong said in time."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StringType, StructType

from railgun.engine.engine import Engine
from railgun.spark import environment
from railgun.spark.errors import ColumnError, OptionError, PlaceError, RecordError, SetupError, SparkSideError
from railgun.spark.tables.following import FollowingReader
from railgun.spark.tables.opening import place_of
from railgun.spark.tables.options import read_options
from railgun.spark.tables.reads import PiecePartition
from railgun.spark.tables.record_log import Bounds
from railgun.spark.tables.source import BatchReader, RailgunSource, narrowed
from tests.spark.folders import DEFINITIONS, START_MS, STEP_MS, filled, payments

N = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("spark") / "data"
    engine = filled(folder, N)
    try:
        yield folder
    finally:
        engine.close()


def reader(path: Path, **options: str) -> BatchReader:
    source = RailgunSource({"path": str(path), **options})
    made = source.reader(source.schema())
    assert isinstance(made, BatchReader)
    return made


def table(path: Path, *filters: Any, **options: str) -> pa.Table:
    made = reader(path, **options)
    assert list(made.pushFilters(list(filters))) == list(filters)
    batches = [batch for partition in made.partitions() for batch in made.read(partition)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


@pytest.mark.parametrize("source", ["log", "reservoir"])
@pytest.mark.parametrize("piece", ["1", "50", "100000"])
def test_every_event_is_given_once_in_order(data: Path, source: str, piece: str) -> None:
    got = table(data, source=source, partitioner="card", times="long", recordsPerPartition=piece)
    by_id = {row["id"]: row for row in got.to_pylist()}
    wanted = payments(0, N).to_pylist()
    assert len(by_id) == len(got)
    if source == "log":
        assert len(got) == N
    else:
        # What is not sealed yet is in the log alone.
        assert N - 2 * 32 - 20 < len(got) < N
    for row in wanted:
        if row["id"] in by_id:
            found = by_id[row["id"]]
            assert {name: found[name] for name in ("ts", "card", "shop", "amount", "online")} == {
                name: row[name] for name in ("ts", "card", "shop", "amount", "online")
            }
            assert str(found["price"]) == row["price"]
            assert (found["partitioner"], found["event_id"]) == ("card", row["id"])
            assert found["event_time"] == row["ts"]
    for partition in set(got["partition"].to_pylist()):
        offsets = [row["offset"] for row in got.to_pylist() if row["partition"] == partition]
        assert offsets == sorted(offsets)


def test_an_event_that_is_not_sent_to_a_partitioner_is_not_in_its_log(data: Path) -> None:
    got = table(data, partitioner="shop", columns="id,shop")
    assert len(got) == len([row for row in range(N) if row % 7])
    assert got["shop"].null_count == 0


def test_times_are_sparks_unless_asked_otherwise(data: Path) -> None:
    got = table(data, partitioner="card", columns="ts,event_time", endOffset='{"0": 10, "1": 0}')
    assert got.schema.field("ts").type == pa.timestamp("us", tz="UTC")
    assert got["ts"][0].as_py() == datetime.fromtimestamp(START_MS / 1000, UTC)


def test_bounds_by_offset_time_and_partition(data: Path) -> None:
    got = table(
        data, partitioner="card", startOffset="5", endOffset="9", partitions="1", columns="partition,offset"
    )
    assert {(row["partition"], row["offset"]) for row in got.to_pylist()} == {(1, n) for n in range(5, 9)}
    between = {"startTime": str(START_MS + 20 * STEP_MS), "endTime": "2023-11-14T22:14:10.000Z"}
    got = table(data, partitioner="card", source="reservoir", columns="id", **between)
    assert sorted(int(name[1:]) for name in got["id"].to_pylist()) == list(range(20, 50))


def test_filters_leave_chunks_out(data: Path) -> None:
    everything = reader(data, partitioner="card", source="reservoir", recordsPerPartition="1").partitions()
    time = datetime.fromtimestamp(START_MS / 1000 + 100, UTC)
    filters = (GreaterThanOrEqual(("event_time",), time), LessThan(("event_time",), time.replace(second=50)))
    few = reader(data, partitioner="card", source="reservoir", recordsPerPartition="1")
    few.pushFilters(list(filters))
    assert 0 < len(few.partitions()) < len(everything) // 2
    # Bounds may let a few more through: Spark applies the filters again.
    got = table(data, *filters, partitioner="card", source="reservoir", columns="id")
    assert sorted(int(name[1:]) for name in got["id"].to_pylist()) == list(range(100, 151))


def test_filters_become_bounds() -> None:
    half = datetime(1970, 1, 1, 0, 0, 1, 500, UTC)
    assert narrowed(Bounds(), [GreaterThan(("event_time",), half)], "").first_ms == 1_001
    assert narrowed(Bounds(), [LessThan(("event_time",), half)], "").last_ms == 1_000
    assert narrowed(Bounds(), [EqualTo(("event_time",), half)], "").first_ms == 1_001
    assert narrowed(Bounds(), [EqualTo(("x_event_time",), 7)], "x_") == Bounds(first_ms=7, last_ms=7)
    offsets = narrowed(
        Bounds(first_offset={0: 5}), [GreaterThan(("offset",), 8), LessThan(("offset",), 20)], ""
    )
    assert (offsets.offsets(0), offsets.offsets(3)) == ((8, 20), (8, 20))
    only = narrowed(Bounds(), [In(("partition",), (0, 2)), EqualTo(("partition",), 2)], "")
    assert only.partitions == frozenset({2})
    assert narrowed(Bounds(), [EqualTo(("card",), "c1")], "") == Bounds()


def test_a_log_is_followed(tmp_path: Path) -> None:
    engine = filled(tmp_path / "data", 40)
    try:
        source = RailgunSource({"path": str(tmp_path / "data"), "partitioner": "card", "columns": "id"})
        following = source.streamReader(source.schema())
        assert isinstance(following, FollowingReader)
        start = following.initialOffset()
        middle = following.latestOffset(start, ReadAllAvailable())
        assert len(_ids(following, start, middle)) == 40
        assert following.latestOffset(middle, ReadAllAvailable()) == middle
        engine.score_table("payments", payments(40, 25))
        end = following.latestOffset(middle, ReadAllAvailable())
        assert sorted(_ids(following, middle, end)) == sorted(f"p{row}" for row in range(40, 65))
    finally:
        engine.close()


def _ids(following: FollowingReader, start: dict[str, int], end: dict[str, int]) -> list[str]:
    pieces = following.partitions(start, end)
    return [row["id"] for piece in pieces for batch in following.read(piece) for row in batch.to_pylist()]


def test_a_closed_folder_and_a_task_by_itself(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    filled(folder, 100).close()
    task = folder / "streams" / "payments" / "card" / "0"
    whole = table(folder, partitioner="card", source="reservoir", columns="id", partitions="0")
    assert table(task, columns="id").equals(whole)
    moved = tmp_path / "moved" / "card" / "0"
    moved.parent.mkdir(parents=True)
    task.rename(moved)
    (tmp_path / "d.toml").write_text(DEFINITIONS)
    with pytest.raises(OptionError, match="definitions"):
        table(moved, columns="id")
    assert table(moved, columns="id", definitions=str(tmp_path / "d.toml")).equals(whole)


def test_fields_of_a_newer_schema_are_null_before_it(tmp_path: Path) -> None:
    engine = filled(tmp_path / "data", 10)
    try:
        engine.add_field("payments", "note", "string")
        rows = payments(10, 5).append_column("note", pa.array(["n"] * 5))
        engine.score_table("payments", rows)
        got = table(tmp_path / "data", partitioner="card", columns="id,note")
        notes = {row["id"]: row["note"] for row in got.to_pylist()}
        assert notes == {f"p{row}": "n" if row >= 10 else None for row in range(15)}
        (tmp_path / "old.toml").write_text(DEFINITIONS)
        with pytest.raises(RecordError, match=r"partition \d offset \d+: UNKNOWN_SCHEMA"):
            table(tmp_path / "data", partitioner="card", definitions=str(tmp_path / "old.toml"))
    finally:
        engine.close()


def test_a_time_beyond_sparks(tmp_path: Path) -> None:
    with Engine(tmp_path / "data", now_ms=lambda: 1 << 62) as engine:
        engine.apply(DEFINITIONS)
        engine.score("payments", {"id": "late", "ts": (1 << 62) - 1, "card": "c"})
        with pytest.raises(RecordError, match='option\\("times", "long"\\)'):
            table(tmp_path / "data", partitioner="card")
        got = table(tmp_path / "data", partitioner="card", times="long")
        assert got["event_time"].to_pylist() == [(1 << 62) - 1]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({}, OptionError, "has the partitioners card, shop"),
        ({"partitioner": "crad"}, OptionError, "did you mean card?"),
        ({"partitioner": "*"}, OptionError, "no partitioner '*'; there are card, shop"),
        ({"partitioner": "card", "stream": "payment"}, OptionError, "did you mean payments?"),
        ({"partitioner": "card", "colums": "id"}, OptionError, "did you mean columns?"),
        ({"partitioner": "card", "columns": "id,amont"}, ColumnError, "did you mean amount?"),
        ({"partitioner": "card", "source": "kafka"}, OptionError, "log or reservoir"),
        ({"partitioner": "card", "startOffset": "x"}, OptionError, "no whole number"),
        ({"partitioner": "card", "startOffset": "{"}, OptionError, "no JSON object"),
        ({"partitioner": "card", "endTime": "yesterday"}, OptionError, "is no time"),
        ({"partitioner": "card", "definitions": "gone.toml"}, OptionError, "gone.toml"),
    ],
)
def test_wrong_options_are_said(
    data: Path, options: dict[str, str], error: type[SparkSideError], said: str
) -> None:
    with pytest.raises(error, match=re.escape(said)):
        RailgunSource({"path": str(data), **options}).schema()


def test_wrong_places_are_said(data: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no folder is named"):
        RailgunSource({}).schema()
    with pytest.raises(PlaceError, match="no data folder"):
        RailgunSource({"path": str(tmp_path)}).schema()
    (tmp_path / "VERSION").write_text("1\n")
    with pytest.raises(PlaceError, match="no embedded log"):
        RailgunSource({"path": str(tmp_path)}).schema()
    source = RailgunSource({"path": str(data), "partitioner": "card", "source": "reservoir"})
    following = source.streamReader(source.schema())
    assert isinstance(following, FollowingReader)
    with pytest.raises(OptionError, match="source=log"):
        following.initialOffset()


def test_names_that_meet_and_types_that_differ(data: Path, tmp_path: Path) -> None:
    clashing = tmp_path / "d.toml"
    clashing.write_text(DEFINITIONS.replace('online = "boolean"', 'offset = "boolean"'))
    options = {"path": str(data), "partitioner": "card", "definitions": str(clashing)}
    with pytest.raises(ColumnError, match="prefix"):
        RailgunSource(options).schema()
    assert "log_offset" in RailgunSource({**options, "prefix": "log_"}).schema().fieldNames()
    source = RailgunSource({"path": str(data), "partitioner": "card"})
    with pytest.raises(ColumnError, match="card is string, not bigint"):
        source.reader(StructType().add("card", LongType()))
    source.reader(StructType().add("card", StringType()))


def test_damage_is_said(tmp_path: Path) -> None:
    filled(tmp_path / "data", 200).close()
    segment = sorted((tmp_path / "data/streams/payments/card/0/reservoir").glob("*.seg"))[0]
    whole = segment.read_bytes()
    segment.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    with pytest.raises(PlaceError, match=r"\.seg"):
        table(tmp_path / "data", partitioner="card", source="reservoir")


def test_java_and_spark_are_looked_at_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"PySpark 3\.5\.1 is too old"):
        environment.check_spark("3.5.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="JAVA_HOME"):
        environment.find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="no Java"):
        environment.find_java()
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(SetupError, match="Java 11; Spark runs on Java 17"):
        environment.check_java(str(old))
    old.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(SetupError, match="does not run"):
        environment.check_java(str(old))


def test_a_read_travels(data: Path) -> None:
    """Readers and pieces are pickled on their way to executors."""
    import pickle

    made = pickle.loads(pickle.dumps(reader(data, partitioner="card", columns="id")))
    partitions = pickle.loads(pickle.dumps(made.partitions()))
    assert all(isinstance(each, PiecePartition) for each in partitions)
    assert sum(batch.num_rows for each in partitions for batch in made.read(each)) == N
    assert place_of(read_options({"path": str(data), "partitioner": "card"})).partitioner == "card"
