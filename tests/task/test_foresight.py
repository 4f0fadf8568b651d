"""What is foreseen for metrics is what their change puts in force; and is let be where something else came."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from railgun.catalog.changes import AddMetric, DropMetric, PutStream, change_to_json
from railgun.catalog.definitions import metrics_from_sql
from railgun.task import processor
from railgun.task.foresight import Foresight
from railgun.task.processor import TaskProcessor
from railgun.task.replies import unanswered
from railgun.task.settings import TaskSettings
from railgun.wire.encode import encode_control
from tests.task.small_log import SmallLog, stream_text

_SELECTED = ("count(*)", "max(t)", "count_distinct(i)", "last(i)", "sum(x)", "avg(x)")


class Foreseen:
    """A task with some events, and its log."""

    def __init__(self, folder: Path) -> None:
        self.log = SmallLog(stream_text().replace('k = "string"\n', 'k = "string"\nx = "long"\n', 1))
        self.task: TaskProcessor = self.log.open(folder, TaskSettings())
        self.place = 100
        self.events(20)

    def events(self, n: int) -> None:
        for _ in range(n):
            number = len(self.log.records)
            self.log.event(f"e{number}", 1_000 * number, "ab"[number % 2])
        self.log.feed(self.task)

    def metric(self, text: str, minutes: int, where: str = "") -> AddMetric:
        self.place += 1
        sql = f"SELECT {text} AS m{self.place} FROM s{where} GROUP BY k OVER SLIDING {minutes} MINUTES"
        return AddMetric(self.place, metrics_from_sql(sql, {"s": self.log.stream})[0])

    def foresee(self, *changes: AddMetric) -> Foresight:
        found = self.task.foresee(changes)
        assert found is not None
        found.plan()
        found.read_ahead()
        found.prepare()
        return found

    def make(self, *changes: AddMetric | DropMetric | PutStream) -> None:
        self.log.records += [encode_control(change_to_json(change)) for change in changes]
        self.log.feed(self.task)

    def takes(self, foreseen: Foresight) -> bool:
        """Is the program in force the one that was made?"""
        upcoming, machine = foreseen._upcoming, self.task.machine
        is_taken = machine.program is upcoming.program
        assert is_taken == (machine.execution is upcoming.execution)
        assert not is_taken or upcoming.arrivals in (None, machine.arrivals)
        return is_taken


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Foreseen]:
    found = Foreseen(tmp_path)
    yield found
    found.task.close()


@pytest.mark.parametrize("text", _SELECTED)
def test_what_was_made_is_put_in_force(made: Foreseen, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many come, and while events go on. Records are not read twice."""
    first = made.metric(text, 1, " WHERE x > 3")
    foreseen = made.foresee(first)
    made.events(5)
    with monkeypatch.context() as patch:
        patch.setattr(processor, "decode_control", None)
        made.make(first)
    assert made.takes(foreseen)
    several = [made.metric(text, 1), made.metric("max(x + 1)", 7), made.metric(text, 7)]
    foreseen = made.foresee(*several)
    made.make(*several)
    assert made.takes(foreseen)
    made.events(5)
    assert len(made.task.names) == 5


def test_another_change_in_between_is_what_counts(made: Foreseen) -> None:
    other, one = made.metric("count(*)", 9), made.metric("max(x)", 3)
    foreseen = made.foresee(one)
    made.make(other)
    assert not made.takes(foreseen)
    made.make(one)
    assert not made.takes(foreseen)
    # Planned before the other one was there, read ahead behind it.
    other, third = made.metric("min(x)", 3), made.metric("avg(x)", 5)
    late = made.task.foresee([third])
    assert late is not None
    late.plan()
    made.make(other)
    assert late.read_ahead() == []
    late.prepare()
    made.make(third)
    assert not made.takes(late)
    made.events(5)
    assert len(made.task.names) == 5


def test_metrics_of_other_places_are_others(made: Foreseen) -> None:
    one = made.metric("max(x)", 3)
    foreseen = made.foresee(one)
    made.make(AddMetric(one.place + 1, one.metric))
    assert not made.takes(foreseen)


def test_a_part_of_what_was_foreseen_is_not_it(made: Foreseen) -> None:
    one, other = made.metric("max(x)", 3), made.metric("min(x)", 3)
    foreseen = made.foresee(one, other)
    made.make(one)
    assert not made.takes(foreseen)
    made.make(other)
    made.events(3)
    assert made.task.names == ("n", one.metric.name, other.metric.name)


def test_fills_that_went_on_meanwhile_stand_where_they_came_to(made: Foreseen) -> None:
    """The program was made when they stood elsewhere."""
    made.make(made.metric("max(x)", 10))
    made.log.event("between", 1_000 * len(made.log.records))
    made.task.process(made.log.records[made.task.position :], made.task.position, unanswered)
    one = made.metric("min(x)", 10)
    foreseen = made.task.foresee([one])
    assert foreseen is not None
    foreseen.plan()
    before = made.task.machine.program.nodes.copy()
    while made.task.fills.waiting:
        made.task.work()
    assert (made.task.machine.program.nodes != before).any()
    foreseen.read_ahead()
    foreseen.prepare()
    filled = made.task.machine.program.nodes.copy()
    made.make(one)
    assert made.takes(foreseen)
    assert (made.task.machine.program.nodes[: len(filled)] == filled).all()


def test_what_changes_more_than_metrics_is_not_foreseen(made: Foreseen) -> None:
    one = made.metric("max(x)", 3)
    stream = replace(made.log.stream, lateness_ms=5)
    assert made.task.foresee([PutStream(99, stream, 1), one]) is None
    assert made.task.foresee([one, DropMetric(200, "s", "n", 2)]) is None
    assert made.task.foresee([]) is None
    # A stream that changed since: its records are read by what it is then.
    foreseen = made.foresee(one)
    made.make(PutStream(one.place - 1, stream, 1))
    made.make(one)
    assert not made.takes(foreseen)
