"""Chunks are decoded before metrics are added that need them, and no result depends on it."""

from collections.abc import Iterator
from concurrent.futures import wait
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.changes import AddMetric, Change, DropMetric, PutStream, change_to_json
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.task.small_log import SmallLog, stream_text

_EVENTS = 60_000


class Prefetching:
    """A task whose events fill some chunks, and its log."""

    def __init__(self, folder: Path, window: str) -> None:
        fields = 'k = "string"\nx = "long"\n'
        text = stream_text(window=window).replace('k = "string"\n', fields, 1)
        self.log = SmallLog(text)
        self.task: TaskProcessor = self.log.open(folder, TaskSettings())
        self.place = 100
        self.events(_EVENTS)

    def events(self, n: int) -> None:
        for _ in range(n):
            number = len(self.log.records)
            self.log.event(f"e{number}", number, "ab"[number % 2])
        self.log.feed(self.task, 2_000)

    def metric(self, text: str, seconds: int, where: str = "") -> AddMetric:
        self.place += 1
        sql = f"SELECT {text} AS m{self.place} FROM s{where} GROUP BY k OVER SLIDING {seconds} SECONDS"
        return AddMetric(self.place, metrics_from_sql(sql, {"s": self.log.stream})[0])

    def make(self, *changes: Change) -> None:
        self.log.records += [encode_control(change_to_json(change)) for change in changes]
        self.log.feed(self.task)

    @property
    def prefetched(self) -> int:
        """How many chunks were decoded, or are being, before anybody waited for them."""
        return self.task.reservoir.stats().cache.prefetched


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Prefetching]:
    found = Prefetching(tmp_path, "SLIDING 20 SECONDS")
    yield found
    found.task.close()


def test_the_chunk_that_a_new_edge_begins_in_is_decoded_before(tmp_path: Path) -> None:
    made = Prefetching(tmp_path, "INFINITE")
    assert made.prefetched == 0
    assert len(made.task.prefetch([made.metric("count(*)", 40), made.metric("max(t)", 40)])) == 1
    assert len(made.task.prefetch([made.metric("max(t)", 10_000)])) == 2, "the first one there is"
    assert len(made.task.prefetch([made.metric("count(*)", 1)])) == 2, "no chunk holds this one's rows yet"
    made.task.close()


@pytest.mark.parametrize(
    ("text", "where"), [("count(*)", " WHERE x > 3"), ("max(x + 1)", ""), ("count_distinct(i)", "")]
)
def test_chunks_that_edges_are_in_are_decoded_with_the_columns_to_come(
    made: Prefetching, text: str, where: str
) -> None:
    """Of fields that no metric has read yet, too. What follows waits for no chunk."""
    one = made.metric(text, 20, where)
    ahead = made.task.prefetch([one])
    assert ahead
    assert not wait(ahead, 30).not_done
    assert all(each.exception() is None for each in ahead if not each.cancelled())
    misses = made.task.reservoir.stats().cache.misses
    made.events(5)
    made.make(one)
    made.events(500)
    assert made.task.reservoir.stats().cache.misses == misses
    assert made.task.names == ("n", one.metric.name)


def test_another_change_may_come_instead(made: Prefetching) -> None:
    other, one = made.metric("count_distinct(i)", 20), made.metric("max(x)", 20)
    made.task.prefetch([one])
    made.make(other)
    made.events(100)
    made.make(one)
    made.events(100)
    assert made.task.names == ("n", other.metric.name, one.metric.name)


def test_nothing_is_prefetched_for_what_changes_more_than_metrics(made: Prefetching) -> None:
    one, before = made.metric("max(x)", 3), made.prefetched
    stream = replace(made.log.stream, lateness_ms=5)
    assert made.task.prefetch([PutStream(99, stream, 1), one]) == []
    assert made.task.prefetch([one, DropMetric(200, "s", "n", 2)]) == []
    assert made.task.prefetch([]) == []
    assert made.prefetched == before
