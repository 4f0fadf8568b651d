"""Processes one task: records of its log go in, replies come out. It owns the reservoir, the state and the plan.

`TaskHost` feeds it, and calls `work` between batches. It writes in the task's folder, and does not know the transport.
"""

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from railgun.catalog.changes import (
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    PutStream,
    Warm,
    change_from_json,
)
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import LatePolicy, StreamDefinition
from railgun.plan.program import TIME_MAX, TIME_MIN
from railgun.state.checkpoint import Checkpointer
from railgun.state.paged.pool import PagePool
from railgun.state.rows.table import EntityTable
from railgun.state.store import Store
from railgun.task.admission import Admission, Admitted
from railgun.task.checkpoints import CheckpointWork
from railgun.task.computed_columns import ColumnComputer
from railgun.task.digest import digest
from railgun.task.environment import TaskEnvironment
from railgun.task.errors import (
    HistoryMissingError,
    LogGapError,
    MalformedControlError,
    TaskError,
    UnknownSchemaError,
)
from railgun.task.fills import FillWork
from railgun.task.inputs import InputMemory, Met
from railgun.task.journal import Journal
from railgun.task.meta import Crossing
from railgun.task.metrics import TaskMetrics
from railgun.task.plan_runtime import PlanRuntime, subtract_clamped
from railgun.task.queries import QueryWork
from railgun.task.replies import Replies, ReplyWriter, discard_replies, partials_of
from railgun.task.settings import TaskIdentity as TaskIdentity
from railgun.task.settings import TaskSettings
from railgun.task.sweep import SweepWork
from railgun.wire.control_records import ControlRecordError, decode_control
from railgun.wire.decode import Decoded
from railgun.wire.msgpack import Status
from railgun.wire.records import CONTROL, Records, runs_of
from railgun.wire.reply import Partial
from railgun.wire.schema import Schema
from reservoir import layout as at
from reservoir.cursors.held_frame import Ahead
from reservoir.reservoir import Reservoir

# A brief step is smaller by these factors. Checkpoints hold the interpreter lock while they write, so their steps are
# even smaller.
_BRIEF_SHARE, _BRIEF_CHECKPOINT_SHARE = 8, 16
# After this time a brief step ends with the part that it is doing, so that an event waits for no longer than that.
_BRIEF_S = 0.0003
# How many rows are converted to a new layout at a time, before an event needs them.
_UPGRADED_ROWS = 64
# Definitions often change several times in a row. So rows and fills wait until no change has come for the first of
# these times, but no longer than the second. Each change makes converted rows outdated, and metrics that start
# together are filled together.
_SETTLED_S, _SETTLED_AT_LATEST_S = 0.1, 1.0
# How many slots are searched at a time for rows of dropped groups.
_LEAVING_SLOTS = 2_048


class TaskProcessor:
    """Processes the records of one task in log order. One thread uses it. `railgun.task.recovery.open_task` makes it.

    position: the offset of the next record that it wants.
    unreadable_records: how many records it has skipped since it was opened.
    busy_s, maintenance_s: the seconds that it has spent in `process` and in `work`.
    on_begin_deepening: is called when a record begins a deepening, at the position of the record.
    """

    def __init__(
        self,
        identity: TaskIdentity,
        reservoir: Reservoir,
        store: Store,
        column_computer: ColumnComputer,
        settings: TaskSettings,
        environment: TaskEnvironment,
    ) -> None:
        self.identity, self.settings = identity, settings
        self.reservoir, self.store = reservoir, store
        salt = int.from_bytes(environment.randomness(8), "little", signed=True)
        self.table = EntityTable(settings.row_cache_bytes, store, salt=salt)
        self.pool = PagePool(settings.page_cache_bytes, store)
        self.checkpointer = Checkpointer(store, [self.table, self.pool], environment.executor)
        self.runtime = PlanRuntime(reservoir, self.table, self.pool, column_computer, identity.key)
        self.admission = Admission(0, False, 1)
        self.journal, self.metrics = Journal(), TaskMetrics()
        self.inputs, self._writer = InputMemory(), ReplyWriter(identity)
        # The parts hold their task weakly. So the memory of a closed task is freed at once, and not at the next
        # garbage collection.
        itself: TaskProcessor = weakref.proxy(self)
        self.fills = FillWork(itself)
        self.stream: StreamDefinition | None = None
        self.schemas: dict[int, StreamDefinition] = {}
        self.position, self.leader_epoch = 0, -1
        self.history = self.begun = self.topic_id = ""
        self.gap: Crossing | None = None
        self.unreadable_records = 0
        self.on_begin_deepening: Callable[[BeginDeepening], None] | None = None
        self.busy_s = self.maintenance_s = 0.0
        self.names: tuple[str, ...] = ()
        self._is_built = True
        self._rebuilt_s, self._unsettled_s = -math.inf, math.inf
        self._next_part = 0
        self._least_before_ms = TIME_MAX
        self.retained_ms = TIME_MIN
        self.now, self.used_s, self._executor = environment.now, environment.used_s, environment.executor
        self.sweep, self._queries = SweepWork(itself), QueryWork(itself)
        self.checkpoints = CheckpointWork(itself)

    def begin_checkpoints(
        self, sync_log: Callable[[int], None] | None, *, has_earlier_form: bool = False
    ) -> None:
        """Enable checkpoints. To be called once the task is recovered.

        has_earlier_form: whether the task was recovered from the checkpoint of an earlier release.
        """
        self.checkpoints = CheckpointWork(weakref.proxy(self), sync_log, has_earlier_form=has_earlier_form)

    # --- records -----------------------------------------------------------------------------------

    def process(self, records: Records, first_offset: int, deliver: Callable[[Replies], None]) -> None:
        """Process consecutive records. `deliver` gets the replies to the events among them, in order.

        Replies hold until `deliver` returns. Raises LogGapError, UnknownSchemaError, MalformedControlError, and what
        storage raises; after an error the task must be opened again.
        """
        if first_offset != self.position:
            raise LogGapError(str(self.identity), f"offset {first_offset} was given, {self.position} is next")
        started_s = self.now()
        for kind, run in runs_of(records):
            if kind == CONTROL or self.stream is None:
                for row in range(len(run)):
                    self._control(run.record(row))
            else:
                self._event_run(run, deliver)
        self._build()
        self.busy_s += self.now() - started_s

    def answer(self, queries: Records) -> Replies:
        """Answer value queries (`QueryWork.answer`)."""
        if self.stream is None:
            raise TaskError(str(self.identity), "it was asked for values before its stream's record was read")
        self._build()
        return self._queries.answer(queries)

    def encode_answers(self, replies: Replies) -> list[tuple[int, bytes]]:
        """Return (front-end, reply record) for every front-end that waits for some of the answers just given."""
        return self._queries.encode(replies)

    def catch_up(self, batches: Iterable[tuple[int, Records]], threads: int) -> None:
        """Process records without sending replies.

        batches: pairs of (offset of the first record, records).
        threads: how many threads read the state.
        """
        with self.store.reading_with(self._executor, threads):
            for first_offset, records in batches:
                self.process(records, first_offset, discard_replies)

    def work(self, *, brief: bool = False) -> bool:
        """Do a bounded amount of background work: rows, fills, sweep, checkpoints. Returns whether there is more to
        do now.

        brief: whether it must take well under a millisecond, because the caller may get an event at any moment. The
            next call continues with the part after the last one.
        """
        started_s = now_s = self.now()
        parts = (self._tend_rows, self._fill, self._sweep, self._checkpoint)
        more, left = False, len(parts)
        while left and not (brief and now_s - started_s >= _BRIEF_S):
            more |= parts[self._next_part](brief=brief)
            self._next_part = (self._next_part + 1) % len(parts)
            left, now_s = left - 1, self.now()
        self.maintenance_s += now_s - started_s
        return more or left > 0

    def _tend_rows(self, *, brief: bool) -> bool:
        touching, leaving = self.table.touch_ahead(), self.table.let_go(_LEAVING_SLOTS)
        return (self._is_settled() and self.table.upgrade(_UPGRADED_ROWS)) or touching or leaving

    def _fill(self, *, brief: bool) -> bool:
        return self._is_settled() and self.fills.step(_BRIEF_SHARE if brief else 1)

    def _sweep(self, *, brief: bool) -> bool:
        return self.sweep.step(_BRIEF_SHARE if brief else 1) and brief

    def _checkpoint(self, *, brief: bool) -> bool:
        return self.checkpoints.step(_BRIEF_CHECKPOINT_SHARE if brief else 1)

    def _is_settled(self) -> bool:
        now_s = self.now()
        if now_s < self._rebuilt_s + _SETTLED_S:
            return now_s >= self._unsettled_s + _SETTLED_AT_LATEST_S
        self._unsettled_s = math.inf
        return True

    @property
    def _batch_max(self) -> int:
        """How many records a batch may have. It is bounded by a number and by the bytes of the results."""
        settings = self.settings
        metrics = max(1, len(self.metrics.by_name))
        return max(1, min(settings.batch_events_max, settings.result_bytes_max // (17 * metrics)))

    def _event_run(self, events: Records, deliver: Callable[[Replies], None]) -> None:
        self._build()
        n, at_most = len(events), self._batch_max
        for first in range(0, n, at_most):
            part = events if n <= at_most else events.part(first, min(n, first + at_most))
            deliver(self._events(self._read(part)))

    def _read(self, events: Records) -> Decoded:
        decoded = self.runtime.arrivals.read(events)
        if decoded.exceptions:
            for row in np.flatnonzero(decoded.status[: decoded.n] == Status.UNKNOWN_SCHEMA).tolist():
                raise UnknownSchemaError(
                    f"{self.identity} offset {self.position + row}", decoded.describe(row)
                )
        return decoded

    def _events(self, decoded: Decoded) -> Replies:
        n, first = decoded.n, self.position
        admission, runtime = self.admission, self.runtime
        self.journal.begin(first, *admission.settings_in_force)
        self._least_before_ms = admission.least_ms
        again = self.inputs.meet(decoded)
        met = None if again is None else again.met
        admitted = admission.admit(decoded.status, decoded.time, decoded.id_hi, decoded.id_lo, n, met)
        self.journal.note(admitted.accepted)
        self.append(decoded)
        execution = runtime.execution
        execution.begin(n, admission, self.reservoir.words[at.OUT_SLOT], runtime.arrivals.columns)
        execution.bind_changelog(self.reservoir.changelog)
        done = 0
        while done < n:
            complete = self.reservoir.advance(done, n)
            if complete == done:
                execution.drain(done)
            else:
                execution.records(done, complete)
                done = complete
        replies = self._replies(decoded, admitted, first)
        if again is not None:
            replies = self._repeated(replies, again)
        self._settle(admitted, n)
        return replies

    def _repeated(self, replies: Replies, again: Met) -> Replies:
        """Keep the replies to records that an input topic may give again, and replace the replies to those that came
        again.
        """
        if len(again.fresh):
            self.inputs.keep(self._writer.rows(replies, again.fresh))
        return replace(replies, repeats=again.repeats) if again.repeats else replies

    def encode(self, replies: Replies) -> list[tuple[int, bytes]]:
        """Return (front-end, reply record) for every front-end that waits for some of the replies just delivered."""
        return self._writer.records(replies)

    def append(self, decoded: Decoded) -> None:
        """Append the records that the admission has just accepted to the reservoir."""
        words = self.reservoir.words
        _, accepted, times, clocks = self.admission.addresses
        words[at.IN_ACCEPTED], words[at.IN_TIME], words[at.IN_CLOCK] = accepted, times, clocks
        words[at.IN_SEQ], words[at.IN_FIRST_SEQ] = 0, self.position
        self._bind(decoded)
        self.reservoir.append()

    def restore(self, decoded: Decoded, accepted: int, times: int, seqs: int) -> None:
        """Put records that were accepted before back into the open region of the reservoir, unless they are sealed.

        accepted, times, seqs: addresses of uint8[n], int64[n] and int64[n]; accepted 0: all were.
        """
        words = self.reservoir.words
        words[at.IN_ACCEPTED], words[at.IN_TIME], words[at.IN_SEQ] = accepted, times, seqs
        self._bind(decoded)
        self.reservoir.restore()

    def _bind(self, decoded: Decoded) -> None:
        """Tell the reservoir where a decoded batch lies."""
        words, arrivals = self.reservoir.words, self.runtime.arrivals
        words[at.IN_N] = decoded.n
        words[at.IN_ID_HI], words[at.IN_ID_LO] = decoded.id_hi_at, decoded.id_lo_at
        words[at.IN_PAYLOAD], words[at.IN_PAYLOAD_OFFSETS] = decoded.buffer_at, decoded.offsets_at
        words[at.IN_HEAP0], words[at.IN_HEAP1], words[at.IN_HEAP2] = arrivals.heap_addresses
        words[at.IN_COLUMNS] = arrivals.columns_address

    def _settle(self, admitted: Admitted, n: int) -> None:
        """Finish a batch: advance the position, and seal the chunks that are due."""
        self.position += n
        if admitted.count:
            self.metrics.close_generation()
            self._retain()
        if self.reservoir.seal(self.admission.floor_ms) or len(self.journal.pages) > 1:
            oldest = self.reservoir.least_open_seq()
            self.journal.trim(self.position if oldest is None else oldest)

    def _retain(self) -> None:
        """Advance R, the retention bound, to the present clock."""
        if (
            self.stream is not None
            and self.stream.retention_ms is not None
            and self.admission.clock_ms > TIME_MIN
        ):
            self.retained_ms = max(
                self.retained_ms, subtract_clamped(self.admission.clock_ms, self.stream.retention_ms)
            )

    def _replies(self, decoded: Decoded, admitted: Admitted, first: int) -> Replies:
        execution, warming = self.runtime.execution, self.metrics.warming
        names = self.names
        if warming:
            unanswered_names = frozenset(warming)
            execution.nulls[[name in unanswered_names for name in names], : decoded.n] = 1
        partials: Sequence[Partial] = ()
        if self.metrics.has_bounds or self.gap is not None:
            least_ms = self._least_before_ms
            partials = partials_of(self.metrics, names, admitted, decoded.n, least_ms, self.gap)
        return Replies(
            first, decoded.n, decoded, admitted.accepted, admitted.late, admitted.duplicate, execution.out,
            execution.nulls, execution.heap, names, execution.program.types, warming, partials,
            self.metrics.last_place,
        )  # fmt: skip

    # --- control records ---------------------------------------------------------------------------

    def cross(self, crossing: Crossing, changes: Sequence[Change], place: int) -> None:
        """Go on behind a gap of the log, where changes of the catalogue apply that lay in it.

        changes: those of `railgun.catalog.retelling`, in order. The task may know some of them.
        place: that of the last change in the catalogue.
        """
        gap_ms = crossing.gap_ms if self.gap is None else max(crossing.gap_ms, self.gap.gap_ms)
        self.gap, self.begun = crossing._replace(gap_ms=gap_ms), ""
        for change in changes:
            if isinstance(change, PutStream):
                self._put_stream(change)
            else:
                self.apply(change)
        self.metrics.last_place = max(self.metrics.last_place, place)
        self.position, self.leader_epoch = crossing.offset, -1
        self._build()

    def _control(self, record: bytes) -> None:
        streams = {} if self.stream is None else {self.stream.name: self.stream}
        try:
            change = change_from_json(decode_control(record), streams)
        except (ControlRecordError, DefinitionError) as error:
            raise MalformedControlError(f"{self.identity} offset {self.position}", str(error)) from error
        self.apply(change)
        self.journal.begin(self.position, *self.admission.settings_in_force)
        self.journal.note(np.zeros(1, np.uint8))
        self.position += 1
        self._retain()

    def apply(self, change: Change | Warm) -> None:
        """Apply a change of the catalogue. A change that was applied before is skipped."""
        if isinstance(change, Warm):
            self._warm(change)
            return
        if change.place <= self.metrics.last_place:
            return
        self.metrics.last_place = change.place
        if isinstance(change, PutStream):
            self._put_stream(change)
        elif isinstance(change, AddMetric):
            if change.metric.home == self.identity.partitioner:
                accepted = self.admission.has_accepted
                self.metrics.add(change, has_accepted=accepted, retained_ms=self.retained_ms)
                self._is_built = False
        elif isinstance(change, BeginDeepening):
            self.begun = change.history
            if self.on_begin_deepening is not None:
                self.on_begin_deepening(change)
        elif isinstance(change, AddHistory | Deepen):
            is_void = isinstance(change, Deepen) and self.lacks_gap(change.history)
            if change.history != self.history and not is_void:
                raise HistoryMissingError(
                    str(self.identity), change.history, takes_over=isinstance(change, Deepen)
                )
        elif isinstance(change, DropMetric) and self.metrics.drop(change.name, change.added):
            self._is_built = False

    def lacks_gap(self, history: str) -> bool:
        """Whether the task has crossed a gap since a history was begun. A task with this history has not crossed it."""
        return self.gap is not None and self.begun != history

    def prefetch(self, changes: Sequence[Change]) -> list[Ahead]:
        """Decode the chunks that metrics among these changes will need. The changes will be in the log soon.

        Returns handles that the caller may wait for. No result depends on this.
        """
        added = [
            change.metric.resolved
            for change in changes
            if isinstance(change, AddMetric) and change.metric.home == self.identity.partitioner
        ]
        # If another change adds fields too, the stream's types do not have them yet.
        is_growing = all(isinstance(change, AddMetric) for change in changes)
        is_ready = self._is_built and self.admission.has_accepted
        if not added or not is_growing or self.stream is None or not is_ready:
            return []
        return self.runtime.prefetch(self.stream, added, self.admission.clock_ms)

    def _put_stream(self, change: PutStream) -> None:
        stream = change.stream
        if self.stream is not None and stream.dedup_events != self.stream.dedup_events:
            raise TaskError(
                str(self.identity), "a record of its log changes dedup_events, which is fixed at creation"
            )
        if self.stream is None:
            self.admission = Admission(
                stream.lateness_ms, stream.late_policy is LatePolicy.DISCARD, stream.dedup_events
            )
        self.admission.set_lateness(stream.lateness_ms, discard=stream.late_policy is LatePolicy.DISCARD)
        self.stream = stream
        self.schemas[change.schema_version] = stream
        self._retain()
        self._is_built = False

    def _build(self) -> None:
        """Rebuild the program if control records have changed something. So several changes in a row cause one
        rebuild.
        """
        if not self._is_built:
            self.rebuild()
            self._rebuilt_s = self.now()
            self._unsettled_s = min(self._unsettled_s, self._rebuilt_s)

    def is_filled(self, warm: Warm) -> bool:
        """Whether a `warm` record can be applied at once: the fill of its metric is complete, or nothing is to fill."""
        metric = self.metrics.warming_of(warm)
        return metric is None or self.metrics.fills[metric.generation].full

    def _warm(self, change: Warm) -> None:
        self._build()
        metric = self.metrics.warming_of(change)
        if metric is None:
            return
        self.fills.finish(metric.generation)
        self.metrics.warm(metric)

    def rebuild(self) -> None:
        """Make the program of the metrics in force, and everything that depends on the program."""
        if self.stream is None:
            raise TaskError(str(self.identity), "a metric came before its stream")
        self._is_built = True
        self.fills.stop()
        generations = self.metrics.generations()
        self.names = tuple(metric.name for each in generations for metric in each.metrics)
        schemas: list[Schema] = [stream.schema(version) for version, stream in self.schemas.items()]
        self.runtime.build(self.stream, schemas, generations, self.admission.clock_ms)
        self.sweep.rebuilt()
        self.fills.start()

    def ready_to_warm(self) -> list[Warm]:
        """Return the `warm` records that are due: those of metrics whose finished fill is in a durable checkpoint."""
        return [
            Warm(self.identity.stream, metric.definition.name, metric.added)
            for metric in self.metrics.ready_to_warm()
        ]

    def digest(self) -> str:
        """Return a digest of the logical content, in hex. It is equal on every copy of the task at this position.
        Slow.
        """
        return digest(self)

    def close(self) -> None:
        """Close all files. An error does not keep the others open. What the last checkpoint lacks will be read from
        the log again.
        """
        with ExitStack() as closing:
            closing.callback(self.store.close)
            closing.callback(self.reservoir.close)
            closing.callback(self.checkpointer.close)
