"""What an engine says of itself: positions, clocks, how far a fill is, bytes on disk."""

from pathlib import Path

import pytest

import railgun
from railgun.host.disk_usage import size_of
from railgun.task.settings import TaskSettings

DEFINITIONS = """
[streams.payments]
time = "ts"
id = "tx"
partitioners = ["card", "*"]
lateness = "5s"
retention = "forever"

[streams.payments.fields]
tx = "string"
ts = "timestamp"
card = "string"

[[metrics]]
sql = "SELECT count(*) AS n FROM payments GROUP BY card OVER SLIDING 1 DAY"
"""
STEP_MS = 1_000
EVENTS = 40_000


def events(first: int, count: int) -> list[dict[str, object]]:
    return [{"tx": f"t{i}", "ts": i * STEP_MS, "card": f"c{i % 7}"} for i in range(first, first + count)]


def test_tasks_and_disk(tmp_path: Path) -> None:
    with railgun.Engine(tmp_path / "data", now_ms=lambda: EVENTS * STEP_MS) as engine:
        engine.apply(DEFINITIONS)
        empty = engine.status()
        assert (empty.folder, empty.durability) == (str(tmp_path / "data"), "fsync")
        assert [task.clock_ms for stream in empty.streams for task in stream.tasks] == [None, None]
        controls = empty.streams[0].tasks[0].position
        engine.score_many("payments", events(0, 9_000))
        [stream] = engine.status().streams
        assert (stream.name, [metric.name for metric in stream.metrics]) == ("payments", ["n"])
        assert [(task.partitioner, task.partition) for task in stream.tasks] == [("card", 0), ("*", 0)]
        assert {(task.position, task.clock_ms) for task in stream.tasks} == {
            (controls + 9_000, 8_999 * STEP_MS)
        }
    with railgun.Engine(tmp_path / "data") as engine:
        [stream] = engine.status().streams
        assert all(task.checkpoint == task.position for task in stream.tasks)
        disk = engine.status().disk
        held = size_of(tmp_path / "data")
        assert disk.events_bytes > 0
        assert disk.log_bytes > 0
        assert 0 < disk.state_bytes < held
        assert disk.free_bytes > 0


@pytest.mark.parametrize("window", ["INFINITE", "SLIDING 10000 SECONDS"])
def test_how_far_a_fill_is_grows_to_the_whole(window: str) -> None:
    settings = TaskSettings(fill_rows_max=50, checkpoint_interval_s=3_600.0)
    with railgun.Engine(
        settings=settings, now_ms=lambda: EVENTS * STEP_MS, may_warm=lambda _: False
    ) as engine:
        engine.apply(DEFINITIONS)
        engine.score_many("payments", events(0, EVENTS))
        engine.add_metrics("payments", f"SELECT count(*) AS m FROM payments OVER {window}", wait=False)
        shares = [0.0]
        while shares[-1] < 1.0:
            found = {metric.name: metric for metric in engine.metrics("payments")}
            assert (found["n"].filled, found["n"].warming, found["m"].warming) == (1.0, False, True)
            assert found["m"].home == "*"
            shares.append(found["m"].filled)
            assert shares[-1] >= shares[-2]
        assert len(set(shares)) > 5
