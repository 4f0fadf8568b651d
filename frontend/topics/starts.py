"""Finds the offsets at which the reading of an input topic begins, if it was never read before."""

from railgun.catalog.model import EARLIEST, LATEST
from railgun.messaging.errors import TransportUnavailableError
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import TopicPartition

# How long leaders have to answer. Other streams wait for their beginning meanwhile.
_WITHIN_S = 5.0


def start_offsets(transport: KafkaTransport, topic: str, partitions: int, start: str | int) -> list[int]:
    """Return the offset of each partition that there is now; none if all begin at their oldest record.

    start: as `InputDefinition` has it. A time is compared with the times that the records have in the topic.
    Raises TransportError, also if a partition has no leader that could say.
    """
    if start == EARLIEST:
        return []
    wheres = [TopicPartition(topic, each) for each in range(partitions)]
    if isinstance(start, int):
        found = transport.offsets_at(wheres, start, _WITHIN_S)
    else:
        assert start == LATEST
        found = {where: end for where, (_, end) in transport.bounds_of(wheres, _WITHIN_S).items()}
    for where in wheres:
        if where not in found:
            raise TransportUnavailableError(
                str(where), "its leader does not say where it is to be begun", "It is asked again soon"
            )
    return [found[where] for where in wheres]
