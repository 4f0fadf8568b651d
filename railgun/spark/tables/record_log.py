"""The one interface for reading records, whether from an embedded log, a reservoir or a broker."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.wire.records import Records
from railgun.wire.schema import Schema
from reservoir.layout import INT64_MAX, INT64_MIN


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the wanted records; both ends are inclusive. A read may give more, as Spark filters each row again.

    first_ms, last_ms: by time, in ms.
    first_offset, last_offset: by partition; the partition -1 stands for all that are not named.
    partitions: only these; None wants all.
    """

    first_ms: int = INT64_MIN
    last_ms: int = INT64_MAX
    first_offset: Mapping[int, int] | None = None
    last_offset: Mapping[int, int] | None = None
    partitions: frozenset[int] | None = None

    def offsets(self, partition: int) -> tuple[int, int]:
        """Return the (first, last) wanted offset of a partition."""
        first, last = self.first_offset or {}, self.last_offset or {}
        return (
            first.get(partition, first.get(-1, INT64_MIN)),
            last.get(partition, last.get(-1, INT64_MAX)),
        )

    def wants(self, partition: int) -> bool:
        """Whether any record of a partition is wanted."""
        return self.partitions is None or partition in self.partitions


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a task that one Spark partition reads: from `first` to before `end`.

    These are offsets of a log, or numbers of chunks of a reservoir. A piece is plain data that travels to executors.
    """

    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class StreamSchemas:
    """A stream as it is registered now, and its schemas by the version that records name."""

    stream: StreamDefinition
    schemas: Mapping[int, Schema]


@dataclass(frozen=True, slots=True)
class RawRecords:
    """Consecutive records of one task, including control records.

    offsets: int64[n].
    records: None if payloads were not asked for.
    times: int64[n], in ms, the times at which events were accepted; None if the records' own times count.
    """

    offsets: NDArray[np.int64]
    times: NDArray[np.int64] | None
    records: Records | None


class RecordLog(Protocol):
    """The logs of one partitioner of a stream, opened for reading. Reading changes nothing and takes no lock."""

    @property
    def partitioner(self) -> str:
        """The partitioner of the logs."""

    def pieces(self, bounds: Bounds, piece_records: int) -> list[Piece]:
        """Return the pieces within bounds, of about this many records each."""

    def read(self, piece: Piece, bounds: Bounds, *, payloads: bool) -> Iterator[RawRecords]:
        """Yield the records of a piece in order, a bounded number at a time.

        payloads: False if offsets and times are enough. Logs may give payloads all the same.
        """

    def end_offsets(self) -> dict[int, int]:
        """Return by partition the offset after the last record. Raises OptionError if records have no log order."""

    def start_offsets(self) -> dict[int, int]:
        """Return by partition the first offset that can be read. Raises OptionError if records have no log order."""

    def offsets_at(self, appended_ms: int) -> dict[int, int]:
        """Return by partition the first offset that was appended at this time or later; the end if there is none.

        Raises OptionError if the times of appending are not known.
        """

    def close(self) -> None:
        """Close everything."""
