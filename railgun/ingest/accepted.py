"""Events that were found right, before they are records: whoever sends them says how replies find back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from railgun.ingest.routing import Router, Share
from railgun.ingest.stream_tasks import TaskBatch
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK, Column, EventColumns
from railgun.wire.encode import NO_REPLY, encode_columns, join_event
from railgun.wire.partition import partition_key
from railgun.wire.records import Records
from railgun.wire.schema import Schema, WireKind
from railgun.wire.validator import EventRefusedError

Position = tuple[int, int, int]
"""Where an event came from: the partition of its stream's input topic, the offset there, what is committed there."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """How the replies to a run of events find back. reply_to: the front-end's number, NO_REPLY where none is wanted.

    sequence: of the first event; they count up.  positions: by event, where they came from an input topic.
    """

    reply_to: int = NO_REPLY
    incarnation: int = 0
    sequence: int = 0
    positions: Sequence[Position] | None = None


UNASKED = Correlation()


class Row(NamedTuple):
    """One event as the validator gives it. fields, encoded: as `join_event` takes them: values that were kept until all
    events of a run are there would have left the processor's caches.  routed: what the partitioners' fields say.
    """

    id: str
    time_ms: int
    fields: int
    encoded: bytes
    routed: Sequence[Any]


@dataclass(frozen=True, slots=True)
class AcceptedBatch:
    """The events of some texts that can be recorded, n of them, in order.

    rows int64[n]: which texts they are; None: all.  ids: as clients wrote them, or made.  times: int ms, the clients'
    own.  shares: by partitioner, which task gets which; rows there are places among the n.  refused: by text.
    events: what will be recorded, under this schema.
    """

    rows: NDArray[np.int64] | None
    ids: Sequence[str | int]
    times: Sequence[int]
    shares: Sequence[Sequence[Share]]
    events: EventColumns | Sequence[Row]
    schema: Schema
    router: Router
    refused: Mapping[int, EventRefusedError] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def task_batches(self, correlation: Correlation = UNASKED) -> list[list[TaskBatch]]:
        """By partitioner, the records that each task gets."""
        records = self.records(correlation)
        return [[TaskBatch.of(share, records) for share in each] for each in self.shares]

    def records(self, correlation: Correlation = UNASKED) -> Records:
        """A record for each event, in order."""
        if not isinstance(self.events, EventColumns):
            return Records.of(
                [
                    encode_row(self.schema.version, row, correlation, place)
                    for place, row in enumerate(self.events)
                ]
            )
        if correlation.positions is None or not len(self):
            return self._columns(self.events, correlation, None)
        return self._with_positions(self.events, correlation, np.array(correlation.positions, np.int64))

    def keys(self, home: int, share: Share) -> list[bytes] | None:
        """The keys that the events of a share are partitioned by; None where all go to one partition, whatever they
        say. home: which of the partitioners."""
        place = self.router.places[home]
        if place < 0:
            return None
        if isinstance(self.events, EventColumns):
            column = self.events.fields[place]
            return _column_keys(column if share.rows is None else column.take(share.rows))
        rows = range(len(self)) if share.rows is None else share.rows.tolist()
        return [partition_key(self.events[row].routed[home]) for row in rows]

    def _columns(
        self,
        events: EventColumns,
        correlation: Correlation,
        source: tuple[int, NDArray[np.int64], int] | None,
    ) -> Records:
        return encode_columns(
            self.schema.version,
            events,
            correlation.reply_to,
            correlation.incarnation,
            correlation.sequence,
            source,
        )

    def _with_positions(
        self, events: EventColumns, correlation: Correlation, positions: NDArray[np.int64]
    ) -> Records:
        """One call where all come from one partition, as they do; else one for each."""
        places, which = np.unique(positions[:, [0, 2]], axis=0, return_inverse=True)
        offsets = np.ascontiguousarray(positions[:, 1])
        made = [
            self._columns(events, correlation, (partition, offsets, committed))
            for partition, committed in places.tolist()
        ]
        if len(made) == 1:
            return made[0]
        lists = [records.to_list() for records in made]
        return Records.of([lists[one][row] for row, one in enumerate(which.reshape(-1).tolist())])


def encode_row(schema_version: int, row: Row, correlation: Correlation = UNASKED, place: int = 0) -> bytes:
    """The record of one event. place: among those that the correlation is of."""
    return join_event(
        schema_version,
        row.id,
        row.time_ms,
        row.fields,
        row.encoded,
        correlation.reply_to,
        correlation.incarnation,
        correlation.sequence + place,
        None if correlation.positions is None else correlation.positions[place],
    )


def _column_keys(column: Column) -> list[bytes]:
    if column.type.kind is not WireKind.STRING:
        return [b"%d" % value for value in column.words.view(np.int64).tolist()]
    assert column.heap is not None
    heap = column.heap.tobytes()
    starts = (column.words >> np.uint64(REF_LENGTH_BITS)).tolist()
    ends = (column.words >> np.uint64(REF_LENGTH_BITS)) + (column.words & np.uint64(REF_LENGTH_MASK))
    return [heap[start:end] for start, end in zip(starts, ends.tolist())]
