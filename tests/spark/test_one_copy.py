"""A history is refused for tasks that have copies on several nodes; without a plan nothing is in its way."""

from pathlib import Path

import pytest

from railgun.catalog.catalog import Catalog, missing_changes
from railgun.catalog.definitions import parse_definitions
from railgun.cluster.copies import CopyName
from railgun.cluster.plan import Plan, PlannedCopy
from railgun.cluster.records import encode_plan
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.registry.topics import Topics
from railgun.spark.backfill.one_copy import check_one_copy
from railgun.spark.errors import HistoryError
from tests.unit.processes import DEFINITIONS


def test_tasks_with_several_copies_take_no_history(tmp_path: Path) -> None:
    catalog, topics = Catalog(), Topics()
    for change in missing_changes(catalog, parse_definitions(DEFINITIONS))[0]:
        catalog.apply(change)
    entry = catalog.entry("s")
    names = entry.task_keys
    one, other = (PlannedCopy(CopyName(node, 0), node) for node in ("node-1", "node-2"))
    log = EmbeddedLog(tmp_path, Durability.OS)
    try:
        check_one_copy(log, topics, entry)
        log.create_topic(topics.assignment, 1)
        first = Plan(1, dict.fromkeys(names, (one,)))
        second = Plan(2, {**first.copies, names[-1]: (one, other)})
        for plan, before in ((first, Plan()), (second, first)):
            log.append(topics.assignment, 0, [record for _, record in encode_plan(plan, before, 1)])
            if plan is first:
                check_one_copy(log, topics, entry)
        with pytest.raises(
            HistoryError, match=r"s: its tasks have copies on node-1 and node-2, .*cluster\.copies = 1"
        ):
            check_one_copy(log, topics, entry)
    finally:
        log.close()
