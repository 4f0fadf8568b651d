"""A silent copy is not given a `warm` record before it has filled the metric; nor anything behind its limit."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from railgun.catalog.changes import AddMetric, Warm, change_to_json
from railgun.catalog.definitions import parse_definitions
from railgun.host.limits import parted_at_limit
from railgun.messaging.transport import Fetched, TopicPartition
from railgun.task.processor import TaskProcessor
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records
from tests.task.small_log import SmallLog
from tests.unit.local_units import SMALL

STREAM = """
[streams.s]
id = "id"
time = "t"
partitioners = ["k"]
[streams.s.fields]
id = "string"
t = "timestamp"
k = "string"
"""
LATER = """
[[metrics]]
sql = "SELECT count(*) AS later FROM s GROUP BY k OVER INFINITE"
"""
EVENTS, PLACE = 500, 7
WARM = encode_control(change_to_json(Warm("s", "later", PLACE)))


@pytest.fixture
def log() -> SmallLog:
    made = SmallLog(STREAM)
    for number in range(EVENTS):
        made.event(str(number), 1_000 + number)
    (metric,) = parse_definitions(STREAM + LATER).metrics
    made.records.append(encode_control(change_to_json(AddMetric(PLACE, metric))))
    made.event("last", 9_000)
    return made


@pytest.fixture
def task(log: SmallLog, tmp_path: Path) -> Iterator[TaskProcessor]:
    opened = log.open(tmp_path, replace(SMALL, fill_rows_max=16))
    try:
        yield opened
    finally:
        opened.close()


def fetched(log: SmallLog, first: int) -> Fetched:
    offsets = np.arange(first, len(log.records), dtype=np.int64)
    return Fetched(TopicPartition("s", 0), offsets, Records.of(log.records[first:]), len(log.records))


def sizes(parts: tuple[Fetched, Fetched | None]) -> tuple[int, int | None]:
    now, later = parts
    return len(now), None if later is None else len(later)


def test_it_stops_before_a_warm_record_until_the_metric_is_filled(log: SmallLog, task: TaskProcessor) -> None:
    place = len(log.records)
    log.records.append(WARM)
    log.event("behind", 9_001)
    everything = fetched(log, 0)
    assert sizes(parted_at_limit(task, everything, 10**6)) == (place, 2)
    # The metric is not known yet, so nothing could be filled: that is no reason to take the record along.
    now, later = parted_at_limit(task, everything, 10**6)
    assert later is not None
    task.process(now.records, 0, lambda replies: None)
    assert sizes(parted_at_limit(task, later, 10**6)) == (0, 2)
    while not task.is_filled(Warm("s", "later", PLACE)):
        assert sizes(parted_at_limit(task, later, 10**6)) == (0, 2)
        task.work()
    assert sizes(parted_at_limit(task, later, 10**6)) == (2, None)
    assert sizes(parted_at_limit(task, later, place + 1)) == (1, 1)
    assert sizes(parted_at_limit(task, later, place)) == (0, 2)


def test_records_of_other_metrics_and_damaged_ones_are_left_to_the_task(
    log: SmallLog, task: TaskProcessor
) -> None:
    log.feed(task)
    place = len(log.records)
    log.records.append(encode_control(change_to_json(Warm("s", "later", PLACE + 1))))
    log.records.append(encode_control({"kind": "warm"}))
    log.event("behind", 9_001)
    assert sizes(parted_at_limit(task, fetched(log, place), 10**6)) == (3, None)
