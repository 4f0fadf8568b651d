"""Events that were checked and accepted, and how they become records of tasks.

`intake.py` makes an `AcceptedBatch` of the events of a request. Front-ends and engines take the records from it, and
`replies.py` the ids.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from railgun.catalog.model import ALL
from railgun.ingest.routing import Share
from railgun.ingest.stream_tasks import TaskBatch
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK, Column, EventColumns
from railgun.wire.encode import NO_REPLY, encode_columns, join_event
from railgun.wire.partition import partition_key
from railgun.wire.records import Records
from railgun.wire.schema import Schema, WireKind
from railgun.wire.validator import EventRefusedError

Position = tuple[int, int, int]
"""The position of an event in its input topic: a number for the partition, the offset, and the committed offset."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """The part of records by which replies find their way back to a front-end.

    reply_to: the front-end's number; NO_REPLY if no replies are wanted.
    incarnation: distinguishes the runs of one front-end.
    sequence: the number of the first event. The next ones count up from it.
    positions: the position of each event in its input topic; None if the events came from none.
    """

    reply_to: int = NO_REPLY
    incarnation: int = 0
    sequence: int = 0
    positions: Sequence[Position] | None = None


UNASKED = Correlation()


class Row(NamedTuple):
    """One event as the validator gives it, already encoded.

    Events are encoded one by one, as they are checked, because their values are then still in the processor's caches.
    id, time_ms: the event's id and time; empty and 0 if its fields ask for values, without an event.
    fields: how many fields `encoded` has.
    encoded: the fields' values, as `encode_values` makes them and `join_event` takes them.
    routed: the values of the partitioners' fields, which decide on the tasks.
    """

    id: str
    time_ms: int
    fields: int
    encoded: bytes
    routed: Sequence[Any]


@dataclass(frozen=True, slots=True)
class AcceptedBatch:
    """The n accepted events of a request, in order. Each event of a request is a text (JSON, or read already).

    rows int64[n]: the indices of the accepted texts among all of the request; None if all were accepted.
    ids: those that the events have, or made-up ones.
    times: the times of the events, in ms.
    shares: by partitioner, the events that each task gets: indices among the n.
    events: the content of the records, under `schema`; as columns if there are many, else row by row.
    routed: by partitioner, the values by which the events were divided among tasks; None for `*`. Rows have them
        themselves.
    refused: by the index of its text in the request, why an event was refused.
    """

    rows: NDArray[np.int64] | None
    ids: Sequence[str | int]
    times: Sequence[int]
    shares: Sequence[Sequence[Share]]
    events: EventColumns | Sequence[Row]
    schema: Schema
    routed: Sequence[Column | None] = ()
    refused: Mapping[int, EventRefusedError] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def task_batches(self, correlation: Correlation = UNASKED) -> list[list[TaskBatch]]:
        """Return the records that each task gets, by partitioner."""
        records = self.records(correlation)
        return [[TaskBatch.of(share, records) for share in each] for each in self.shares]

    def records(self, correlation: Correlation = UNASKED) -> Records:
        """Return a record for each event, in order."""
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
        """Return the keys by which the events of a share are partitioned; None for `*`, which needs no keys.

        home: the index of the partitioner among those of the stream.
        """
        if share.partitioner == ALL:
            return None
        if isinstance(self.events, EventColumns):
            column = self.routed[home]
            assert column is not None
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
        """Encode all events in one call, if they come from one partition as usual; else in one call for each."""
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
    """Return the record of one event. place: its index among the events of the correlation."""
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
