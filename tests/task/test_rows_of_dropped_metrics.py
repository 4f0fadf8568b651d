"""Rows do not grow with every metric that comes and goes: cells of dropped metrics are given back meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import AddMetric, DropMetric, change_to_json
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_event
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.task.small_log import SmallLog, stream_text

ENTITIES = 600
TIMES = 40
STEPS = 4  # of the sweep between two changes: too few to go once through all rows
WIDE = 1e300


class Changing:
    """A task whose rows have been stored, and metrics that come and go."""

    def __init__(self, folder: Path, sweep_interval_s: float = 0.0, **clocks: Any) -> None:
        self._log = SmallLog(stream_text().replace('k = "string"\n', 'k = "string"\nd = "double"\n'))
        settings = TaskSettings(sweep_interval_s=sweep_interval_s, checkpoint_interval_s=0.0)
        self.task: TaskProcessor = self._log.open(folder, settings, **clocks)
        self._place = 100
        for number in range(ENTITIES):
            self.event(f"k{number}", 1.0)
        self._log.feed(self.task)
        self.task.checkpoints.take()

    @property
    def words(self) -> int:
        """Of a row."""
        (layout,) = self.task.runtime.layouts.values()
        return layout.words

    def event(self, key: str, d: float, after_ms: int = 0) -> None:
        """Append one."""
        number = len(self._log.records)
        time_ms = 1_000_000 + after_ms + number
        self._log.records.append(encode_event(1, f"e{number}", time_ms, [f"e{number}", time_ms, key, d]))

    def feed(self) -> None:
        """Process what was appended."""
        self._log.feed(self.task)

    def add_and_drop(self, what: str) -> None:
        """A metric comes; it fills; it goes."""
        self._place += 1
        name = f"m{self._place}"
        sql = f"SELECT {what} AS {name} FROM s GROUP BY k OVER SLIDING {self._place} SECONDS"
        (metric,) = metrics_from_sql(sql, {"s": self._log.stream})
        added = self._place
        self._log.records.append(encode_control(change_to_json(AddMetric(added, metric))))
        self.event("k0", 1.0)
        self._log.feed(self.task)
        self.task.fills.finish(max(self.task.metrics.fills))
        self._place += 1
        self._log.records.append(encode_control(change_to_json(DropMetric(self._place, "s", name, added))))
        self.event("k0", 1.0)
        self._log.feed(self.task)

    def sweep(self, steps: int) -> None:
        """So many steps of background work, with a checkpoint before them."""
        self.task.checkpoints.take()
        for _ in range(steps):
            self.task.sweep.step()


def test_cells_that_cannot_refer_to_a_page_leave_at_once(tmp_path: Path) -> None:
    changing = Changing(tmp_path)
    before = changing.words
    try:
        for _ in range(3):
            changing.add_and_drop("sum(d)")
            assert changing.words == before
    finally:
        changing.task.close()


@pytest.mark.parametrize("what", ["sum(d)", "last(k)"])
def test_one_that_is_dropped_does_not_keep_those_before_from_leaving(tmp_path: Path, what: str) -> None:
    changing = Changing(tmp_path)
    before = changing.words
    try:
        changing.event("k0", WIDE)
        changing.add_and_drop("sum(d)")
        widest = 0
        for _ in range(TIMES):
            changing.add_and_drop(what)
            widest = max(widest, changing.words)
            changing.sweep(STEPS)
        assert changing.words > before, "the page of the wide sum keeps cells"
        assert widest < before + TIMES * 5 // 2
        changing.sweep(100)
        assert changing.words == before
        changing.event("k0", 1.0, after_ms=10_000_000)
        changing.feed()
        changing.sweep(100)
        assert changing.task.sweep.deleted == ENTITIES - 1, "rows that are empty by now go, in their new form"
    finally:
        changing.task.close()


def test_brief_slices_go_through_many_rows_in_a_second(tmp_path: Path) -> None:
    """Of whoever works beside calls: soon again where there is more to do, and else after a while."""
    clock_s = [0.0]

    def now() -> float:
        clock_s[0] += 0.0001
        return clock_s[0]

    changing = Changing(tmp_path, sweep_interval_s=0.1, now=now)
    before = changing.words

    def seconds_until(is_done: Callable[[], bool]) -> float:
        begun_s = clock_s[0]
        while not is_done() and clock_s[0] < begun_s + 100:
            clock_s[0] += 0.001 if changing.task._sweep(brief=True) else 0.05
        return clock_s[0] - begun_s

    try:
        changing.add_and_drop("last(k)")
        assert changing.words > before
        changing.task.checkpoints.take()
        assert seconds_until(lambda: changing.words == before) < 1.0
        changing.event("k0", 1.0, after_ms=10_000_000)
        changing.feed()
        changing.task.checkpoints.take()
        assert seconds_until(lambda: changing.task.sweep.deleted == ENTITIES - 1) < 0.5
    finally:
        changing.task.close()


@pytest.mark.parametrize("what", ["last(k)", "min(k)", "sum(d)"])
def test_a_metric_that_comes_and_goes_before_the_first_event(tmp_path: Path, what: str) -> None:
    log = SmallLog(stream_text().replace('k = "string"\n', 'k = "string"\nd = "double"\n'))
    settings = TaskSettings(checkpoint_interval_s=0.0)

    def change(to: AddMetric | DropMetric) -> None:
        log.records.append(encode_control(change_to_json(to)))
        task = log.open(tmp_path, settings)
        log.feed(task)
        task.checkpoints.take()
        task.close()

    for place in (10, 20, 30):
        sql = f"SELECT {what} AS m{place} FROM s GROUP BY k OVER SLIDING 5 SECONDS"
        (metric,) = metrics_from_sql(sql, {"s": log.stream})
        change(AddMetric(place, metric))
        change(DropMetric(place + 1, "s", f"m{place}", place))
    task = log.open(tmp_path, settings)
    try:
        log.records.append(encode_event(1, "e", 1_000_000, ["e", 1_000_000, "k", 1.0]))
        assert log.feed(task) == [False]
    finally:
        task.close()
