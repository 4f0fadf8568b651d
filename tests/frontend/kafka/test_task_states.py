"""What a front-end says of tasks that no unit runs any more, and of metrics that some tasks answer already."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from frontend.kafka.deadlines import DEADLINES, Deadlines
from frontend.kafka.task_states import TaskStates
from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.plan import Plan
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import encode_plan
from railgun.cluster.reports import encode_report
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry.cluster_topics import OVERWRITTEN
from railgun.registry.topics import Topics
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.cluster.some_reports import report, status
from tests.frontend.conftest import PAYMENTS
from tests.frontend.kafka.cluster import LocalCluster, RunningFrontEnd, quick_settings
from tests.frontend.serving import until
from tests.frontend.topics.test_input_topic import define
from tests.golden.promises import held, kind_of

EVENTS = "/v1/streams/payments/events"
Event = Callable[..., dict[str, Any]]


def _cluster(served: RunningFrontEnd) -> tuple[dict[str, int], int, int]:
    """Tasks by state, nodes, records that wait."""
    said = served.client.get("/v1/status").json()["cluster"]
    return said["tasks"], len(said["nodes"]), said["lag"]


def _names(served: RunningFrontEnd) -> dict[str, Any]:
    """The whole status, of all values only the kinds; the names of the topics begin otherwise each time."""
    status: dict[str, Any] = kind_of(served.client.get("/v1/status").json())
    weak = status["cluster"]["weak_topics"]
    status["cluster"]["weak_topics"] = {"<topic>": next(iter(weak.values()))}
    # Whether there was a checkpoint yet is a matter of time.
    for task in (task for stream in status["streams"] for task in stream["tasks"]):
        task["log"] = list(task["log"])
    return status


QUICK = Deadlines(silent_s=3.0)


@pytest.mark.parametrize(
    ("is_killed", "state", "deadlines"),
    [
        (False, "stopped", QUICK),
        (True, "unknown", QUICK),
        pytest.param(True, "unknown", DEADLINES, marks=pytest.mark.real_time),
    ],
)
def test_of_units_that_are_gone(
    kafka: str, tmp_path: Path, event: Event, is_killed: bool, state: str, deadlines: Deadlines
) -> None:
    with LocalCluster(kafka, tmp_path, deadlines=deadlines) as cluster:
        define(cluster, PAYMENTS)
        cluster.start_units(1)
        served = cluster.serve()
        served.score("payments", event())
        until(lambda: set(_cluster(served)[0]) == {"running"} and _cluster(served)[2] == 0)
        held("kafka_status.json", _names(served))
        tasks = _cluster(served)[0]["running"]
        begun_s = time.monotonic()
        cluster.stop_units(checkpoint=not is_killed)
        until(lambda: _cluster(served)[0] == {state: tasks})
        # The last thing that they said may be some time ago.
        assert not is_killed or time.monotonic() - begun_s > deadlines.silent_s / 2
        assert served.post(f"{EVENTS}?reply=none", [event() for _ in range(3)]).status_code == 202
        until(lambda: _cluster(served)[1:] == (0, 3 * len({"card", "*"})))
        later = cluster.serve()
        assert _cluster(later)[0] in ({state: tasks}, {"unknown": tasks})
        assert _cluster(later)[1] == 0
        cluster.start_units(1)
        until(lambda: _cluster(served) == ({"running": tasks}, 1, 0))


class Reported:
    """A stream of two tasks, and what a front-end makes of the reports that a test writes."""

    def __init__(self, transport: KafkaTransport) -> None:
        definitions = parse_definitions(
            """
            [streams.s]
            partitioners = ["k"]
            partitions = 2
            [streams.s.fields]
            k = "long"
            [[metrics]]
            sql = "SELECT count(*) AS n FROM s GROUP BY k OVER INFINITE"
            """
        )
        self.catalog = catalog = Catalog()
        for change in missing_changes(catalog, definitions)[0]:
            catalog.apply(change)
        self.stream, self._topics = catalog.entry("s"), Topics(own_prefix("p"))
        self._transport = transport
        transport.create_topic(self._topics.tasks("s", "k"), 2)
        for partition in range(2):
            transport.append(self._topics.tasks("s", "k"), partition, [b"add"])
        self.known = TaskStates(transport, self._topics)

    def say(self, partition: int, unit: int | None = None, **more: Any) -> None:
        """Report a copy, and wait until that is known. unit: its unit; None: the partition's."""
        copy = status(created=self.stream.created, partition=partition, **more)
        unit = partition if unit is None else unit
        record = encode_report(report(copy, unit=unit))
        self._write(self._topics.positions, b"%d" % unit, record)
        until(
            lambda: (
                (unit, copy)
                in [(each.copy.unit, each.status) for each in self.known.reports.copies(copy.task)]
            )
        )

    def plan(self, takeover_s: float, epoch: int = 1) -> None:
        """Write a plan, and wait until it is known."""
        made = Plan(epoch, policy=ClusterPolicy(takeover_s=takeover_s))
        for key, record in encode_plan(made, Plan(), 1):
            self._write(self._topics.assignment, key, record)
        assert self.known.plan.newest() == made

    def lose_plan(self) -> None:
        """Delete the topic of the plan."""
        self._transport.delete_topic(self._topics.assignment)

    def make_plan_topic(self) -> None:
        """Make the topic of the plan again, empty."""
        self._transport.create_topic(self._topics.assignment, 1, OVERWRITTEN)

    def _write(self, topic: str, key: bytes, record: bytes) -> None:
        self._transport.submit([Entry(TopicPartition(topic, 0), Records.of([record]), [key])]).result()


@pytest.fixture
def reported(kafka: str) -> Iterator[Reported]:
    with KafkaTransport(quick_settings(kafka)) as transport:
        made = Reported(transport)
        try:
            yield made
        finally:
            made.known.close()


def test_a_metric_is_as_far_as_the_task_that_is_least_far(reported: Reported) -> None:
    """A task that answers it already says nothing more of how far it is: it does not begin anew for that."""
    known, stream, say = reported.known, reported.stream, reported.say
    assert known.warming(stream) == {"n"}
    assert known.filled(stream, "n") == 0.0
    say(0, warming=["n"], filled={"n": 0.75})
    say(1, warming=["n"], filled={"n": 0.5})
    assert known.filled(stream, "n") == 0.5
    say(1, warming=[], filled={})
    assert known.warming(stream) == {"n"}
    assert known.filled(stream, "n") == 0.75
    say(0, warming=[], filled={})
    assert known.warming(stream) == set()


def test_several_threads_may_ask_which_metrics_warm(
    reported: Reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks for consoles asks every few seconds, beside whoever asks for the status."""
    known, stream = reported.known, reported.stream
    assert known.warming(stream) == {"n"}
    both, answers = threading.Barrier(2), known._answers
    for partition in range(2):
        reported.say(partition)

    def at_once(metric: str, task: TaskKey, end: int) -> bool:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return answers(metric, task, end)

    monkeypatch.setattr(known, "_answers", at_once)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(known.warming, stream) for _ in range(2)]
        assert [each.result() for each in asked] == [set(), set()]


def test_copies_are_shown_as_they_were(reported: Reported, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the broker is away no node is heard. That says nothing of the nodes."""
    catalog, now = reported.catalog, time.monotonic
    reported.say(0)
    reported.say(1)

    def units(ago_s: float) -> set[tuple[str, int]]:
        return {(copy["node"], copy["unit"]) for copy in reported.known.copies(catalog, ago_s)}

    assert units(0.0) == {("node-1", 0), ("node-1", 1)}
    monkeypatch.setattr(time, "monotonic", lambda: now() + 60.0)
    assert units(0.0) == set()
    assert units(60.0) == {("node-1", 0), ("node-1", 1)}


def test_reports_are_heard_while_the_plan_cannot_be_read(
    reported: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    """Once the topic of the plan is there again, its plans count, though their numbers begin anew."""

    def failures() -> list[str]:
        return [each for each in caplog.messages if each.startswith("the plan cannot be read for now: ")]

    for epoch in range(1, 6):
        reported.plan(4.0, epoch)
    reported.lose_plan()
    until(lambda: bool(failures()))
    reported.say(0)
    reported.make_plan_topic()
    reported.say(1)
    reported.plan(2.0)
    reported.say(1, position=7, end=7)
    reported.plan(3.0, 2)
    assert len(failures()) == 1
    assert not [each for each in caplog.messages if "positions cannot be read" in each]


@pytest.mark.parametrize("takeover_s", [None, 4.0])
def test_a_copy_that_another_has_taken_over_from_is_not_shown(
    reported: Reported, monkeypatch: pytest.MonkeyPatch, takeover_s: float | None
) -> None:
    """How long that takes says the plan, and the default as long as there is none."""

    def units() -> list[int]:
        return [copy["unit"] for copy in next(iter(reported.known.tasks(reported.stream, {})))["copies"]]

    default_s, now = ClusterPolicy().takeover_s, time.monotonic
    if takeover_s is not None:
        reported.plan(takeover_s)
    said_s = now()
    monkeypatch.setattr(time, "monotonic", lambda: said_s)
    reported.say(0, unit=1)
    reported.say(0, unit=2)
    assert units() == [1, 2]
    monkeypatch.setattr(time, "monotonic", lambda: now() + default_s)
    reported.say(0, unit=2, position=7, end=7)
    assert units() == ([2] if takeover_s is None else [1, 2])
    monkeypatch.setattr(time, "monotonic", lambda: now() + max(default_s, takeover_s or 0.0))
    reported.say(0, unit=2, position=8, end=8)
    assert units() == [2]
