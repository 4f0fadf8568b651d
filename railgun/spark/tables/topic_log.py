"""Reads a partitioner's topic as a RecordLog: on Kafka, or in an embedded log, even while its engine runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from railgun.messaging.embedded.read_only import ReadOnlyLog
from railgun.messaging.errors import TransportError
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.messaging.transport import Transport
from railgun.registry.topics import Topics
from railgun.spark.errors import OptionError, PlaceError
from railgun.spark.tables.record_log import Bounds, Piece, RawRecords

_READ_RECORDS, _READ_BYTES = 8_192, 4 << 20


class TopicRecordLog:
    """A RecordLog over the partitions of one topic. place: names it in errors. Raises PlaceError."""

    def __init__(self, log: Transport, topic: str, partitioner: str, place: str) -> None:
        self.partitioner = partitioner
        self._log, self._topic, self._place = log, topic, place
        self._partitions = log.topics().get(topic, 0)
        if not self._partitions:
            log.close()
            raise PlaceError(f"{place}: there is no topic {topic}; was the stream dropped?")

    def pieces(self, bounds: Bounds, piece_records: int) -> list[Piece]:
        starts, ends = self.start_offsets(), self.end_offsets()
        found: list[Piece] = []
        for partition in filter(bounds.wants, range(self._partitions)):
            wanted_first, wanted_last = bounds.offsets(partition)
            first, end = max(wanted_first, starts[partition]), min(wanted_last + 1, ends[partition])
            found += [
                Piece(partition, begin, min(begin + piece_records, end))
                for begin in range(first, end, piece_records)
            ]
        return found

    def read(self, piece: Piece, bounds: Bounds, *, payloads: bool) -> Iterator[RawRecords]:
        at = piece.first
        while at < piece.end:
            count = min(piece.end - at, _READ_RECORDS)
            try:
                fetched = self._log.read(self._topic, piece.partition, at, count, _READ_BYTES)
            except TransportError as error:
                raise PlaceError(str(error)) from error
            if fetched.next_offset <= at:
                raise PlaceError(
                    f"{self._place}: {self._topic}-{piece.partition} ends at offset {at}, and reached to {piece.end} "
                    "a moment ago; was the stream made anew? Read it again"
                )
            # A broker's offsets have gaps, so as many records may reach beyond the piece.
            count = int((fetched.offsets < piece.end).sum())
            yield RawRecords(fetched.offsets[:count], None, fetched.records.part(0, count))
            at = fetched.next_offset

    def end_offsets(self) -> dict[int, int]:
        if isinstance(self._log, ReadOnlyLog):
            self._log.catch_up()
        return self._each(self._log.end_offset)

    def start_offsets(self) -> dict[int, int]:
        return self._each(self._log.start_offset)

    def offsets_at(self, appended_ms: int) -> dict[int, int]:
        log = self._log
        if not isinstance(log, KafkaTransport):
            raise OptionError(
                "startAppended, endAppended: an embedded log does not keep when records came; use startOffset and "
                "endOffset, or startTime and endTime"
            )
        return self._each(lambda topic, partition: log.offset_at(topic, partition, appended_ms))

    def close(self) -> None:
        self._log.close()

    def _each(self, ask: Callable[[str, int], int]) -> dict[int, int]:
        try:
            return {each: ask(self._topic, each) for each in range(self._partitions)}
        except TransportError as error:
            raise PlaceError(str(error)) from error


def embedded_log(data: Path, stream: str, partitioner: str) -> TopicRecordLog:
    """Open the topic in the embedded log `<data>/log`. Raises PlaceError."""
    try:
        log = ReadOnlyLog(data / "log")
    except TransportError as error:
        raise PlaceError(str(error)) from error
    return TopicRecordLog(log, Topics().tasks(stream, partitioner), partitioner, str(data))


def kafka_log(settings: KafkaSettings, topics: Topics, stream: str, partitioner: str) -> TopicRecordLog:
    """Open the topic of a cluster. Raises PlaceError."""
    return TopicRecordLog(
        connected(settings), topics.tasks(stream, partitioner), partitioner, settings.broker
    )


def connected(settings: KafkaSettings) -> KafkaTransport:
    """Connect to a broker for reading. Raises PlaceError if it does not answer, or refuses these settings."""
    try:
        return KafkaTransport(settings, is_read_only=True)
    except TransportError as error:
        raise PlaceError(str(error)) from error
