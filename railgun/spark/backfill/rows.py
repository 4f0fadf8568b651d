"""Makes, in Spark's executors, records of tasks from rows of history, and counts the rows that are refused.

An event has one record for each partitioner that it is sent to. From here on history is a log to be sorted. The counts
go along as rows of a task of their own, so that each row is counted once even if Spark repeats work.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from railgun.catalog.model import StreamDefinition
from railgun.ingest.routing import Router
from railgun.spark.backfill.source import REFUSED
from railgun.wire.arrow_records import array_of
from railgun.wire.arrow_types import is_text
from railgun.wire.arrow_values import Typed, read_array
from railgun.wire.columns import REF_LENGTH_BITS, REF_LENGTH_MASK, EventColumns
from railgun.wire.encode import encode_columns
from railgun.wire.schema import FieldType, Schema, WireKind
from railgun.wire.table_validator import AdmittedTable, TableValidator
from railgun.wire.text_values import read_text_array
from railgun.wire.validator import Roles

TASK, TIME, ID, RECORD = "task", "time", "id", "record"
ROWS = pa.schema([(TASK, pa.int32()), (TIME, pa.int64()), (ID, pa.binary()), (RECORD, pa.large_binary())])
ROWS_SQL = f"{TASK} int, {TIME} long, {ID} binary, {RECORD} binary"
EXAMPLES = 5
_SHOWN_BYTES = 80
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, slots=True)
class RowRules:
    """The rules for a row.

    latest_ms: the latest time that is accepted.
    cut_ms: events at or after this time are left to the stream's log.
    is_text: strings are read as the text of any value.
    tasks: the number of each (partitioner, partition) that is to be built.
    counts: what rows that carry counts have in place of a task's number.
    """

    stream: StreamDefinition
    schema: Schema
    latest_ms: int
    cut_ms: int
    is_text: bool
    tasks: dict[tuple[str, int], int]
    counts: int


@dataclass(slots=True)
class Refused:
    """Rows refused for one reason, with the first few as [id, reason]."""

    rows: int = 0
    examples: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class Counts:
    """The numbers of rows: read; at or after the cut; sent to no partitioner (all fields null); refused by reason."""

    read: int = 0
    after_cut: int = 0
    nowhere: int = 0
    refused: dict[str, Refused] = field(default_factory=dict)

    @property
    def refused_rows(self) -> int:
        """The number of refused rows."""
        return sum(each.rows for each in self.refused.values())

    def add(self, other: "Counts") -> None:
        """Add the counts of another object."""
        self.read += other.read
        self.after_cut += other.after_cut
        self.nowhere += other.nowhere
        for reason, found in other.refused.items():
            self.refuse(reason, found.rows, found.examples)

    def refuse(self, reason: str, rows: int, examples: Sequence[list[str]]) -> None:
        """Count more rows that are refused for a reason."""
        refused = self.refused.setdefault(reason, Refused())
        refused.rows += rows
        refused.examples = (refused.examples + list(examples))[:EXAMPLES]

    def as_json(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> "Counts":
        """Return counts from the result of `as_json`."""
        refused = {reason: Refused(**each) for reason, each in body["refused"].items()}
        return cls(body["read"], body["after_cut"], body["nowhere"], refused)


def routing(rules: RowRules) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for mapInArrow that takes rows with the stream's fields and gives ROWS."""

    def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = RowValidator(rules)
        for batch in batches:
            yield from rows.take(batch)
        yield rows.said()

    return route


class RowValidator:
    """Checks, encodes and routes rows of history."""

    def __init__(self, rules: RowRules) -> None:
        self._rules = rules
        stream = rules.stream
        roles = Roles(rules.schema, stream.time, stream.id, stream.recorded_partitioners)
        self._validator = TableValidator(roles, read_any if rules.is_text else read_array)
        self._router = Router(stream)
        assert stream.id is not None
        self._id_place = rules.schema.index(stream.id)
        self.counts = Counts()

    def take(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the records of a batch, task by task."""
        counts, rules = self.counts, self._rules
        counts.read += batch.num_rows
        bad, batch = self._unreadable(batch)
        admitted = self._validator.admit(batch, rules.latest_ms)
        events = admitted.events
        if bad.any() or admitted.first_bad is not None:
            self._refuse(batch, admitted, bad)
            events = events.take(np.flatnonzero((admitted.bad == 0) & ~bad))
        kept = events.times < rules.cut_ms
        if not kept.all():
            counts.after_cut += len(events) - int(kept.sum())
            events = events.take(np.flatnonzero(kept))
        if not len(events):
            return
        yield from self._routed(events)

    def said(self) -> pa.RecordBatch:
        """Return the counts as a row."""
        said = json.dumps(self.counts.as_json()).encode()
        return pa.RecordBatch.from_pylist([{TASK: self._rules.counts, TIME: 0, ID: b"", RECORD: said}], ROWS)

    def _routed(self, events: EventColumns) -> Iterator[pa.RecordBatch]:
        """Yield the records of events, task by task, and count the events that are sent to no partitioner."""
        records = encode_columns(self._rules.schema.version, events)
        texts = array_of(records)
        times, ids = pa.array(events.times), self._ids(events)
        sent: NDArray[np.bool_] = np.zeros(len(events), np.bool_)
        for share in (share for shares in self._router.shares(events) for share in shares):
            rows = np.arange(len(events)) if share.rows is None else share.rows
            sent[rows] = True
            number = self._rules.tasks.get((share.partitioner, share.partition))
            if number is None:
                continue
            columns = [times, ids, texts]
            if share.rows is not None:
                columns = [column.take(pa.array(share.rows)) for column in columns]
            numbers = pa.array(np.full(len(rows), number, np.int32))
            yield pa.RecordBatch.from_arrays([numbers, *columns], schema=ROWS)
        self.counts.nowhere += len(events) - int(sent.sum())

    def _ids(self, events: EventColumns) -> pa.Array:
        """Return the bytes that ids sort by. Text has its own; numbers are big-endian with the sign bit turned."""
        column = events.fields[self._id_place]
        if column.type.kind is WireKind.LONG:
            return long_ids(column.words)
        assert events.ids.heap is not None
        return text_ids(events.ids.words, events.ids.heap)

    def _unreadable(self, batch: pa.RecordBatch) -> tuple[NDArray[np.bool_], pa.RecordBatch]:
        """Count the rows that their file's reader could not read.

        Returns which they are, and the batch without that column.
        """
        bad: NDArray[np.bool_] = np.zeros(batch.num_rows, np.bool_)
        place = batch.schema.get_field_index(REFUSED)
        if place < 0:
            return bad, batch
        for row, said in enumerate(batch.column(place).to_pylist()):
            if said is not None:
                name, _, why = said.partition("\0")
                bad[row] = True
                self.counts.refuse(f"{name or 'row'}: unreadable", 1, [["", why]])
        return bad, batch.select([name for name in batch.schema.names if name != REFUSED])

    def _refuse(self, batch: pa.RecordBatch, admitted: AdmittedTable, bad: NDArray[np.bool_]) -> None:
        """Count each bad row once, by the first thing that is wrong with it."""
        seen, ids = bad.copy(), admitted.events.ids
        for complaint in admitted.complaints:
            rows = (complaint.rows != 0) & ~seen
            seen |= rows
            if not rows.any():
                continue
            reason = f"{complaint.first.field}: {complaint.what}"
            known = self.counts.refused.get(reason)
            room = EXAMPLES - (0 if known is None else len(known.examples))
            where = [int(row) for row in np.flatnonzero(rows)[:room]]
            examples = [
                [ids.string(row)[:_SHOWN_BYTES] if ids.words[row] else "", self._why(batch, row)]
                for row in where
            ]
            self.counts.refuse(reason, int(rows.sum()), examples)

    def _why(self, batch: pa.RecordBatch, row: int) -> str:
        """Return the first thing that is wrong with a row. A batch tells that only of its first bad row."""
        alone = self._validator.admit(batch.slice(row, 1), self._rules.latest_ms)
        return alone.complaints[0].first.msg


def long_ids(words: NDArray[np.uint64]) -> pa.Array:
    """Return ids that are numbers as bytes that sort as the numbers do."""
    turned = (words ^ _SIGN).astype(">u8")
    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(words), [None, pa.py_buffer(turned)])
    return fixed.cast(pa.binary())


def text_ids(words: NDArray[np.uint64], heap: NDArray[np.uint8]) -> pa.Array:
    """Return the bytes of ids that are text. words: references into the heap."""
    lengths = (words & np.uint64(REF_LENGTH_MASK)).astype(np.int64)
    starts = (words >> np.uint64(REF_LENGTH_BITS)).astype(np.int64)
    ends: NDArray[np.int64] = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    # Byte i of the result lies this many bytes behind the start of its own string.
    within = np.arange(int(ends[-1])) - np.repeat(ends[:-1], lengths)
    heap = heap[np.repeat(starts, lengths) + within]
    places = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(lengths), [None, places, pa.py_buffer(heap)])


def read_any(array: pa.Array, type_: FieldType) -> Typed:
    """Return values from an array: text is read as the text of a value, anything else as the value that it is."""
    if is_text(array.type) and type_.kind is not WireKind.STRING:
        return read_text_array(array, type_)
    return read_array(array, type_)
