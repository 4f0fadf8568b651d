"""One stream of an engine: takes in events, and answers them once they are durable.

`EngineStreams` has one for each open stream.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from railgun.catalog.catalog import StreamEntry
from railgun.catalog.changes import AddHistory, Change, Deepen, change_to_json
from railgun.catalog.model import StreamDefinition
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
from railgun.ingest.time_unit import TimeUnit
from railgun.ingest.value_queries import KeyValues, Places, QueryReader, ValueRequest, key_values
from railgun.messaging.limits import RECORD_LIMIT_BYTES
from railgun.telemetry.recording import StreamRecord
from railgun.wire.arrow_paths import field_columns
from railgun.wire.columns import EventColumns
from railgun.wire.control_records import encode_control
from railgun.wire.encode import encode_columns
from railgun.wire.records import Records
from railgun.wire.schema import Schema
from railgun.wire.table_validator import TableValidator
from railgun.wire.validator import EventRefusedError, FieldError, Roles
from reservoir.native.jit import keeps_interpreter


def check_record_sizes(schema_version: int, events: EventColumns, first: int) -> None:
    """Raise EventError if a row's record would be too large for the log. No row of the table is taken then.

    first: the index in the table of the first of these events.

    Only rows whose strings come near the limit are encoded to be measured.
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


# So many rows of a table are made durable, processed and answered at once. Tables with many fields have fewer.
_BLOCK_ROWS, _BLOCK_VALUES = 16_384, 1 << 20
# The kernels take only microseconds for so few events, so they keep the interpreter lock.
_BRIEF_EVENTS = 16


class LiveStream:
    """Takes in the events of one stream, and answers them. Threads must not share it.

    After an error that leaves `hosts.is_usable` False it cannot be used any more.
    """

    def __init__(self, entry: StreamEntry, hosts: StreamHosts, threads: int, record: StreamRecord) -> None:
        self._entry, self.hosts, self._record = entry, hosts, record
        self._router, self._ids, self._threads = Router(entry.stream), IdMaker(), threads
        feeds: dict[str, list[Feed]] = {name: [] for name in entry.stream.partitioners}
        for host in hosts:
            feeds[host.place.key.partitioner].append(host.process)
        self._tasks = StreamTasks(feeds, threads)
        self._arrived_ms = max(host.task.admission.clock_ms for host in hosts)
        self._time_unit = TimeUnit(entry.stream)
        self._validators_of: tuple[StreamDefinition, Schema] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Take over the stream's present fields and metrics from the catalogue."""
        metrics = [add.metric for add in self._entry.metrics.values()]
        self._names = self._entry.names
        self._derived = DerivedMetrics(self._entry.derived.values())
        self._forms = forms_of(self._entry.stream.partitioners, metrics)
        self._queries: QueryReader | None = None
        if self._validators_of == (self._entry.stream, self._entry.schema):
            return
        self._validators_of = self._stream, self._schema = self._entry.stream, self._entry.schema
        self._of_records_alone = self._stream.of_records_alone
        incoming = self._stream.incoming(self._schema.version)
        roles = Roles(incoming, self._stream.time, self._stream.id, self._stream.recorded_partitioners)
        self._table_validator = TableValidator(roles)
        self._intake = Intake(self._stream, roles, self._router)

    def tell(self, changes: Sequence[Change]) -> None:
        """Put changes of the catalogue into force, in every task."""
        records = Records.of([encode_control(change_to_json(change)) for change in changes])
        # These give the stream other history, so its tasks are opened again from the folders built with it.
        if isinstance(changes[-1], AddHistory | Deepen):
            self.hosts.replace(records, self._threads)
        else:
            self.hosts.control(list(self.hosts), records)
        self.refresh()

    def score(self, events: Sequence[Mapping[str, Any]], now_ms: int) -> list[dict[str, Any]]:
        """Return the replies to events that arrive together, in order. Raises EventError; then no event was taken."""
        # The size is not known here, so 0 is given. The log refuses a record that is too large.
        texts = [ParsedEvent(event, 0) for event in events]
        return python_replies(self._scored(texts, now_ms, each=False))

    def score_each(self, texts: Sequence[JsonText], now_ms: int) -> ScoredBatch:
        """Take events that arrive together as JSON texts, and return the outcome.

        A refused event does not affect others.
        """
        return self._scored(texts, now_ms, each=True)

    def _scored(self, texts: Sequence[EventText], now_ms: int, *, each: bool) -> ScoredBatch:
        """Score events.

        each: wrong events are refused one by one. Otherwise EventError is raised for the first one, and none is taken.
        """
        if len(texts) > _BRIEF_EVENTS:
            return self._score(texts, now_ms, each=each)
        with keeps_interpreter:
            return self._score(texts, now_ms, each=each)

    def _score(self, texts: Sequence[EventText], now_ms: int, *, each: bool) -> ScoredBatch:
        self._check_taken()
        arrival_ms = self._arrival(now_ms) if self._stream.time is None else 0
        timer = self._record.stage_timer()
        accepted = self._intake.take(texts, self._ids, now_ms, arrival_ms)
        if accepted.refused and not each:
            raise _first_refused(accepted.refused, len(texts))
        self._time_unit.look(accepted.times)
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
        """Return a table with a row for each row of `table`, as `railgun.ingest.result_table` describes it.

        It has the columns `warming` and `partial`.
        between: is called between two blocks of rows. Each block is answered by itself.
        Raises EventError and TableError; then no row was taken.
        """
        results: list[pa.Table] = []
        timer = self._record.stage_timer()
        for block in self._blocks(table, now_ms):
            if results:
                between()
                timer = self._record.stage_timer()
            self._time_unit.look(block.times)
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
        """Return the metrics of keys as they are now: what a duplicate of an event with that key would be answered.

        Raises QueryRefusedError.

        first: the index of the first of these keys in the whole request, for errors.

        All processed events are durable here: `score` and `score_table` sync the log before they return.
        """
        if self._queries is None:
            self._queries = QueryReader(self._entry, self._router)
        query = self._queries.read(request, first)
        n, partitioners = len(query.keys), self._stream.partitioners
        answers = {partitioner: Answers(n, self._forms[partitioner]) for partitioner in partitioners}
        places = Places(partitioners, n)
        # Not in `hosts.critical`: reading leaves nothing half done, so the hosts stay usable after an error. Events
        # will meet the same error.
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
        """Close every task, without a checkpoint."""
        self._tasks.close()
        self.hosts.close()

    def _sent(self, task_batches: Sequence[Sequence[TaskBatch]]) -> list[tuple[TaskHost, Records]]:
        """Return pairs of a task's host and the task's records."""
        return [
            (self.hosts.at(each.share.partitioner, each.share.partition), each.records)
            for of_home in task_batches
            for each in of_home
        ]

    def _blocks(self, table: pa.Table, now_ms: int) -> list[EventColumns]:
        """Check all rows of a table, and return them in blocks. There is at least one block."""
        self._check_taken()
        self._table_validator.check_types(table.schema)
        latest_ms, first = now_ms + self._stream.future_limit_ms, 0
        found: list[EventColumns] = []
        rows = min(_BLOCK_ROWS, max(256, _BLOCK_VALUES // (1 + len(self._schema.fields))))
        batches = table.combine_chunks().to_batches(max_chunksize=rows)
        for batch in batches or [pa.RecordBatch.from_pylist([], table.schema)]:
            n = batch.num_rows
            ids = self._ids.column(max(0, now_ms), n) if self._stream.id is None else None
            times = np.full(n, self._arrival(now_ms), np.int64) if self._stream.time is None else None
            fields = field_columns(batch, self._table_validator.roles.schema)
            admitted = self._table_validator.admit(fields, latest_ms, ids, times)
            if admitted.first_bad is not None:
                raise bad_row(first, admitted.first_bad)
            check_record_sizes(self._schema.version, admitted.events, first)
            found.append(admitted.events)
            first += n
        return found

    def _check_taken(self) -> None:
        """Raise EventError if the stream takes events from its input topic alone."""
        if self._of_records_alone is not None:
            raise EventError([FieldError((), self._of_records_alone)])

    def _arrival(self, now_ms: int) -> int:
        """Return the arrival time of an event without a time field. It is never less than that of the event before."""
        self._arrived_ms = max(self._arrived_ms, now_ms)
        return self._arrived_ms


def _first_refused(refused: Mapping[int, EventRefusedError], n: int) -> EventError:
    """Return the error for the first refused one of n events that are taken together or not at all."""
    row, error = next(iter(refused.items()))
    return EventError(error.errors) if n == 1 else refused_row(row, error)
