"""The one interface of whatever records are read from: an embedded log, a reservoir, files, a broker."""

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
    """Which records are wanted; each end is inclusive. More may be given: Spark looks at each row again.

    first_offset and end_offset by partition; -1 as partition: of all those not named.
    """

    first_ms: int = INT64_MIN
    last_ms: int = INT64_MAX
    first_offset: Mapping[int, int] | None = None
    last_offset: Mapping[int, int] | None = None
    partitions: frozenset[int] | None = None

    def offsets(self, partition: int) -> tuple[int, int]:
        """(first, last) offset wanted of a partition."""
        first, last = self.first_offset or {}, self.last_offset or {}
        return (
            first.get(partition, first.get(-1, INT64_MIN)),
            last.get(partition, last.get(-1, INT64_MAX)),
        )

    def wants(self, partition: int) -> bool:
        """Is anything of a partition wanted?"""
        return self.partitions is None or partition in self.partitions


@dataclass(frozen=True, slots=True)
class Piece:
    """What one Spark partition reads: of one task, from `first` to before `end`.

    Offsets for logs, chunk numbers for reservoirs. Plain data: it travels to executors.
    """

    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class StreamSchemas:
    """A stream as registered now, and its schemas by version, as records name them."""

    stream: StreamDefinition
    schemas: Mapping[int, Schema]


@dataclass(frozen=True, slots=True)
class RawRecords:
    """Consecutive records of one task, control records among them.

    offsets int64[n].  records: None where payloads were not asked for.  times int64[n]: at which events were accepted,
    ms; None: as the records say.
    """

    offsets: NDArray[np.int64]
    times: NDArray[np.int64] | None
    records: Records | None


class RecordLog(Protocol):
    """One partitioner's logs of one stream, opened for reading. Nothing is changed, no lock is taken."""

    @property
    def partitioner(self) -> str:
        """Whose logs these are."""

    def pieces(self, bounds: Bounds, piece_records: int) -> list[Piece]:
        """What there is to read within bounds, in pieces of about so many records."""

    def read(self, piece: Piece, bounds: Bounds, *, payloads: bool) -> Iterator[RawRecords]:
        """The records of a piece, in order, a bounded number at a time.

        payloads: False where offsets and times are enough; logs may give them all the same.
        """

    def end_offsets(self) -> dict[int, int]:
        """By partition, the offset after its last record. Raises OptionError where records have no log order."""

    def start_offsets(self) -> dict[int, int]:
        """By partition, the first offset that can be read. Raises OptionError likewise."""

    def offsets_at(self, appended_ms: int) -> dict[int, int]:
        """By partition, the first offset that was appended at a time or later; the end where there is none. Raises
        OptionError where that is not known."""

    def close(self) -> None:
        """Let go of everything."""
