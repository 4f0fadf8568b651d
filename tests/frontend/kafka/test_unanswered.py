"""Tasks that nobody answers: which they are, and who is told."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families as parse

from frontend.kafka.deadlines import Deadlines
from frontend.kafka.unanswered import UnansweredTasks, listed
from railgun.catalog.catalog import Catalog
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyState
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import encode_report
from railgun.registry import evolution
from tests.cluster.some_reports import report, status
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, define
from tests.frontend.serving import until

TWO = """
[streams.s]
partitioners = ["k"]
partitions = 2
[streams.s.fields]
k = "long"
"""
MORE = TWO + TWO.replace("streams.s", "streams.t").replace("partitions = 2", "partitions = 1")
LIMIT_S = 15.0
Event = Callable[..., dict[str, Any]]


class Front:
    """What a front-end knows of tasks, at a time that the test sets."""

    def __init__(self) -> None:
        self.reports, self.at_s = ReportTable(), 1_000.0
        self.tasks = UnansweredTasks(self.reports, LIMIT_S, lambda: self.at_s)
        self.catalog = Catalog()

    def define(self, toml: str) -> None:
        catalog = self.catalog.copy()
        for change in evolution.missing(self.catalog, parse_definitions(toml)):
            catalog.apply(change)
        self.catalog = catalog
        self.tasks.follow(catalog)

    def key(self, partition: int, stream: str = "s") -> TaskKey:
        return TaskKey(stream, self.catalog.streams[stream].created, "k", partition)

    def hear(self, state: CopyState, *partitions: int, node: str = "a", at_s: float | None = None) -> None:
        created = self.catalog.streams["s"].created
        copies = [status(created=created, partition=each, state=state) for each in partitions]
        self.reports.take(encode_report(report(*copies, node=node)), self.at_s if at_s is None else at_s)


def test_a_task_is_unanswered_once_no_copy_was_heard_answering_for_the_limit() -> None:
    front = Front()
    front.define(TWO)
    front.hear(CopyState.ANSWERING, 0, 1)
    front.at_s += LIMIT_S - 1
    # A second copy that does not answer says nothing of whether the first one does.
    front.hear(CopyState.ANSWERING, 1)
    front.hear(CopyState.SILENT, 0, 1, node="b")
    assert front.tasks.tasks() == []
    front.at_s += 1
    assert front.tasks.tasks() == [front.key(0)]
    assert front.tasks.by_stream() == {"s": 1}
    assert not front.tasks.is_every_task()
    # Another takes over.
    front.hear(CopyState.ANSWERING, 0, node="b")
    assert front.tasks.tasks() == []
    assert front.tasks.by_stream() == {"s": 0}


def test_a_copy_that_stops_in_order_was_heard_until_then() -> None:
    """The next one may need a moment: it is not told at once."""
    for last in (CopyState.CLOSED, CopyState.FAILED, CopyState.BEHIND):
        front = Front()
        front.define(TWO)
        front.at_s += 100
        front.hear(CopyState.ANSWERING, 0, 1)
        front.at_s += LIMIT_S - 1
        front.hear(last, 0, 1)
        assert front.tasks.tasks() == []
        front.at_s += 1
        assert front.tasks.tasks() == [front.key(0), front.key(1)]
        assert front.tasks.is_every_task()


def test_a_unit_that_lets_go_of_a_task_was_heard_all_the_same() -> None:
    front = Front()
    front.define(TWO)
    front.at_s += 100
    front.hear(CopyState.ANSWERING, 0, 1)
    front.hear(CopyState.ANSWERING, 1)
    assert front.tasks.tasks() == []


def test_the_time_counts_from_when_a_stream_is_known() -> None:
    """Neither a front-end that has just started nor a stream that was just made says that nobody answers."""
    front = Front()
    assert not front.tasks.is_every_task()
    front.define(TWO)
    # Written before it began: that may have been at any time.
    front.hear(CopyState.ANSWERING, 0, at_s=float("-inf"))
    assert front.tasks.tasks() == []
    front.at_s += LIMIT_S
    assert front.tasks.tasks() == [front.key(0), front.key(1)]
    assert front.tasks.is_every_task()
    older = front.catalog
    front.define(MORE)
    assert front.tasks.by_stream() == {"s": 2, "t": 0}
    assert not front.tasks.is_every_task()
    front.tasks.follow(older)
    front.at_s += LIMIT_S
    assert front.tasks.by_stream() == {"s": 2, "t": 1}
    assert listed(front.tasks.tasks())[-1] == {"stream": "t", "partitioner": "k", "partition": 0}
    # One that is made anew is another.
    catalog = front.catalog.copy()
    catalog.apply(evolution.dropped_stream(catalog, "s"))
    front.catalog = catalog
    front.tasks.follow(catalog)
    assert front.tasks.by_stream() == {"t": 1}
    front.define(MORE)
    assert front.tasks.by_stream() == {"t": 1, "s": 0}


def _said(served: RunningFrontEnd) -> tuple[int, list[str], list[str], float, float]:
    """Status and tasks of `/readyz`, tasks of `/v1/status`, how many `/metrics` counts, whether it is ready there."""
    ready = served.client.get("/readyz")
    cluster = served.client.get("/v1/status").json()["cluster"]
    samples = {
        (sample.name, sample.labels.get("stream")): sample.value
        for family in parse(served.client.get("/metrics").text)
        for sample in family.samples
    }
    return (
        ready.status_code,
        _named(ready.json().get("unanswered", [])),
        _named(cluster["unanswered"]),
        samples["railgun_tasks_unanswered", "payments"],
        samples["railgun_ready", None],
    )


def _named(tasks: list[dict[str, Any]]) -> list[str]:
    assert all(task.keys() == {"stream", "partitioner", "partition"} for task in tasks)
    return [f"{task['stream']}/{task['partitioner']}/{task['partition']}" for task in tasks]


def test_who_asks_hears_of_them(kafka: str, tmp_path: Path, event: Event) -> None:
    card, everyone = "payments/card/0", "payments/*/0"
    with LocalCluster(kafka, tmp_path, deadlines=Deadlines(silent_s=3.0)) as cluster:
        served = cluster.serve()
        # Without streams there is nothing that could not be answered.
        assert served.client.get("/readyz").json() == {"status": "ready"}
        define(served.client, PAYMENTS)
        cluster.start_units(2)
        served.score("payments", event())
        until(lambda: _said(served) == (200, [], [], 0, 1))
        assert served.client.get("/readyz").content == b'{"status":"ready"}'
        cluster.stop_unit(1, checkpoint=False)
        until(lambda: _said(served) == (200, [everyone], [everyone], 1, 1))
        cluster.stop_unit(0)
        until(lambda: _said(served) == (503, [], [card, everyone], 2, 0))
        refused = served.client.get("/readyz")
        assert "no task of any stream is answered" in refused.json()["detail"]
        assert refused.headers["content-type"] == "application/problem+json"
        # Events are taken all the same, and one that starts now does not know yet.
        assert served.post("/v1/streams/payments/events?reply=none", event()).status_code == 202
        later = cluster.serve()
        until(lambda: _said(later) == (503, [], [card, everyone], 2, 0))
        cluster.start_unit(0, 2)
        for each in (served, later):
            until(lambda each=each: _said(each) == (200, [everyone], [everyone], 1, 1))
        cluster.start_unit(1, 2)
        for each in (served, later):
            until(lambda each=each: _said(each) == (200, [], [], 0, 1))
        assert served.score("payments", event())["metrics"]["everyone"] == 3
