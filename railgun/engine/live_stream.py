"""One stream of an engine: takes events in, and gives answers once they are durable.

A table with a row whose record would be too large for the log is refused before any of its rows is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.changes import AddHistory, Change, Deepen, change_to_json
from railgun.catalog.model import ALL, StreamDefinition
from railgun.engine.errors import EventError, bad_row, refused_row
from railgun.engine.stream_hosts import StreamHosts
from railgun.host.task_host import TaskHost
from railgun.ingest.answers import Answers, forms_of
from railgun.ingest.derived import DerivedMetrics
from railgun.ingest.ids import IdMaker
from railgun.ingest.intake import HEAD_BYTES, VALUE_BYTES, EventText, Intake, JsonText, ParsedEvent
from railgun.ingest.recording import note_batch, note_refused
from railgun.ingest.replies import ScoredBatch, python_replies
from railgun.ingest.result_table import result_table
from railgun.ingest.routing import Router
from railgun.ingest.stream_tasks import Feed, StreamTasks, TaskBatch
from railgun.ingest.value_queries import KeyValues, Places, QueryReader, ValueRequest, key_values
from railgun.messaging.limits import RECORD_LIMIT_BYTES
from railgun.telemetry.recording import StreamRecord
from railgun.wire.columns import EventColumns
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records
from railgun.wire.schema import Schema
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import EventRefusedError, FieldError, Roles
from reservoir.native.jit import keeps_interpreter


def check_record_sizes(schema_version: int, events: EventColumns, first: int) -> None:
    """Raise EventError for the first row that cannot be recorded; first: the place of row 0 in its table.

    Records are made to be measured only of rows whose strings come near to the limit.
    """
    string_bytes = np.zeros(len(events), np.int64)
    for column in (events.ids, *events.fields):
        if column.heap is not None:
            string_bytes += column.lengths_bytes()
    others_bytes = VALUE_BYTES * len(events.fields) + HEAD_BYTES
    for row in np.flatnonzero(string_bytes > RECORD_LIMIT_BYTES - others_bytes).tolist():
        record = encode_columns(schema_version, events.take(np.array([row])))
        size_bytes = int(record.offsets[-1])
        if size_bytes <= RECORD_LIMIT_BYTES:
            continue
        reason = f"its record would have {size_bytes} bytes, at most {RECORD_LIMIT_BYTES} are taken"
        message = f"row {first + row}: {reason}; send smaller events; no row of this table was taken"
        raise EventError([FieldError((), reason)], first + row, message)


# Rows of a table that are made durable, processed and answered in one go; fewer of those with many fields.
_BLOCK_ROWS, _BLOCK_VALUES = 16_384, 1 << 20
# The kernels of so few events take microseconds.
_BRIEF_EVENTS = 16


class LiveStream:
    """Not to be shared between threads. An error that leaves `hosts.is_usable` False makes it unusable."""

    def __init__(self, entry: StreamEntry, hosts: StreamHosts, threads: int, record: StreamRecord) -> None:
        self._entry, self.hosts, self._record = entry, hosts, record
        self._router, self._ids, self._threads = Router(entry.stream), IdMaker(), threads
        feeds: dict[str, list[Feed]] = {name: [] for name in entry.stream.partitioners}
        for host in hosts:
            feeds[host.place.key.partitioner].append(host.process)
        self._tasks = StreamTasks(feeds, threads)
        self._arrived_ms = max(host.task.admission.clock_ms for host in hosts)
        self._validators_of: tuple[StreamDefinition, Schema] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Take over what the catalogue now says of the stream."""
        metrics = [add.metric for add in self._entry.metrics.values()]
        self._names = self._entry.names
        self._derived = DerivedMetrics(self._entry.derived.values())
        self._forms = forms_of(self._entry.stream.partitioners, metrics)
        self._queries: QueryReader | None = None
        if self._validators_of == (self._entry.stream, self._entry.schema):
            return
        self._validators_of = self._stream, self._schema = self._entry.stream, self._entry.schema
        partitioners = tuple(name for name in self._stream.partitioners if name != ALL)
        roles = Roles(self._schema, self._stream.time, self._stream.id, partitioners)
        self._table_validator = TableValidator(roles)
        self._intake = Intake(self._stream, self._schema, roles, self._router)

    def tell(self, changes: Sequence[Change]) -> None:
        """Bring changes of the catalogue into force, in every task at once."""
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        if isinstance(changes[-1], AddHistory | Deepen):
            self.hosts.replace(records, self._threads)
        else:
            self.hosts.control(list(self.hosts), records)
        self.refresh()

    def score(self, events: Sequence[Mapping[str, Any]], now_ms: int) -> list[dict[str, Any]]:
        """The replies to events that arrive together, in order. Raises EventError, having taken none of them."""
        # Of no size: the log says which record is too large.
        texts = [ParsedEvent(event, 0) for event in events]
        return python_replies(self._scored(texts, now_ms, each=False))

    def score_each(self, texts: Sequence[JsonText], now_ms: int) -> ScoredBatch:
        """What becomes of events that arrive together as JSON texts: one that is refused harms no other."""
        return self._scored(texts, now_ms, each=True)

    def _scored(self, texts: Sequence[EventText], now_ms: int, *, each: bool) -> ScoredBatch:
        """each: one that is refused harms no other; else EventError is raised for it, and none is taken."""
        if len(texts) > _BRIEF_EVENTS:
            return self._score(texts, now_ms, each=each)
        with keeps_interpreter:
            return self._score(texts, now_ms, each=each)

    def _score(self, texts: Sequence[EventText], now_ms: int, *, each: bool) -> ScoredBatch:
        arrival_ms = self._arrival(now_ms) if self._stream.time is None else 0
        timer = self._record.stage_timer()
        accepted = self._intake.take(texts, self._ids, now_ms, arrival_ms)
        if accepted.refused and not each:
            raise _first_refused(accepted.refused, len(texts))
        timer.end("admission")
        task_batches = accepted.task_batches()
        with self.hosts.appending(self._sent(task_batches)):
            answers = self._tasks.process(task_batches, self._forms, len(accepted))
            timer.end("process")
        timer.end("durable")
        note_batch(self._record, len(accepted), answers)
        note_refused(self._record, accepted.refused.values())
        return ScoredBatch(accepted, self._names, answers, self._derived)

    def score_table(self, table: pa.Table, now_ms: int, between: Callable[[], None]) -> pa.Table:
        """A row per row of a table: `railgun.ingest.result_table`, with `warming` and `partial`.

        between: called between blocks of rows, each of which is answered by itself.  Raises EventError, having taken no
        row, and TableError.
        """
        results: list[pa.Table] = []
        timer = self._record.stage_timer()
        for block in self._blocks(table, now_ms):
            if results:
                between()
                timer = self._record.stage_timer()
            records = encode_columns(self._schema.version, block)
            task_batches = self._tasks.task_batches(records, self._router.shares(block))
            timer.end("admission")
            with self.hosts.appending(self._sent(task_batches)):
                answers = self._tasks.process(task_batches, self._forms, len(block))
                timer.end("process")
            timer.end("durable")
            note_batch(self._record, len(block), answers)
            derived = self._derived.answers(block, self._schema, answers)
            results.append(
                result_table(self._stream, self._names, block, answers, with_life=True, derived=derived)
            )
            timer.end("encode")
        return pa.concat_tables(results)

    def values(self, request: ValueRequest, first: int = 0) -> list[KeyValues]:
        """The metrics of keys, as a duplicate would be answered now. Raises QueryRefusedError.

        first: the place of their first in the whole request, for errors.

        All that was processed is durable here: the log is synced before `score` and `score_table` return.
        """
        if self._queries is None:
            self._queries = QueryReader(self._entry, self._router)
        query = self._queries.read(request, first)
        n, partitioners = len(query.keys), self._stream.partitioners
        answers = {partitioner: Answers(n, self._forms[partitioner]) for partitioner in partitioners}
        places = Places(partitioners, n)
        # Not critical: an error leaves nothing half done, and events will meet it too.
        for task_batch in (each for of_home in query.batch.task_batches() for each in of_home):
            share = task_batch.share
            assert share.rows is not None
            replies = self.hosts.at(share.partitioner, share.partition).task.answer(task_batch.records)
            answers[share.partitioner].take(replies, share.rows)
            places.note(
                share.partitioner, share.rows, replies.decoded.time[: replies.n], replies.first_offset
            )
        return key_values(query, answers, self._derived, places)

    def close(self) -> None:
        """Let every task go, without a checkpoint."""
        self._tasks.close()
        self.hosts.close()

    def _sent(self, task_batches: Sequence[Sequence[TaskBatch]]) -> list[tuple[TaskHost, Records]]:
        """The records of each task, with its host."""
        return [
            (self.hosts.at(each.share.partitioner, each.share.partition), each.records)
            for of_home in task_batches
            for each in of_home
        ]

    def _blocks(self, table: pa.Table, now_ms: int) -> list[EventColumns]:
        """The rows of a table, all of them checked, in blocks; one block at least."""
        self._table_validator.check_types(table.schema)
        latest_ms, first = now_ms + self._stream.future_limit_ms, 0
        found: list[EventColumns] = []
        rows = min(_BLOCK_ROWS, max(256, _BLOCK_VALUES // (1 + len(self._schema.fields))))
        batches = table.combine_chunks().to_batches(max_chunksize=rows)
        for batch in batches or [pa.RecordBatch.from_pylist([], table.schema)]:
            n = batch.num_rows
            ids = self._ids.column(max(0, now_ms), n) if self._stream.id is None else None
            times = np.full(n, self._arrival(now_ms), np.int64) if self._stream.time is None else None
            admitted = self._table_validator.admit(batch, latest_ms, ids, times)
            if admitted.first_bad is not None:
                raise bad_row(first, admitted.first_bad)
            check_record_sizes(self._schema.version, admitted.events, first)
            found.append(admitted.events)
            first += n
        return found

    def _arrival(self, now_ms: int) -> int:
        """When an event without a time field arrives: never before the one before it."""
        self._arrived_ms = max(self._arrived_ms, now_ms)
        return self._arrived_ms


def _first_refused(refused: Mapping[int, EventRefusedError], n: int) -> EventError:
    """The error for the first of n events that are taken together or not at all."""
    row, error = next(iter(refused.items()))
    return EventError(error.errors) if n == 1 else refused_row(row, error)
