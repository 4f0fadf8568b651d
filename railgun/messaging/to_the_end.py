"""Reads a partition up to its present end."""

from collections.abc import Iterator

from railgun.messaging.transport import Fetched, TopicPartition, Transport

_RECORDS, _BYTES = 1_000, 1 << 20


def read_to_the_end(log: Transport, where: TopicPartition, offset: int | None = None) -> Iterator[Fetched]:
    """Yield the records of a partition from an offset on, up to the end that it has when this begins.

    offset: None: the first that can be read.
    Raises TransportError.
    """
    offset = log.start_offset(*where) if offset is None else offset
    end = log.end_offset(*where)
    while offset < end:
        fetched = log.read(*where, offset, _RECORDS, _BYTES)
        yield fetched
        offset = fetched.next_offset
