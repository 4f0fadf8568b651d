"""What was reported before tasks had copies, and is left in the topic of positions, says nothing, to any reader."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from frontend.kafka.task_states import TaskStates
from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.observed import ObservedCluster
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.policy import ClusterPolicy
from railgun.cluster.records import encode_plan
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import encode_report
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.registry.topics import Topics
from railgun.spark.backfill import planned_copies
from railgun.spark.backfill.task_standings import TaskStandings
from tests.cluster.some_reports import LEFT_OVER, TASK, report, status
from tests.frontend.serving import until
from tests.unit.hearing_unit import HearingUnit
from tests.unit.processes import DEFINITIONS

KEY, TOPICS = TaskKey(**TASK), Topics()
OTHER = encode_report(report(status(), node="node-2"))


@pytest.fixture(autouse=True)
def silence(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is logged."""
    caplog.set_level(logging.INFO)
    yield
    assert not caplog.messages


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog(tmp_path, Durability.OS)
    for topic in (TOPICS.positions, TOPICS.assignment):
        opened.create_topic(topic, 1)
    try:
        yield opened
    finally:
        opened.close()


def test_the_table_of_reports_skips_it() -> None:
    table = ReportTable()
    assert table.take(LEFT_OVER, 1.0) is None
    assert (list(table.copies(KEY)), table.units()) == ([], [])


def test_the_leader_skips_it() -> None:
    observed = ObservedCluster(ClusterPolicy(), 0.0)
    observed.take_report(LEFT_OVER, 1.0)
    (task,) = observed.view({KEY: False}, Plan(), 1.0).tasks
    assert (dict(task.heard), dict(task.lag), observed.reports.units()) == ({}, {}, [])


def test_a_unit_skips_it() -> None:
    unit = HearingUnit()
    unit.plan("node-1")
    unit.read(LEFT_OVER, OTHER)
    assert not unit.copies.are_elsewhere(KEY)
    assert unit.copies.generation == 1


def test_a_front_end_skips_it(log: EmbeddedLog) -> None:
    states = TaskStates(cast(Any, log), TOPICS)
    try:
        log.append(TOPICS.positions, 0, [LEFT_OVER, OTHER])
        until(lambda: bool(states.reports.units()))
        assert [each.copy for each in states.reports.copies(KEY)] == [CopyName("node-2", 0)]
    finally:
        states.close()


def test_the_job_that_deepens_a_stream_skips_it(log: EmbeddedLog) -> None:
    standings = TaskStandings(log, TOPICS.positions, ("s", 1), "h")
    log.append(TOPICS.positions, 0, [LEFT_OVER, OTHER])
    standings.wait([(KEY.partitioner, KEY.partition)], lambda each: each.position == 1)


def test_the_check_of_planned_copies_skips_it(log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog()
    for change in missing_changes(catalog, parse_definitions(DEFINITIONS))[0]:
        catalog.apply(change)
    entry = catalog.entry("s")
    planned = Plan(1, dict.fromkeys(entry.task_keys, (PlannedCopy(CopyName("node-2", 0), "f"),)))
    log.append(TOPICS.assignment, 0, [record for _, record in encode_plan(planned, Plan(), 1)])
    told = encode_report(report(*(status(**key._asdict()) for key in entry.task_keys), node="node-2"))
    say: Callable[[float], Any] = lambda _: log.append(TOPICS.positions, 0, [LEFT_OVER, told])  # noqa: E731
    monkeypatch.setattr(planned_copies.time, "sleep", say)
    planned_copies.check_copies(log, TOPICS, entry)
