"""Refuses a history for tasks that have copies on several nodes: what is built for a task is taken by one of them."""

from railgun.catalog.catalog import StreamEntry
from railgun.cluster.copies import TaskName
from railgun.cluster.records import PlanReader, RecordError
from railgun.messaging.errors import TopicMissingError
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.spark.errors import HistoryError

_READ_RECORDS, _READ_BYTES = 10_000, 4 << 20


def check_one_copy(transport: Transport, topics: Topics, entry: StreamEntry) -> None:
    """Raise HistoryError if the plan of the cluster names several copies of a task of a stream.

    Raises TransportError.
    """
    copies = _planned(transport, TopicPartition(topics.assignment, 0)).plan.copies
    stream = entry.stream
    for task in stream.tasks:
        nodes = [each.copy.node for each in copies.get(TaskName(stream.name, entry.created, *task), ())]
        if len(nodes) > 1:
            raise HistoryError(
                f"{stream.name}: its tasks have copies on {' and '.join(nodes)}, and only one can take a history: "
                "set cluster.copies = 1 on all nodes, start them again, and run this again (what is built stays)"
            )


def _planned(transport: Transport, where: TopicPartition) -> PlanReader:
    reader = PlanReader()
    try:
        position, end = transport.start_offset(*where), transport.end_offset(*where)
        while position < end:
            fetched = transport.read(*where, position, _READ_RECORDS, _READ_BYTES)
            for record in fetched.values():
                reader.take(record)
            position = fetched.next_offset
    except TopicMissingError:
        # No node has run yet.
        pass
    except RecordError as error:
        raise HistoryError(f"{where}: {error}") from None
    return reader
