"""The share that a fill has read grows from its beginning on, also among events that have left the window meanwhile."""

from itertools import pairwise
from pathlib import Path

from railgun.catalog.changes import AddMetric, change_to_json
from railgun.host.reading import filled
from railgun.task.settings import TaskSettings
from railgun.wire.control_records import encode_control
from tests.catalog.metrics_of_query import metrics_from_sql
from tests.task.small_log import SmallLog, stream_text


def test_it_grows_though_the_window_has_moved_on(tmp_path: Path) -> None:
    log = SmallLog(stream_text())
    task = log.open(tmp_path, TaskSettings(chunk_events=32, fill_rows_max=16))
    for number in range(200):
        log.event(f"e{number}", 1_000_000 + 1_000 * number)
    (metric,) = metrics_from_sql(
        "SELECT count(*) AS later FROM s GROUP BY k OVER SLIDING 150 SECONDS", {"s": log.stream}
    )
    log.records.append(encode_control(change_to_json(AddMetric(100, metric))))
    # The fill begins at 1,049 s; now the window does at 1,199 s.
    for number in range(200, 350):
        log.event(f"e{number}", 1_000_000 + 1_000 * number)
    log.feed(task)
    try:
        shares = [filled(task)["later"]]
        while task.fills.step():
            shares.append(filled(task)["later"])
        assert shares[-1] == 1.0
        assert len(shares) > 10
        assert all(before < after for before, after in pairwise(shares[1:])), shares
    finally:
        task.close()
