"""The embedded log of an engine's data folder as a RecordLog, also while the engine runs."""

from collections.abc import Iterator
from pathlib import Path

from railgun.messaging.errors import TransportError
from railgun.messaging.read_only import ReadOnlyLog
from railgun.registry.topics import topic_of
from railgun.spark.errors import PlaceError
from railgun.spark.record_log import Bounds, Piece, RawRecords

_READ_RECORDS, _READ_BYTES = 8_192, 4 << 20


class EmbeddedRecordLog:
    """A RecordLog over `<data>/log`. Raises PlaceError."""

    def __init__(self, data: Path, stream: str, partitioner: str) -> None:
        self.partitioner = partitioner
        self._topic = topic_of(stream, partitioner)
        try:
            self._log = ReadOnlyLog(data / "log")
        except TransportError as error:
            raise PlaceError(str(error)) from error
        self._partitions = self._log.topics().get(self._topic, 0)
        if not self._partitions:
            self._log.close()
            raise PlaceError(f"{data}: its log has no topic {self._topic}; was the stream dropped?")

    def pieces(self, bounds: Bounds, piece_records: int) -> list[Piece]:
        found: list[Piece] = []
        for partition in range(self._partitions):
            if not bounds.wants(partition):
                continue
            wanted_first, wanted_last = bounds.offsets(partition)
            first = max(wanted_first, self._log.start_offset(self._topic, partition))
            end = min(wanted_last + 1, self._log.end_offset(self._topic, partition))
            found += [
                Piece(partition, begin, min(begin + piece_records, end))
                for begin in range(first, end, piece_records)
            ]
        return found

    def read(self, piece: Piece, bounds: Bounds, *, payloads: bool) -> Iterator[RawRecords]:
        at = piece.first
        while at < piece.end:
            wanted = min(piece.end - at, _READ_RECORDS)
            fetched = self._log.read(self._topic, piece.partition, at, wanted, _READ_BYTES)
            yield RawRecords(fetched.offsets, None, fetched.buffer, fetched.bounds)
            at = fetched.next_offset

    def end_offsets(self) -> dict[int, int]:
        self._log.catch_up()
        return {each: self._log.end_offset(self._topic, each) for each in range(self._partitions)}

    def start_offsets(self) -> dict[int, int]:
        return {each: self._log.start_offset(self._topic, each) for each in range(self._partitions)}

    def close(self) -> None:
        self._log.close()
