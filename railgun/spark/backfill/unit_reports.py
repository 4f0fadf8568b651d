"""Reads the reports of units, and the plan that they follow, while a job changes their stream.

Backfills of clusters use it.
"""

from collections.abc import Iterable, Mapping
from typing import NoReturn

from railgun.catalog.task_key import TaskKey
from railgun.cluster.copies import CopyName
from railgun.cluster.records import PlanReader
from railgun.cluster.report_table import ReportTable
from railgun.messaging.errors import TopicMissingError, UnreadableRecordError
from railgun.messaging.tail import Tail, each_record
from railgun.messaging.transport import TopicPartition, Transport
from railgun.spark.errors import HistoryError

Copies = Mapping[TaskKey, list[CopyName]]


class UnitReports:
    """Collects the reports that units write after this object was made. Units report several times a second.

    positions: the topic of reports.
    table: the reports that were read.
    Raises TransportError.
    """

    def __init__(self, transport: Transport, positions: str) -> None:
        self.table = ReportTable()
        taker = each_record(lambda _, record: self.table.take(record), _refuse)
        self._tail = Tail(transport, {TopicPartition(positions, 0): taker}, from_end=True)
        self._tail.begin()

    def read(self) -> None:
        """Read to the end of the topic. Raises TransportError, and HistoryError for a report that cannot be read."""
        self._tail.read_to_the_end()


def planned_copies(transport: Transport, assignment: str, keys: Iterable[TaskKey]) -> Copies:
    """Return the copies that the plan names for tasks. Tasks without planned copies are left out.

    assignment: the topic of the plan. It is missing if no node has run yet; the result is empty then.
    Raises TransportError, and HistoryError for a plan that cannot be read.
    """
    reader = PlanReader()
    taker = each_record(lambda _, record: reader.take(record), _refuse)
    try:
        Tail(transport, {TopicPartition(assignment, 0): taker}).read_to_the_end()
    except TopicMissingError:
        return {}
    copies = reader.plan.copies
    return {key: [each.copy for each in copies[key]] for key in keys if copies.get(key)}


def _refuse(where: TopicPartition, error: UnreadableRecordError) -> NoReturn:
    raise HistoryError(f"{where}: {error}") from None
