"""Checks, before a job changes a stream's tasks, that all their planned copies are there to take part."""

import time
from collections.abc import Iterable

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.report_table import ReportTable
from railgun.cluster.silence import PLANNED_HEARD_S
from railgun.messaging.transport import Transport
from railgun.registry.topics import Topics
from railgun.spark.backfill.unit_reports import Copies, UnitReports, planned_copies
from railgun.spark.errors import HistoryError

_LOOK_S = 0.1


def check_copies(
    transport: Transport, topics: Topics, entry: StreamEntry, within_s: float = PLANNED_HEARD_S
) -> None:
    """Raise HistoryError if a copy that the plan names for a task of a stream is away, or has failed.

    A copy that comes back later could lack what the job does meanwhile. If no node has run yet, nothing is checked.
    within_s: how long a copy may take to be heard. Raises TransportError.
    """
    copies = planned_copies(transport, topics.assignment, entry.task_keys)
    if not copies:
        return
    reports, until_s = UnitReports(transport, topics.positions), time.monotonic() + within_s
    while any((missing := _missing(reports.table, copies)).values()):
        if time.monotonic() > until_s:
            raise HistoryError(_away(entry, missing))
        time.sleep(_LOOK_S)
        reports.read()
    for key in copies:
        for heard in reports.table.copies(key):
            if heard.status.state is CopyState.FAILED:
                raise HistoryError(
                    f"{key}: its copy on {heard.copy} has failed: {heard.status.failure}; mend that, start its node "
                    "again, then run this again (what is built stays)"
                )


def _missing(reports: ReportTable, copies: Copies) -> Copies:
    return {key: _unheard(reports, key, names) for key, names in copies.items()}


def _unheard(reports: ReportTable, key: TaskKey, names: Iterable[CopyName]) -> list[CopyName]:
    heard = {each.copy for each in reports.copies(key) if each.status.state is not CopyState.CLOSED}
    return [name for name in names if name not in heard]


def _away(entry: StreamEntry, missing: Copies) -> str:
    nodes = sorted({name.node for names in missing.values() for name in names})
    tasks = [f"{key.partitioner}/{key.partition}" for key, names in missing.items() if names]
    return (
        f"{entry.stream.name}: copies of its tasks are away: {', '.join(tasks)} on {' and '.join(nodes)}; start the "
        "nodes, or wait until the plan has none there (railgun cluster --tasks), then run this again (what is built "
        "stays)"
    )
