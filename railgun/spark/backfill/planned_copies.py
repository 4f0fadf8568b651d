"""Checks, before a job changes a stream's tasks, that all their planned copies are there to take part."""

import time
from collections.abc import Iterable, Mapping

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName, CopyState
from railgun.cluster.records import PlanReader, RecordError
from railgun.cluster.report_table import ReportTable
from railgun.cluster.reports import ReportError
from railgun.messaging.errors import TopicMissingError
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.spark.errors import HistoryError

# Units report several times a second.
_HEARD_WITHIN_S, _LOOK_S = 5.0, 0.1
_READ_RECORDS, _READ_BYTES = 1_000, 1 << 20

Copies = Mapping[TaskKey, list[CopyName]]


def check_copies(
    transport: Transport, topics: Topics, entry: StreamEntry, within_s: float = _HEARD_WITHIN_S
) -> None:
    """Raise HistoryError if a copy that the plan names for a task of a stream is away, or has failed.

    A copy that comes back later could lack what the job does meanwhile. Where no node has run yet nothing is checked.
    within_s: how long a copy may take to be heard. Raises TransportError.
    """
    copies = _planned(transport, TopicPartition(topics.assignment, 0), entry.task_keys)
    reports, where = ReportTable(), TopicPartition(topics.positions, 0)
    until_s = time.monotonic() + within_s
    position = transport.end_offset(*where) if copies else 0
    while missing := {key: _unheard(reports, key, names) for key, names in copies.items()}:
        if not any(missing.values()):
            break
        if time.monotonic() > until_s:
            raise HistoryError(_away(entry, missing))
        time.sleep(_LOOK_S)
        position = _read(transport, where, position, reports)
    for key in copies:
        for heard in reports.copies(key):
            if heard.status.state is CopyState.FAILED:
                raise HistoryError(
                    f"{key}: its copy on {heard.copy} has failed: {heard.status.failure}; mend that, start its node "
                    "again, then run this again (what is built stays)"
                )


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


def _read(transport: Transport, where: TopicPartition, position: int, reports: ReportTable) -> int:
    end = transport.end_offset(*where)
    while position < end:
        fetched = transport.read(*where, position, _READ_RECORDS, _READ_BYTES)
        for record in fetched.written():
            try:
                reports.take(record)
            except ReportError as error:
                raise HistoryError(f"{where}: {error}") from None
        position = fetched.next_offset
    return position


def _planned(transport: Transport, where: TopicPartition, keys: Iterable[TaskKey]) -> Copies:
    reader = PlanReader()
    try:
        for fetched in read_to_the_end(transport, where):
            for record in fetched.written():
                reader.take(record)
    except TopicMissingError:
        # No node has run yet.
        pass
    except RecordError as error:
        raise HistoryError(f"{where}: {error}") from None
    copies = reader.plan.copies
    return {key: [each.copy for each in copies[key]] for key in keys if copies.get(key)}
