"""`railgun.Engine`: streams and their metrics in this process, durable in one folder, without a broker."""

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec
import pyarrow as pa

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, Warm
from railgun.catalog.definitions import stream_with_metrics
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.config.processors import processors
from railgun.engine.background import OVERDUE_S, STARVED_S, BackgroundWork
from railgun.engine.deepening.installing import install
from railgun.engine.engine_streams import EngineStreams, describe
from railgun.engine.errors import EngineStoppedError, as_engine_errors, translated
from railgun.engine.folder import LOG
from railgun.engine.status import DeepeningStatus, EngineStatus
from railgun.engine.turns import FairLock
from railgun.explain.analysis import explained_query
from railgun.history.build import HistoryPlan
from railgun.host.disk_usage import measure_disk
from railgun.host.host_state import one_line
from railgun.host.memory import LIMIT_BYTES, MemoryShares
from railgun.host.start import StartProgress
from railgun.ingest.intake import JsonText
from railgun.ingest.replies import ScoredBatch
from railgun.ingest.value_queries import KeyValues, QueryRefusedError, ValueRequest
from railgun.messaging.embedded.log import Durability
from railgun.registry import evolution
from railgun.registry.change_log import LoggedChange
from railgun.registry.errors import EngineError
from railgun.registry.metric_status import MetricStatus
from railgun.registry.origin import UNNAMED, Origin
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskSettings
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording
from railgun.wire.validator import FieldError

C = TypeVar("C", bound=Change)

_READING_S = 1.0
# A change waits at most this long for the chunks that are decoded for it in advance. An event then waits for what is
# missing.
_AHEAD_S = 3.0
# Keys of a value query that are answered without letting events in between.
_KEYS_AT_ONCE = 256
# A pause between slices, so that a thread that waits for the checkpoint's thread can run.
_BETWEEN_SLICES_S = 0.0002


def _always(warm: Warm) -> bool:
    return True


class Engine:
    """An engine over a data folder, which it locks until it is closed. Threads may share it.

    folder: None makes a temporary folder, which `close` deletes.
    durability: what an answered event survives: "fsync" a loss of power, "os" the death of the process.
    settings: the most that each task gets.
    memory_limit_bytes: the limit for the caches and buffers of all tasks together (`railgun.host.memory`).
    now_ms: the clock for `max_future` and arrival times, in ms since 1970.
    may_warm: whether a metric that has been filled may begin to answer now.
    start: is told about the progress of opening the folder.
    recording: what the engine counts for monitoring.

    Every method raises EngineError: EventError for an event that is refused, DefinitionsError for a definition,
        UnknownNameError for a name, FolderError for the folder and the disk, EngineStoppedError after `close` and
        after an error that stopped the engine in the middle of a change.
    """

    @as_engine_errors()
    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        durability: Durability | str = Durability.FSYNC,
        settings: TaskSettings | None = None,
        memory_limit_bytes: int = LIMIT_BYTES,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        may_warm: Callable[[Warm], bool] = _always,
        start: StartProgress | None = None,
    ) -> None:
        if memory_limit_bytes < 1:
            raise EngineError(
                f"memory_limit_bytes: {memory_limit_bytes} is no size; name one of 16 MiB or more"
            )
        self._temporary = Path(tempfile.mkdtemp(prefix="railgun-")) if folder is None else None
        self.folder = self._temporary or Path(folder or "")
        self.recording = Recording()
        self._now_ms = now_ms
        self._lock = FairLock()
        self._environment = TaskEnvironment()
        self._next_reading_s = 0.0
        self._reading: EngineReading | None = None
        self._closed = False
        self._process_id = os.getpid()
        self._failure: BaseException | None = None
        try:
            memory = MemoryShares(settings or TaskSettings(), memory_limit_bytes)
            self._streams = EngineStreams(
                self.folder,
                Durability(durability),
                memory,
                may_warm,
                processors(),
                self.recording,
                start or StartProgress(),
                self._environment,
            )
        except BaseException:
            self._remove()
            raise
        self._background = BackgroundWork(
            self._lock,
            self._step,
            self._turn,
            is_throttled=lambda: self._streams.is_throttled,
            is_deferrable=lambda: self._streams.is_deferrable,
        )
        self._background.start()
        # At exit no new thread can be started, and a checkpoint would need one. So this closes without a checkpoint.
        atexit.register(self.close, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- events ------------------------------------------------------------------------------------

    def score(self, stream: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Record an event and return its answer: `{"id": …, "time": …, "metrics": {…}}`, with `late`, `duplicate`,
        `warming` or `partial` if they apply. Decimals are strings, as in JSON. The event is durable when this
        returns.

        event: values as in JSON, or Python's own: a timestamp may be a datetime with a time zone, a decimal a
            Decimal.
        """
        return self.score_many(stream, [event])[0]

    @as_engine_errors()
    def score_many(self, stream: str, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Do the same for events that arrive together, in this order. If one is refused, none is recorded."""
        with self._scoring():
            return self._streams.live(stream).score(events, self._now_ms())

    @as_engine_errors()
    def score_each(self, stream: str, texts: Sequence[JsonText]) -> ScoredBatch:
        """Record events that arrive together as JSON texts, in this order. Each is accepted or refused by itself.

        The answers come as columns.
        """
        with self._scoring():
            return self._streams.live(stream).score_each(texts, self._now_ms())

    @as_engine_errors()
    def score_table(self, stream: str, events: pa.Table) -> pa.Table:
        """Do the same for the rows of a table. Returns a row for each, in order. If one is refused, none is recorded.

        The result has the columns: the id, one per metric, and for each partitioner p `late_<p>` (null, "rewritten",
            "discarded") and `duplicate_<p>` (boolean). Both are null if the event was not sent there. Also `warming`
            (the names of metrics that do not answer yet) and `partial` (by metric a time in ms: the metric covers
            only later events).
        """
        with self._scoring():
            return self._streams.live(stream).score_table(events, self._now_ms(), self._between_blocks)

    # --- values without an event -------------------------------------------------------------------

    def values(
        self, stream: str, keys: Sequence[Mapping[str, Any]], metrics: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the metrics of keys as they are now, without an event. Nothing changes.

        keys: each names some fields and their values, as in `score`; null (None) is a value.
        metrics: only these; None asks for all that each key determines.
        Returns for each key `{"key": {…}, "metrics": {…}, "as_of": {"card": {"time": …, "offset": …}}}`, with `warming`
        or `partial` if they apply. The values are those that a duplicate with the same fields would be answered, at
        that offset of each task's log and that time of its clock. Raises QueryError.
        """
        found: list[dict[str, Any]] = msgspec.to_builtins(
            self.key_values(stream, ValueRequest(keys, metrics))
        )
        return found

    @as_engine_errors()
    def key_values(self, stream: str, request: ValueRequest) -> list[KeyValues]:
        """Do the same, and return structs that can be encoded to JSON."""
        if not _is_list(request.keys):
            wrong = "a list of keys belongs here, each a mapping of fields and their values"
            raise QueryRefusedError([FieldError(("keys",), wrong)])
        found: list[KeyValues] = []
        # Events come in between: many keys take a while.
        for first in range(0, max(1, len(request.keys)), _KEYS_AT_ONCE):
            some = request._replace(keys=request.keys[first : first + _KEYS_AT_ONCE])
            with self._call(catches_up=False):
                found += self._streams.live(stream).values(some, first)
        return found

    # --- changes -----------------------------------------------------------------------------------

    @as_engine_errors()
    def apply(self, definitions: Definitions | Path | str, wait: bool = True) -> list[str]:
        """Create what is missing, and return the names of what was created. Returns once new metrics answer; with
        wait=False at once.

        definitions: the path of a file, the text of one (several lines), or what was read from one. Streams and
            metrics that it does not name are left alone.
        Raises DifferentDefinitionsError if something differs from what is registered; nothing has changed then.
        """
        wanted = evolution.read_definitions(definitions)
        made = self._changed(lambda: evolution.missing(self._streams.catalog, wanted))
        if wait:
            for stream in wanted.streams:
                self.wait_until_warm(stream)
        return [describe(change) for change in made]

    @as_engine_errors()
    def create_stream(
        self, stream: StreamDefinition, metrics: Sequence[str] = (), *, origin: Origin = UNNAMED
    ) -> bool:
        """Register a stream with the metrics of queries, all or nothing. Returns False if all of it is registered
        already. Raises DifferentDefinitionsError.

        origin: who asks for this change, for `change_log`; so too of the others below.
        """
        # Without the lock, so that no event waits for it.
        wanted = stream_with_metrics(stream, metrics)
        return bool(self._changed(lambda: evolution.new_stream(self._streams.catalog, wanted), origin))

    def evolve(self, stream: str, settings: Mapping[str, Any], *, origin: Origin = UNNAMED) -> None:
        """Change a stream.

        settings: keys of definitions files: `lateness`, `retention`, and `fields` with fields to add, or with another
            `from` or `unit`.
        """
        self._changed(lambda: evolution.changed_stream(self._streams.catalog, stream, settings), origin)

    @as_engine_errors()
    def register_metrics(self, stream: str, sql: str, *, origin: Origin = UNNAMED) -> tuple[list[str], bool]:
        """Register the metrics of a query that are missing. Returns the names of all of them, and whether any was
        missing.

        They answer later. Raises DifferentDefinitionsError if another metric has one of these names.
        """
        with self._call(catches_up=False):
            known = self._streams.catalog.copy()
        # This is a good part of the work. It is done without the lock, so that no event waits for it.
        metrics = evolution.metrics_of_query(known, stream, sql)
        made_out_for = known.streams[stream].stream

        def missing() -> list[Change]:
            nonlocal made_out_for, metrics
            catalog = self._streams.catalog
            now = evolution.stream_entry(catalog, stream).stream
            if now is not made_out_for:
                made_out_for, metrics = now, evolution.metrics_of_query(catalog, stream, sql)
            return evolution.missing(catalog, metrics)

        made = self._changed(missing, origin)
        return metrics.names, bool(made)

    @as_engine_errors()
    def explain(self, stream: str, sql: str) -> dict[str, Any]:
        """Return the plan of a stream as it would be with a query's metrics. Nothing is registered."""
        return explained_query(evolution.stream_entry(self.catalog(), stream), sql)

    def add_metrics(self, stream: str, sql: str, wait: bool = True) -> list[str]:
        """Register a query's metrics. Returns their names once they answer; with wait=False at once."""
        changes = self._changed(lambda: evolution.new_metrics(self._streams.catalog, stream, sql))
        if wait:
            self.wait_until_warm(stream)
        return [change.name for change in changes]

    def drop_metric(self, stream: str, name: str, *, origin: Origin = UNNAMED) -> None:
        """Drop a metric."""
        self._changed(lambda: [evolution.dropped_metric(self._streams.catalog, stream, name)], origin)

    def add_field(
        self,
        stream: str,
        name: str,
        type: str | Mapping[str, str],  # noqa: A002 - what definitions call it
    ) -> None:
        """Add a field at the end of a stream's. It is null for all events before, but for a computed one.

        type: a type, or what a definitions file has of a field: `{"type": …, "from": …, "unit": …}`, `{"as": …}`.
        """
        self._changed(lambda: [evolution.added_field(self._streams.catalog, stream, name, type)])

    def drop_field(self, stream: str, name: str) -> None:
        """Drop a computed field that nothing reads."""
        self._changed(lambda: [evolution.dropped_field(self._streams.catalog, stream, name)])

    def set_lateness(self, stream: str, lateness: str) -> None:
        """Change how late events may be, as in "5s"."""
        self._changed(lambda: [evolution.evolved(self._streams.catalog, stream, {"lateness": lateness})])

    def set_retention(self, stream: str, retention: str) -> None:
        """Change how long events are kept for metrics that are added later, as in "30d" or "forever"."""
        self._changed(lambda: [evolution.evolved(self._streams.catalog, stream, {"retention": retention})])

    def drop_stream(self, stream: str, *, origin: Origin = UNNAMED) -> None:
        """Drop a stream. Its metrics, its events and all its state are deleted."""
        self._changed(lambda: [evolution.dropped_stream(self._streams.catalog, stream)], origin)

    @as_engine_errors()
    def history_plan(self, stream: str, history: str, cut_ms: int) -> HistoryPlan:
        """Return the plan from which history of a stream is built.

        history: an id for the history.
        cut_ms: all its events are before this time, in ms.
        """
        with self._call():
            return self._streams.history_plan(stream, history, cut_ms)

    @as_engine_errors()
    def add_history(self, stream: str) -> None:
        """Put the history of a stream that `railgun backfill` made ready before its log. Its tasks are opened again.

        Raises HistoryRefusedError, having changed nothing.
        """
        with self._call():
            self._streams.add_history(stream)

    @as_engine_errors()
    def begin_deepening(self, stream: str, cut_ms: int | None = None) -> HistoryPlan:
        """Begin to deepen a stream, which continues meanwhile. Returns the plan from which the older history is built.

        cut_ms: before this time the history is complete, and the events are taken from it; None chooses the least
            time that leaves no gap.
        If a deepening has begun already, its plan is returned. Raises HistoryRefusedError.
        """
        with self._call():
            beginning = self._streams.deepening.begin(stream, cut_ms)
        if beginning is not None:
            started, plan = beginning
            try:
                started.write(plan)
            finally:
                with self._call():
                    self._streams.deepening.begun(stream)
        with self._call():
            return self._streams.deepening.plan(stream)

    @as_engine_errors()
    def deepen(self, stream: str, *, origin: Origin = UNNAMED) -> None:
        """Replace a stream's tasks by those that `railgun backfill --deepen` has built. Returns once they have taken
        over.

        Events are answered meanwhile. Raises HistoryRefusedError, and FolderError for damaged files or errors of the
        disk. A later call continues from where this one stopped.
        """
        # Events do not wait for these calls. So background work is not throttled because of them.
        install(partial(self._call, catches_up=False), self._streams.deepening, stream, origin)

    @as_engine_errors()
    def deepening(self, stream: str) -> DeepeningStatus | None:
        """Return the status of a stream's deepening; None if none is under way."""
        with self._call():
            return self._streams.deepening.status(stream)

    @as_engine_errors()
    def history(self, stream: str) -> str | None:
        """Return the id of the history that a stream has from before its log; None if it has none."""
        with self._call():
            return self._streams.history(stream)

    @as_engine_errors()
    def give_up_deepening(self, stream: str) -> bool:
        """Give up a stream's deepening, and delete its files. Returns False if none is under way.

        Raises HistoryRefusedError while it is being installed, and once its tasks answer.
        """
        with self._call():
            given_up = self._streams.deepening.give_up(stream)
        if given_up is not None:
            given_up.remove()
        return given_up is not None

    @property
    def failure(self) -> str | None:
        """Why the engine has stopped, and refuses further calls; None while it continues."""
        return None if self._failure is None else one_line(_as_told(self._failure))

    # --- what there is -----------------------------------------------------------------------------

    @as_engine_errors()
    def streams(self) -> list[StreamDefinition]:
        """Return the streams as they are registered, in the order created."""
        with self._call():
            return [entry.stream for entry in self._streams.catalog.streams.values()]

    @as_engine_errors()
    def catalog(self) -> Catalog:
        """Return all that is registered, as it is now."""
        with self._call():
            return self._streams.catalog.copy()

    @as_engine_errors()
    def change_log(self, limit: int = 100, before: int | None = None) -> list[LoggedChange]:
        """Who changed what: the newest changes, at most `limit`, the newest first.

        before: only changes with a smaller place.
        """
        with self._call(catches_up=False):
            return self._streams.change_log.newest(limit, before)

    @as_engine_errors()
    def metrics(self, stream: str) -> list[MetricStatus]:
        """Return a stream's metrics, in the order added."""
        with self._call():
            standing = self._streams.standing(stream)
        return standing()

    @as_engine_errors()
    def status(self) -> EngineStatus:
        """Return the status of all streams with their tasks and metrics, and of the disk."""
        with self._call():
            streams, durability = self._streams.streams_status(), str(self._streams.durability)
        return EngineStatus(
            str(self.folder), durability, streams, measure_disk(self.folder, self.folder / LOG)
        )

    @property
    def reading(self) -> EngineReading | None:
        """Return how the tasks stood about a second ago, for monitoring. The call does not wait for the engine."""
        return self._reading

    @as_engine_errors()
    def wait_until_warm(self, stream: str) -> None:
        """Return once every metric of a stream answers. Calls of other threads are served in between."""
        while True:
            with self._call():
                if not self._streams.expedite(stream):
                    return
            time.sleep(_BETWEEN_SLICES_S)

    def close(self, checkpoint: bool = True) -> None:
        """Take a checkpoint and close the folder. Without a checkpoint, the next start reads more of the log.

        A second call does nothing.
        """
        if os.getpid() != self._process_id:
            # After a fork, this process has neither the threads nor the locks. All open files belong to the other
            # process.
            return
        self._background.end()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            atexit.unregister(self.close)
            whole = self._failure is None and self._streams.is_usable
            try:
                with as_engine_errors():
                    self._streams.close(checkpoint=checkpoint and whole)
            finally:
                self._remove()
        self._background.join()

    # --- turns -------------------------------------------------------------------------------------

    @contextmanager
    def _scoring(self) -> Iterator[None]:
        """A call that takes events. A slice of background work follows if it is overdue."""
        with self._call(catches_up=False):
            yield
            self._catch_up()

    @contextmanager
    def _call(self, *, catches_up: bool = True) -> Iterator[None]:
        """Hold the lock during a call. catches_up: whether background work follows if it is starved."""
        if os.getpid() != self._process_id:
            raise EngineStoppedError(
                f"{self.folder}: the engine belongs to process {self._process_id}, from which this one was forked; "
                "only one process can use a folder: open it after forking"
            )
        with self._lock:
            if self._closed:
                raise EngineStoppedError(f"{self.folder}: the engine is closed; open the folder again")
            self._check()
            try:
                yield
                if catches_up:
                    self._catch_up(STARVED_S)
            except BaseException as error:
                self._note(error)
                raise

    def _catch_up(self, after_s: float = OVERDUE_S) -> None:
        """Do a slice of background work at the end of a call. An error of it is not raised by this call, but by the
        next one.

        This is the same as for an error in the background thread.
        """
        try:
            self._background.catch_up(after_s)
        except Exception as error:  # noqa: BLE001 - the next call raises it
            self._failure = self._failure or error

    def _between_blocks(self) -> None:
        """Do overdue background work between two blocks of a table's rows. Raises EngineStoppedError if the engine
        has stopped.
        """
        self._catch_up()
        self._check()

    @as_engine_errors()
    def _changed(self, changes: Callable[[], list[C]], origin: Origin = UNNAMED) -> list[C]:
        """Make changes. They are computed again while the lock is held, if another change came in between. Returns
        them.
        """
        coming, place = self._prefetched(changes)
        if not coming:
            return []
        with self._call(catches_up=False):
            # Computed again, because another change came in between.
            made = coming if place == self._streams.catalog.last_place else changes()
            self._streams.change(made, origin)
            # Events have waited for this change. They do not also have to wait for background work that became
            # overdue meanwhile.
            self._background.put_off()
            return made

    def _prefetched(self, changes: Callable[[], list[C]]) -> tuple[list[C], int]:
        """Compute changes before they are made, and wait for the chunks that they need, without the lock. So no call
        waits for these.

        Returns the changes, and the place in the catalogue after which they come.
        """
        with self._call(catches_up=False):
            coming, place = changes(), self._streams.catalog.last_place
            ahead = self._streams.prefetch(coming)
            self._background.put_off()
        self._environment.executor.wait(ahead, _AHEAD_S)
        return coming, place

    def _check(self) -> None:
        if self._failure is not None:
            raise EngineStoppedError(
                f"{self.folder}: stopped by an error: {self.failure}; close it, then open the folder again"
            ) from _as_told(self._failure)

    def _note(self, error: BaseException) -> None:
        """Stop the engine for good after an error in the middle of a change."""
        if not self._streams.is_usable:
            self._failure = self._failure or error

    def _step(self) -> bool:
        """Do a brief step of background work. Returns whether there is more to do now."""
        more = self._streams.work()
        now_s = time.monotonic()
        if now_s >= self._next_reading_s:
            self._reading = self._streams.read()
            self._next_reading_s = now_s + _READING_S
        return more

    def _turn(self, work: Callable[[], None]) -> bool:
        """Do a slice of work in the background thread. Returns False once the engine has ended."""
        if self._closed or self._failure is not None:
            return False
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the next call raises it
            self._note(error)
            self._failure = self._failure or error
        return True

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _is_list(keys: object) -> bool:
    return isinstance(keys, Sequence) and not isinstance(keys, str)


def _as_told(failure: BaseException) -> BaseException:
    """Return the error that a caller sees for a failure."""
    known = translated(failure) if isinstance(failure, Exception) else None
    return known or failure
