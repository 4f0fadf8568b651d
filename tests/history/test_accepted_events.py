"""What a task has accepted, put aside: whole while the task goes on, and built again with what input topics told."""

from pathlib import Path

import pyarrow as pa
import pytest

from railgun.catalog.changes import AddMetric, BeginDeepening, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.history.accepted_events import ROWS, OwnEvents, SnapshotExport, read_rows
from railgun.history.build import HistoryPlan
from railgun.plan.program import TIME_MAX
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from tests.engine.deepening.deepened import build_deepening
from tests.task.small_log import IDENTITY, SmallLog

DEFINITIONS = """
[streams.s]
id = "id"
time = "ts"
partitioners = ["k"]
lateness = "2s"
[streams.s.fields]
id = "string"
ts = "timestamp"
k = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY k OVER SLIDING 1 DAY"
"""
SETTINGS = TaskSettings(chunk_events=16, segment_bytes=1 << 11, checkpoint_interval_s=1e9)
EVENTS = 300
NO_HISTORY = pa.table(
    {"id": pa.array([], pa.string()), "ts": pa.array([], pa.int64()), "k": pa.array([], pa.string())}
)


def log_with_inputs() -> SmallLog:
    """Events in no order of time, from two partitions of an input topic, whose positions are committed as they go."""
    log = SmallLog(DEFINITIONS)
    for number in range(EVENTS):
        time_ms = 1_000_000 + 100 * (number - number % 7 * 5)
        source = number % 2, number // 2, max(0, number // 2 - 10)
        log.records.append(
            encode_event(1, f"e{number}", time_ms, [f"e{number}", time_ms, "a"], source=source)
        )
    return log


def plan_of(log: SmallLog, folder: Path, own: OwnEvents, cut_ms: int) -> HistoryPlan:
    metrics = parse_definitions(DEFINITIONS).metrics
    return HistoryPlan(
        history="h",
        key=IDENTITY.key,
        created=1,
        schemas={1: log.stream},
        metrics=[AddMetric(place, metric) for place, metric in enumerate(metrics, 2)],
        last_place=2,
        cut_ms=cut_ms,
        chunk_events=SETTINGS.chunk_events,
        segment_bytes=SETTINGS.segment_bytes,
        own={("k", 0): own},
        own_folder=folder,
    )


@pytest.mark.parametrize("cut_ms", [0, 1_015_000, TIME_MAX])
def test_records_of_input_topics_count_again_and_stay_known(tmp_path: Path, cut_ms: int) -> None:
    log = log_with_inputs()
    task = log.open(tmp_path / "task", SETTINGS)
    try:
        log.feed(task)
        plan = plan_of(
            log, tmp_path / "own", SnapshotExport(task, tmp_path / "own" / "k" / "0").finish(), cut_ms
        )
        known = task.inputs.positions()
        rows = sum(len(each.seq) for each in task.reservoir.scan())
    finally:
        task.close()
    assert rows == EVENTS
    assert sum(map(len, known.values())) > 20
    build_deepening(tmp_path / "built", plan, NO_HISTORY, SETTINGS)
    built = log.open(tmp_path / "built" / "k" / "0", SETTINGS, log_start=len(log.records))
    try:
        assert built.position == len(log.records)
        assert built.inputs.positions() == known
        assert sum(len(each.seq) for each in built.reservoir.scan()) == rows
    finally:
        built.close()


def test_it_is_whole_while_the_task_goes_on_and_lets_go(tmp_path: Path) -> None:
    """Segments that the task deletes, and those that a crash cuts back, are there all the same."""
    log = log_with_inputs()
    task = log.open(tmp_path / "task", SETTINGS)
    log.feed(task)
    task.checkpoints.take()
    for number in range(EVENTS, EVENTS + 100):
        log.event(f"e{number}", 1_000_000 + 100 * number)
    log.feed(task)
    freezing = SnapshotExport(task, tmp_path / "own" / "k" / "0")
    links = [path.stat().st_nlink for path in (tmp_path / "own").rglob("*.seg")]
    assert set(links) == {2}
    for number in range(EVENTS + 100, EVENTS + 400):
        log.event(f"e{number}", 900_000_000 + 100 * number)
    log.feed(task)
    task.checkpoints.take()
    plan = plan_of(log, tmp_path / "own", freezing.finish(), 0)
    task.close()
    for path in (tmp_path / "task" / "reservoir").glob("*.seg"):
        # A recovery cuts off what no checkpoint holds, and only that; what is let go is deleted.
        path.unlink() if path.stat().st_nlink == 2 else path.write_bytes(b"")
    build_deepening(tmp_path / "built", plan, NO_HISTORY, SETTINGS)
    built = log.open(tmp_path / "built" / "k" / "0", SETTINGS, log_start=plan.own["k", 0].position)
    try:
        assert sum(len(each.seq) for each in built.reservoir.scan()) == EVENTS + 100
        log.feed(built)
        assert built.position == len(log.records)
    finally:
        built.close()


def test_damage_is_told(tmp_path: Path) -> None:
    log = log_with_inputs()
    task = log.open(tmp_path / "task", SETTINGS)
    try:
        log.feed(task)
        own = SnapshotExport(task, tmp_path / "own").finish()
    finally:
        task.close()
    assert read_rows(tmp_path / "own", own).num_rows > 0
    place = tmp_path / "own" / ROWS
    body = bytearray(place.read_bytes())
    body[len(body) // 2] ^= 1
    place.write_bytes(body)
    with pytest.raises(ValueError, match="checksum"):
        read_rows(tmp_path / "own", own)


def test_a_record_says_from_where_on(tmp_path: Path) -> None:
    log = log_with_inputs()
    place = len(log.records)
    log.records.append(encode_control(change_to_json(BeginDeepening(9, "s", "h"))))
    log.event("later", 2_000_000)
    task = log.open(tmp_path, SETTINGS)
    found: list[tuple[str, int]] = []
    task.on_begin_deepening = lambda change: found.append((change.history, task.position))
    try:
        log.feed(task)
    finally:
        task.close()
    assert found == [("h", place)]
