"""Finds the offsets at which the reading of an input topic begins, if it was never read before."""

from railgun.catalog.model import EARLIEST, LATEST
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition


def start_offsets(transport: KafkaTransport, topic: str, partitions: int, start: str | int) -> list[int]:
    """Return the offset of each partition that there is now; none if all begin at their oldest record.

    start: as `InputDefinition` has it. A time is compared with the times that the records have in the topic.
    Raises TransportError, also if a partition has no leader that could say.
    """
    if start == EARLIEST:
        return []
    wheres = [TopicPartition(topic, each) for each in range(partitions)]
    if isinstance(start, int):
        return [transport.offset_at(*where, start) for where in wheres]
    assert start == LATEST
    bounds = transport.bounds_of(wheres)
    for where in wheres:
        if where not in bounds:
            raise TransportUnavailableError(
                str(where), "its leader does not say where it ends", "It is asked again soon"
            )
    return [bounds[where][1] for where in wheres]
