"""A closed task's memory is free at once: no cycle of references keeps it until the next collection."""

import gc
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

from railgun.task.settings import TaskSettings
from railgun.wire.records import Records
from tests.task.small_log import SmallLog, stream_text


def opened_and_closed(folder: Path) -> tuple[weakref.ref[Any], ...]:
    log = SmallLog(stream_text())
    task = log.open(folder, TaskSettings())
    log.feed(task)
    for n in range(2_000):
        log.event(f"e{n}", 1_000_000 + n)
    task.process(Records.of(log.records[task.position :]), task.position, lambda replies: None)
    task.work()
    task.close()
    return weakref.ref(task), weakref.ref(task.reservoir), weakref.ref(task.pool), weakref.ref(task.table)


def test_a_closed_task_keeps_nothing(tmp_path: Path) -> None:
    opened_and_closed(tmp_path / "first")  # what is made once for all tasks
    gc.collect()
    gc.disable()
    tracemalloc.start(1)
    try:
        kept = opened_and_closed(tmp_path / "second")
        assert [reference() for reference in kept] == [None] * 4
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()
        gc.enable()
