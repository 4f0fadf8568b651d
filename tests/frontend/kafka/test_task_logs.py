"""Of each task's log, a cluster says where it begins, from where on a copy needs it, and how much time is left."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families as parse

from frontend.kafka.task_logs import TaskLogs
from railgun.cli.cluster import as_text
from railgun.cli.status import as_text as status_text
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.task.settings import TaskSettings
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, define, front_end, warming
from tests.frontend.serving import until
from tests.unit.local_units import quick_settings

HOUR_MS = 3_600_000
STREAM = """
[streams.s]
partitioners = ["k"]
[streams.s.fields]
k = "string"
[[metrics]]
sql = "SELECT count(*) AS n FROM s GROUP BY k OVER INFINITE"
"""


def _logs(running: RunningFrontEnd) -> TaskLogs:
    logs = running.backend.task_logs
    assert logs is not None
    return logs


def _log(running: RunningFrontEnd) -> Mapping[str, Any]:
    """What the status says of the one task's log."""
    (task,) = running.client.get("/v1/status").json()["streams"][0]["tasks"]
    log: Mapping[str, Any] = task["log"]
    return log


def test_where_a_log_begins_and_who_needs_it(kafka: str, tmp_path: Path) -> None:
    settings = TaskSettings(checkpoint_interval_s=0.2)
    with (
        LocalCluster(kafka, tmp_path, settings) as cluster,
        front_end(replace(cluster.where, log_retention_ms=HOUR_MS)) as running,
        KafkaTransport(quick_settings(kafka)) as transport,
    ):
        define(running.client, STREAM)
        assert _log(running) == {
            "start": 0,
            "needed": None,
            "needed_by": None,
            "left_ms": None,
            "retention_ms": HOUR_MS,
        }
        changed = running.client.patch("/v1/streams/s", json={"log_retention": "2h"})
        assert (changed.status_code, changed.json()["log_retention"]) == (200, "2h")
        until(lambda: _log(running)["retention_ms"] == 2 * HOUR_MS)
        changed = running.client.patch("/v1/streams/s", json={"log_retention": None})
        assert (changed.status_code, changed.json().get("log_retention")) == (200, None)
        until(lambda: _log(running)["retention_ms"] == HOUR_MS)
        running.client.patch("/v1/streams/s", json={"log_retention": "2h"})
        until(lambda: _log(running)["retention_ms"] == 2 * HOUR_MS)
        cluster.start_units(1)
        until(lambda: not warming(running.client, "s"))
        for _ in range(5):
            running.score("s", {"k": "a"})
        topic = f"{cluster.prefix}.s.by.k"
        until(lambda: _log(running)["needed"] == transport.end_offset(topic, 0))
        _logs(running)._watch.look()
        found = _log(running)
        assert found["needed_by"] == "test/0"
        # Nothing is there to lose yet.
        assert found["left_ms"] == 2 * HOUR_MS
        cluster.stop_units()
        needed = _log(running)["needed"]

        def is_logged() -> bool:
            # It may have been given up before it was written.
            running.post("/v1/streams/s/events?timeout_ms=100", {"k": "a"})
            return transport.end_offset(topic, 0) > needed

        until(is_logged)
        _logs(running)._watch.look()
        found = _log(running)
        assert (found["needed"], found["start"]) == (needed, 0)
        assert 2 * HOUR_MS - 600_000 < found["left_ms"] < 2 * HOUR_MS
        # The log loses what the copy, which is away, needs.
        transport.trim(topic, 0, needed + 1)
        _logs(running)._watch.look()
        found = _log(running)
        assert (found["start"], found["left_ms"]) == (needed + 1, 0)
        warning = "1 log has lost records that a copy's last checkpoint needs: s/k/0 (test/0); "
        shown, status = running.client.get("/v1/cluster").json(), running.client.get("/v1/status").json()
        assert shown["tasks"][0]["log"] == found
        assert warning in as_text(shown, with_tasks=True)
        assert warning in status_text(status).splitlines()[1]
        samples = {
            sample.name: sample.value
            for family in parse(running.client.get("/metrics").text)
            for sample in family.samples
            if sample.labels == {"stream": "s", "partitioner": "k", "partition": "0"}
        }
        assert samples == {
            "railgun_log_start_position": needed + 1,
            "railgun_log_needed_position": needed,
            "railgun_log_left_seconds": 0.0,
        }
