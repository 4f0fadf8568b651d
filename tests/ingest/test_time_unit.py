"""Times in seconds are taken, and warned of once for each stream, whichever way the events come."""

from pathlib import Path

import pyarrow as pa
import pytest

import railgun
from frontend.exchange.streams import StreamIntake
from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import stream_from_json
from railgun.cli.status import as_text
from railgun.engine.offline import OfflineRun
from railgun.ingest.ids import IdMaker
from railgun.ingest.time_unit import TimeUnit
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import Roles
from railgun.wording import seconds_doubt

_STREAMS = """
[streams.s]
time = "ts"
[streams.s.fields]
ts = "timestamp"
[[metrics]]
sql = "SELECT count(*) AS n FROM s OVER INFINITE"
"""
_SECONDS = 1_700_000_000
_WARNING = (
    "stream s: an event is of 1970-01-20T16:13:20Z, as the numbers of its time are taken for ms since 1970; in s it "
    'would be of 2023: is its unit "s"?'
)
_OF_STATUS = (
    "the time 1700000000 of an event is 1970-01-20T16:13:20Z, as times are milliseconds since 1970; if it was meant as "
    "seconds, send 1700000000000"
)


def _stream(unit: str = "") -> StreamDefinition:
    said = {"type": "timestamp", "unit": unit} if unit else "timestamp"
    return stream_from_json({"name": "s", "time": "ts", "fields": {"ts": said}})


@pytest.mark.parametrize("time_ms", [-1, 0, 8_999_999, 999_999_999, 10_000_000_000, 1_700_000_000_000])
def test_times_that_are_no_seconds_of_this_century(time_ms: int) -> None:
    assert seconds_doubt(time_ms) is None


def test_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    unit = TimeUnit(_stream())
    for times in ([], [1_700_000_000_000, _SECONDS], [_SECONDS], [_SECONDS + 1]):
        unit.look(times)
    assert caplog.messages == [_WARNING]


@pytest.mark.parametrize(
    ("time_ms", "unit", "likely"),
    [
        (631_151_999_999, "ms", None),
        (631_152_000_000, "ms", ""),
        (4_133_980_799_999, "ms", ""),
        (4_133_980_800_000, "ms", None),
        (0, "ms", None),
        (1_700_000_000, "ms", "s"),
        (1_700_000_000_000_000, "ms", "us"),
        (1_700_000_000_000_000_000, "ms", "ns"),
        (1_700_000_000_000_000, "s", "ms"),
        (1_700_000_000, "us", "ms"),
        (1_700_000, "us", "s"),
        (1_700_000_000, "ns", "us"),
        (-1, "ns", None),
    ],
)
def test_the_unit_that_is_likely(
    caplog: pytest.LogCaptureFixture, time_ms: int, unit: str, likely: str | None
) -> None:
    """likely: None: there is none.  Empty: nothing is wrong."""
    TimeUnit(_stream(unit)).look([time_ms])
    said = "\n".join(caplog.messages)
    if likely == "":
        assert not said
    elif likely is None:
        assert said.endswith("is that right?")
    else:
        assert f"taken for {unit} since 1970; in {likely} it would be of 2023" in said
        assert said.endswith(f'is its unit "{likely}"?')


@pytest.mark.parametrize("count", [1, 100])
def test_an_engine_warns_and_its_status_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(_STREAMS)
        replies = engine.score_many("s", [{"ts": _SECONDS}] * count)
        assert [each["time"] for each in replies] == [_SECONDS] * count
        engine.add_field("s", "x", "long")
        engine.score("s", {"ts": _SECONDS})
        assert caplog.messages == [_WARNING]
        (task,) = engine.status().streams[0].tasks
        status = {"streams": [{"name": "s", "tasks": [{"partitioner": "*", **_shown(task)}]}]}
        assert f"  WARNING: {_OF_STATUS}" in as_text(status).splitlines()
        engine.score("s", {"ts": 1_700_000_000_000})
        (task,) = engine.status().streams[0].tasks
        status = {"streams": [{"name": "s", "tasks": [{"partitioner": "*", **_shown(task)}]}]}
        assert "WARNING" not in as_text(status)


def _shown(task: object) -> dict[str, object]:
    return {
        name: getattr(task, name) for name in ("partition", "position", "checkpoint", "log_start", "clock_ms")
    }


def test_a_table_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with railgun.Engine(tmp_path / "data") as engine:
        engine.apply(_STREAMS)
        engine.score_table("s", pa.table({"ts": pa.array([_SECONDS] * 3, pa.int64())}))
    assert caplog.messages == [_WARNING]


def test_a_front_end_warns_once_though_the_stream_changes(caplog: pytest.LogCaptureFixture) -> None:
    catalog = Catalog()
    for change in missing_changes(catalog, parse_definitions(_STREAMS))[0]:
        catalog.apply(change)
    intake = StreamIntake(catalog.streams["s"])
    for intake_of in (intake, StreamIntake(catalog.streams["s"], intake)):
        intake_of.take([b'{"ts": 1700000000}'], 1_800_000_000_000)
    assert caplog.messages == [_WARNING]


def test_a_run_over_files_warns(caplog: pytest.LogCaptureFixture) -> None:
    known = parse_definitions(_STREAMS)
    stream = known.streams["s"]
    batch = pa.record_batch({"ts": pa.array([_SECONDS], pa.int64())})
    validator = TableValidator(Roles(stream.schema(1), stream.time, stream.id, ()))
    run = OfflineRun(stream, known.metrics_of("s"))
    try:
        run.score(validator.admit(batch, ids=IdMaker().column(0, 1)).events)
    finally:
        run.close()
    assert caplog.messages == [_WARNING]
