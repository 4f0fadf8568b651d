"""Metrics added one after another, no event between them: they fill together, each its own window whole."""

from pathlib import Path
from typing import Any

import pytest

from railgun.catalog.changes import AddMetric, Warm, change_to_json
from railgun.catalog.definitions import metrics_from_sql
from railgun.task.replies import Replies
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_control
from tests.task.small_log import SmallLog, stream_text

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
        task.process(log.records[task.position : to], task.position, deliver)

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
