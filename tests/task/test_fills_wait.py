"""A brief bit of a fill decodes nothing itself; what is forgotten again and again is read nevertheless."""

from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import AddMetric, change_to_json
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.task.small_log import SmallLog, rows_filled, stream_text


@pytest.fixture
def filling(tmp_path: Path) -> Any:
    """A task with sealed chunks and a metric that begins to fill."""
    log = SmallLog(stream_text())
    task = log.open(tmp_path, TaskSettings(chunk_events=32, fill_rows_max=64))
    for number in range(200):
        log.event(f"e{number}", 1_000_000 + 1_000 * number)
    (metric,) = metrics_from_sql(
        "SELECT count(*) AS later FROM s GROUP BY k OVER SLIDING 1 HOUR", {"s": log.stream}
    )
    log.records.append(encode_control(change_to_json(AddMetric(100, metric))))
    log.event("last", 2_000_000)
    log.feed(task)
    yield task
    task.close()


def test_a_share_waits_and_a_whole_slice_does_not(
    filling: TaskProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = rows_filled(filling, monkeypatch)
    ready = [False]
    monkeypatch.setattr(filling.reservoir, "fill_is_ready", lambda _: ready[0])
    for _ in range(5):
        assert filling.fills.step(8), "there is more to do"
    assert not read
    assert filling.fills.step()
    assert len(read) == 1
    assert filling.fills.step(8)
    assert len(read) == 1
    ready[0] = True
    assert filling.fills.step(8)
    assert len(read) == 2


def test_what_never_is_ready_is_read_nevertheless(
    filling: TaskProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = rows_filled(filling, monkeypatch)
    monkeypatch.setattr(filling.reservoir, "fill_is_ready", lambda _: False)
    steps = 0
    while filling.fills.step(8):
        steps += 1
        assert steps < 1_000
    assert sum(read) == 201
