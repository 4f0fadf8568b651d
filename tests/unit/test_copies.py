"""Two units with copies of the same tasks on a real broker: one answers, the other takes over, and no reply is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.reports import encode_report
from railgun.messaging.transport import Entry, TopicPartition
from railgun.registry import evolution
from railgun.task.errors import LogGapError
from railgun.task.metrics import TaskMetrics
from railgun.unit import cut_logs
from railgun.wire.records import Records
from tests.broker.own_topics import own_prefix
from tests.cluster.some_reports import report, status
from tests.oracle.compare import differences
from tests.oracle.stream import Oracle
from tests.strategies.case import STREAM
from tests.unit.cluster_player import ClusterPlayer
from tests.unit.fixed_plan import FixedPlan
from tests.unit.local_units import SMALL, LocalUnit, awaited
from tests.unit.processes import DEFINITIONS, event

NAMES = [CopyName("node-1", 0), CopyName("node-2", 0)]


class Copies:
    """A stream of four tasks, and units that each have a copy of all of them."""

    def __init__(self, broker: str, folder: Path) -> None:
        self.prefix = own_prefix("c")
        self.player = ClusterPlayer(broker, self.prefix)
        self.player.apply(DEFINITIONS)
        self._broker, self._folder = broker, folder
        self.running: dict[CopyName, LocalUnit] = {}
        self.sent = 0

    def start(self, name: CopyName) -> LocalUnit:
        unit = LocalUnit(
            self._broker,
            self.prefix,
            self._folder / name.node,
            name.unit,
            1,
            SMALL,
            node=name.node,
            assignments=FixedPlan(NAMES),
        )
        self.running[name] = unit
        awaited(lambda: unit.error is not None or unit.loop.is_ready)
        return unit

    def stop(self, name: CopyName, *, checkpoint: bool = True) -> None:
        self.running.pop(name).stop(checkpoint=checkpoint)

    def send(self, count: int) -> None:
        for _ in range(count):
            self.player.score(event(self.sent))
            self.sent += 1
        self.player.flush()

    def check(self) -> None:
        """All replies have come, and are the oracle's."""
        model, got = Oracle(DEFINITIONS).streams[STREAM], self.player.replies()
        assert len(got) == self.sent
        for number, reply in enumerate(got):
            assert not differences(model.score(event(number)), reply), number

    def states(self, name: CopyName) -> set[CopyState]:
        """The states of a unit's copies."""
        unit = self.running[name]
        return {unit.copies.state(host) for host in list(unit.loop.hosts.values())}

    def close(self) -> None:
        for name in list(self.running):
            self.stop(name)
        self.player.close()


@pytest.fixture
def copies(kafka: str, tmp_path: Path) -> Iterator[Copies]:
    opened = Copies(kafka, tmp_path)
    try:
        yield opened
    finally:
        opened.close()


def told(caplog: pytest.LogCaptureFixture, text: str) -> set[str]:
    """The tasks of which units have said something."""
    said = [each.getMessage().partition(text)[2] for each in caplog.records if text in each.getMessage()]
    return {task for tasks in said for task in tasks.split(", ")}


def test_one_answers_and_the_other_takes_over_when_it_dies(
    copies: Copies, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "railgun.unit")
    first, second = NAMES
    copies.start(first)
    copies.start(second)
    awaited(lambda: copies.states(first) == {CopyState.ANSWERING})
    copies.send(300)
    copies.check()
    awaited(lambda: copies.states(second) == {CopyState.SILENT})
    assert copies.player.front_end.repeats == 0
    copies.stop(first, checkpoint=False)
    copies.send(200)
    copies.check()
    assert copies.states(second) == {CopyState.ANSWERING}
    tasks = {str(key) for key in copies.running[second].loop.hosts}
    awaited(lambda: told(caplog, "node-2/0 answers from now on: ") == tasks)
    # The first one comes back, catches up in silence, and answers again, since it is preferred.
    copies.start(first)
    copies.send(200)
    awaited(lambda: copies.states(first) == {CopyState.ANSWERING})
    awaited(lambda: copies.states(second) == {CopyState.SILENT})
    awaited(lambda: told(caplog, "node-2/0 answers no more: ") == tasks)
    copies.send(100)
    copies.check()


def test_a_unit_that_is_stopped_hands_over(copies: Copies) -> None:
    first, second = NAMES
    copies.start(first)
    copies.start(second)
    copies.send(300)
    copies.check()
    copies.stop(first)
    awaited(lambda: copies.states(second) == {CopyState.ANSWERING})
    copies.send(100)
    copies.check()
    assert copies.player.front_end.repeats == 0


def test_when_a_copy_fails_the_other_answers_what_it_owed(copies: Copies) -> None:
    first, second = NAMES
    unit = copies.start(first)
    copies.start(second)
    copies.send(300)
    copies.check()
    awaited(lambda: copies.states(second) == {CopyState.SILENT})

    def fail(*_: object) -> None:
        raise LogGapError("this copy", "its files are damaged")

    for host in list(unit.loop.hosts.values()):
        host.process = fail  # type: ignore[method-assign]
    copies.send(200)
    copies.check()
    assert copies.states(first) == {CopyState.FAILED}
    assert copies.states(second) == {CopyState.ANSWERING}


def test_a_log_that_has_lost_what_was_replied_to_stops_its_task(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_logs, "CUT_S", 0.2)
    first, _ = NAMES
    unit = copies.start(first)
    copies.send(100)
    copies.check()
    copies.stop(first)
    key = next(iter(unit.loop.hosts))
    # What a unit would have reported that has seen more of the log.
    replied = status(**key._asdict(), position=10_000, replied=10_000, end=10_000)
    where = TopicPartition(copies.player.registry.topics.positions, 0)
    records = Records.of([encode_report(report(replied, node="node-9"))])
    copies.player.transport.submit([Entry(where, records, [b"node-9/0"])]).result()
    unit = copies.start(first)
    assert unit.loop.hosts[key].failure is not None
    assert "replied to what was before offset 10000, and the log ends at" in unit.loop.hosts[key].failure
    assert copies.states(first) == {CopyState.FAILED, CopyState.ANSWERING}


def test_both_end_in_the_same_state(copies: Copies) -> None:
    first, second = (copies.start(name) for name in NAMES)
    copies.send(500)
    copies.check()
    ends = {key: host.position for key, host in first.loop.hosts.items()}
    awaited(lambda: {key: host.position for key, host in second.loop.hosts.items()} == ends)
    for unit in (first, second):
        unit.halt()
    digests = [{key: host.task.digest() for key, host in unit.loop.hosts.items()} for unit in (first, second)]
    assert len(digests[0]) == 4
    assert digests[0] == digests[1]


def test_a_metric_answers_when_the_other_copy_has_filled_it_too(copies: Copies) -> None:
    first, second = (copies.start(name) for name in NAMES)
    copies.send(300)
    copies.check()
    awaited(lambda: copies.states(NAMES[1]) == {CopyState.SILENT})
    for host in second.loop.hosts.values():
        host.task.fills.step = lambda share=1: False  # type: ignore[method-assign]
    sql = "SELECT count(*) AS later FROM s GROUP BY card OVER INFINITE"
    copies.player.registry.change(lambda known: evolution.new_metrics(known, STREAM, sql))
    cards = [key for key in first.loop.hosts if key.partitioner == "card"]

    def metrics(unit: LocalUnit, key: TaskKey) -> TaskMetrics:
        return unit.loop.hosts[key].task.metrics

    awaited(lambda: all(metrics(first, key).ready_to_warm() for key in cards))
    time.sleep(1.0)
    assert all(metrics(unit, key).warming == ("later",) for unit in (first, second) for key in cards)
    for host in second.loop.hosts.values():
        del host.task.fills.step
    awaited(lambda: not any(metrics(unit, key).warming for unit in (first, second) for key in cards))
    copies.check()
