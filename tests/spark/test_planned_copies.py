"""A job that changes a stream's tasks begins only if all planned copies are heard; without a plan nothing is in its
way.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from railgun.catalog.catalog import Catalog, StreamEntry, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.records import encode_plan
from railgun.cluster.reports import encode_report
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.registry.topics import Topics
from railgun.spark.backfill import planned_copies
from railgun.spark.backfill.planned_copies import check_copies
from railgun.spark.errors import HistoryError
from tests.cluster.some_reports import report, status
from tests.unit.processes import DEFINITIONS

TOPICS = Topics()
NODES = ("node-1", "node-2")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    opened = EmbeddedLog(tmp_path, Durability.OS)
    opened.create_topic(TOPICS.positions, 1)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def entry() -> StreamEntry:
    catalog = Catalog()
    for change in missing_changes(catalog, parse_definitions(DEFINITIONS))[0]:
        catalog.apply(change)
    return catalog.entry("s")


@pytest.fixture
def reporting(log: EmbeddedLog, entry: StreamEntry, monkeypatch: pytest.MonkeyPatch) -> dict[str, CopyState]:
    """Each node in it reports all tasks in its state, whenever the check waits."""
    states: dict[str, CopyState] = {}

    def say(_: float) -> None:
        for node, state in states.items():
            copies = [
                status(**key._asdict(), state=state, failure="its disk is full" if state == "failed" else "")
                for key in entry.task_keys
            ]
            log.append(TOPICS.positions, 0, [encode_report(report(*copies, node=node))])

    monkeypatch.setattr(planned_copies.time, "sleep", say)
    return states


def plan(log: EmbeddedLog, entry: StreamEntry) -> None:
    copies = tuple(PlannedCopy(CopyName(node, 0), node) for node in NODES)
    made = Plan(1, dict.fromkeys(entry.task_keys, copies))
    log.create_topic(TOPICS.assignment, 1)
    log.append(TOPICS.assignment, 0, [record for _, record in encode_plan(made, Plan(), 1)])


def test_without_a_plan_there_is_nothing_to_check(log: EmbeddedLog, entry: StreamEntry) -> None:
    check_copies(log, TOPICS, entry)


def test_all_copies_are_heard(log: EmbeddedLog, entry: StreamEntry, reporting: dict[str, CopyState]) -> None:
    plan(log, entry)
    reporting |= {"node-1": CopyState.ANSWERING, "node-2": CopyState.BEHIND}
    check_copies(log, TOPICS, entry)


def test_what_was_said_before_does_not_count(
    log: EmbeddedLog, entry: StreamEntry, reporting: dict[str, CopyState]
) -> None:
    plan(log, entry)
    reporting |= {"node-1": CopyState.ANSWERING, "node-2": CopyState.SILENT}
    planned_copies.time.sleep(0)
    del reporting["node-2"]
    with pytest.raises(HistoryError, match=r"s: copies of its tasks are away: card/0, .* on node-2; start"):
        check_copies(log, TOPICS, entry, within_s=0.05)


def test_one_that_was_stopped_is_away(
    log: EmbeddedLog, entry: StreamEntry, reporting: dict[str, CopyState]
) -> None:
    plan(log, entry)
    reporting |= {"node-1": CopyState.CLOSED, "node-2": CopyState.ANSWERING}
    with pytest.raises(HistoryError, match="on node-1; start"):
        check_copies(log, TOPICS, entry, within_s=0.05)


def test_one_that_has_failed_is_named_with_its_reason(
    log: EmbeddedLog, entry: StreamEntry, reporting: dict[str, CopyState]
) -> None:
    plan(log, entry)
    reporting |= {"node-1": CopyState.ANSWERING, "node-2": CopyState.FAILED}
    with pytest.raises(HistoryError, match=r"its copy on node-2/0 has failed: its disk is full; mend that"):
        check_copies(log, TOPICS, entry)
