"""Metrics added one after another, with events between them or not: they fill together, each its own window whole."""

from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import AddMetric, Warm, change_to_json
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from railgun.wire.records import CONTROL, Records
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.task.small_log import SmallLog, rows_filled, stream_text

WINDOWS = {
    "short": "SLIDING 2 SECONDS",
    "long": "SLIDING 1 HOUR",
    "ever": "INFINITE",
    "day": "TUMBLING 1 DAY",
}


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    "names", [("short", "long"), ("long", "short"), ("short", "day", "ever"), ("ever", "short")]
)
def test_each_has_all_of_its_window(tmp_path: Path, names: tuple[str, ...], at_once: bool) -> None:
    log = SmallLog(stream_text())
    task = log.open(tmp_path, TaskSettings())
    answers: list[dict[str, Any]] = []

    def deliver(replies: Replies) -> None:
        answers.extend(replies.metrics(row) for row in range(replies.n))

    def feed(to: int) -> None:
        task.process(Records.of(log.records[task.position : to]), task.position, deliver)

    for number in range(10):
        log.event(f"e{number}", 86_400_000 + 1_000 * number)
    feed(len(log.records))
    for place, name in enumerate(names, 100):
        (metric,) = metrics_from_sql(
            f"SELECT count(*) AS {name} FROM s GROUP BY k OVER {WINDOWS[name]}", {"s": log.stream}
        )
        log.records.append(encode_control(change_to_json(AddMetric(place, metric))))
        if not at_once:
            feed(len(log.records))
    for place, name in enumerate(names, 100):
        log.records.append(encode_control(change_to_json(Warm("s", name, place))))
    log.event("last", 86_400_000 + 9_000)
    try:
        feed(len(log.records))
        whole = {"short": 3, "long": 11, "ever": 11, "day": 11}
        assert {name: answers[-1][name] for name in names} == {name: whole[name] for name in names}
    finally:
        task.close()


@pytest.mark.parametrize(
    "sizes_s", [(50, 400, 100, 300, 200), (400, 300, 200, 100, 50), (50, 100, 200, 300, 400)]
)
@pytest.mark.parametrize("slices", [0, 3])
def test_metrics_with_events_between_them_read_what_was_kept_twice_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes_s: tuple[int, ...], slices: int
) -> None:
    log = SmallLog(stream_text())
    task = log.open(tmp_path, TaskSettings(fill_rows_max=256))
    answers: list[dict[str, Any]] = []
    read = rows_filled(task, monkeypatch)

    def feed() -> None:
        def deliver(replies: Replies) -> None:
            answers.extend(replies.metrics(row) for row in range(replies.n))

        task.process(Records.of(log.records[task.position :]), task.position, deliver)

    def event() -> None:
        number = len(log.records)
        log.event(f"e{number}", 1_000_000 + 1_000 * number)

    try:
        for _ in range(500):
            event()
        for place, size_s in enumerate(sizes_s, 100):
            sql = f"SELECT count(*) AS of_{size_s} FROM s GROUP BY k OVER SLIDING {size_s} SECONDS"
            (metric,) = metrics_from_sql(sql, {"s": log.stream})
            # A record of the log is a second: there are as few as the events that are looked for.
            log.records.append(encode_control(change_to_json(AddMetric(place, metric))))
            event()
            feed()
            for _ in range(slices):
                task.work(brief=True)
        while task.fills.waiting:
            task.work(brief=True)
        assert sum(read) <= 2 * (max(sizes_s) + len(sizes_s))
        for place, size_s in enumerate(sizes_s, 100):
            log.records.append(encode_control(change_to_json(Warm("s", f"of_{size_s}", place))))
        event()
        feed()
        now = len(log.records) - 1
        events = [place for place, record in enumerate(log.records) if not is_control(record)]
        wanted = {f"of_{size}": sum(now - size < place <= now for place in events) for size in sizes_s}
        assert {name: answers[-1][name] for name in wanted} == wanted
    finally:
        task.close()


def is_control(record: bytes) -> bool:
    return record[0] == CONTROL
