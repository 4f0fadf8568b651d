"""Finds the first record of a log that a later leader of the partition has written."""

from railgun.messaging.transport import TopicPartition, Transport

_BYTES = 1 << 20


def first_of_later_epoch(transport: Transport, where: TopicPartition, leader_epoch: int) -> tuple[int, int]:
    """Return the offset and the leader epoch of the first record of a later epoch; the log's end and -1 if there is
    none. Raises TransportError.

    Epochs never fall in a log, so few records are read.
    """
    low, high = transport.start_offset(*where), transport.end_offset(*where)
    found = -1
    while low < high:
        middle = (low + high) // 2
        epoch = transport.read(*where, middle, 1, _BYTES).leader_epoch
        if epoch > leader_epoch:
            high, found = middle, epoch
        else:
            low = middle + 1
    transport.release(*where)
    return high, found
