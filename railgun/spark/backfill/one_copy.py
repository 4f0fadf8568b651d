"""Refuses a history for tasks that have copies on several nodes: what is built for a task is taken by one of them."""

from railgun.catalog.catalog import StreamEntry
from railgun.cluster.records import PlanReader, RecordError
from railgun.messaging.errors import TopicMissingError
from railgun.messaging.to_the_end import read_to_the_end
from railgun.messaging.transport import TopicPartition, Transport
from railgun.registry.topics import Topics
from railgun.spark.errors import HistoryError


def check_one_copy(transport: Transport, topics: Topics, entry: StreamEntry) -> None:
    """Raise HistoryError if the plan of the cluster names several copies of a task of a stream.

    Raises TransportError.
    """
    copies = _planned(transport, TopicPartition(topics.assignment, 0)).plan.copies
    for key in entry.task_keys:
        nodes = [each.copy.node for each in copies.get(key, ())]
        if len(nodes) > 1:
            raise HistoryError(
                f"{key.stream}: its tasks have copies on {' and '.join(nodes)}, and only one can take a history: "
                "set cluster.copies = 1 on all nodes, start them again, and run this again (what is built stays)"
            )


def _planned(transport: Transport, where: TopicPartition) -> PlanReader:
    reader = PlanReader()
    try:
        for fetched in read_to_the_end(transport, where):
            for record in fetched.values():
                reader.take(record)
    except TopicMissingError:
        # No node has run yet.
        pass
    except RecordError as error:
        raise HistoryError(f"{where}: {error}") from None
    return reader
