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

import pyarrow as pa

from railgun.catalog.catalog import Catalog
from railgun.catalog.changes import Change, Warm
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.config.processors import processors
from railgun.engine.background import OVERDUE_S, STARVED_S, BackgroundWork
from railgun.engine.engine_streams import EngineStreams, describe
from railgun.engine.errors import EngineError, EngineStoppedError, as_engine_errors, translated
from railgun.engine.folder import LOG
from railgun.engine.installing import install
from railgun.engine.status import EngineStatus, LiveBackfillStatus, MetricStatus
from railgun.engine.turns import FairLock
from railgun.explain.analysis import explained
from railgun.history.build import HistoryPlan
from railgun.host.disk_usage import read_disk
from railgun.host.host_state import one_line
from railgun.host.memory import LIMIT_BYTES, MemoryShares
from railgun.host.start import StartProgress
from railgun.ingest.intake import JsonText
from railgun.ingest.replies import ScoredBatch
from railgun.messaging.embedded.log import Durability
from railgun.registry import evolution
from railgun.task.environment import TaskEnvironment
from railgun.task.settings import TaskSettings
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording

C = TypeVar("C", bound=Change)

_READING_S = 1.0
# The most that a change waits for what is read ahead for it; what is not there by then an event waits for.
_AHEAD_S = 3.0
_BETWEEN_SLICES_S = 0.0002  # for whoever waits for the checkpoint's thread


def wall_clock_ms() -> int:
    """Milliseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1_000_000


def _always(warm: Warm) -> bool:
    return True


class Engine:
    """An engine over a folder, which it holds alone until it is closed. Threads may share it.

    folder: None makes a temporary one, which `close` removes.  durability: what an answered event survives: "fsync"
    the loss of power, "os" the death of the process.  settings: the most that each task gets.  memory_limit_bytes: of
    the caches and buffers of all tasks together (`railgun.host.memory`).  now_ms: the clock that `max_future` and
    arrival times are read from.  may_warm: whether a metric that has filled may answer now.  start: told how far
    opening the folder is.
    `recording`: what it notes for monitoring.

    Every method raises EngineError: EventError for an event that is refused, DefinitionsError for a definition,
    UnknownNameError for a name, FolderError for the folder and the disk, EngineStoppedError after `close` and after an
    error that stopped the engine half-way.
    """

    @as_engine_errors()
    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        durability: Durability | str = Durability.FSYNC,
        settings: TaskSettings | None = None,
        memory_limit_bytes: int = LIMIT_BYTES,
        now_ms: Callable[[], int] = wall_clock_ms,
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
        # Without a checkpoint: by then no new thread can be started, and it would need one.
        atexit.register(self.close, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- events ------------------------------------------------------------------------------------

    def score(self, stream: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """Take an event and answer it: `{"id": …, "time": …, "metrics": {…}}`, and where there is something to say
        `late`, `duplicate`, `warming`, `partial`. Decimals are strings, as in JSON. The event is durable by then.

        event: values as in JSON, or Python's own: a timestamp may be a datetime with a time zone, a decimal a Decimal.
        """
        return self.score_many(stream, [event])[0]

    @as_engine_errors()
    def score_many(self, stream: str, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The same for events that arrive together, in this order. Where one is refused none is taken."""
        with self._scoring():
            return self._streams.live(stream).score(events, self._now_ms())

    @as_engine_errors()
    def score_each(self, stream: str, texts: Sequence[JsonText]) -> ScoredBatch:
        """Take events that arrive together as JSON texts, in this order, each by itself: one that is refused harms no
        other. The answers come as columns.
        """
        with self._scoring():
            return self._streams.live(stream).score_each(texts, self._now_ms())

    @as_engine_errors()
    def score_table(self, stream: str, events: pa.Table) -> pa.Table:
        """The same for the rows of a table: a row for each, in order. Where one is refused none is taken.

        Its columns: the id, one per metric, per partitioner `late_<p>` (null, "rewritten", "discarded") and
        `duplicate_<p>` (boolean; both null where the event was not sent there), `warming` (names of metrics that do not
        answer yet), `partial` (by metric the time, in ms, that it covers what is later than).
        """
        with self._scoring():
            return self._streams.live(stream).score_table(events, self._now_ms(), self._between_blocks)

    # --- changes -----------------------------------------------------------------------------------

    @as_engine_errors()
    def apply(self, definitions: Definitions | Path | str, wait: bool = True) -> list[str]:
        """Create what is missing, and say what that was; returns once new metrics answer (wait=False: at once).

        definitions: a file's path, the text of one (of several lines), or what was read from one.  Streams and metrics
        that it does not name are left alone.  Raises DifferentDefinitionsError, having changed nothing, where
        something differs from what is registered.
        """
        wanted = evolution.read_definitions(definitions)

        def missing() -> list[Change]:
            return evolution.missing(self._streams.catalog, wanted)

        made = self._changed(missing)
        if wait:
            for stream in wanted.streams:
                self.wait_until_warm(stream)
        return [describe(change) for change in made]

    def create_stream(self, stream: StreamDefinition) -> bool:
        """Register a stream; False where it is registered just so. Raises DifferentDefinitionsError."""
        return bool(self._changed(lambda: evolution.new_stream(self._streams.catalog, stream)))

    def evolve(self, stream: str, settings: Mapping[str, Any]) -> None:
        """Change a stream, by the keys of definitions files: `lateness`, `retention`; `fields`: those to add."""
        self._changed(lambda: evolution.changed_stream(self._streams.catalog, stream, settings))

    @as_engine_errors()
    def register_metrics(self, stream: str, sql: str) -> tuple[list[str], bool]:
        """What is missing of a query's metrics: the names of all of them, and whether one was.

        They answer later. Raises DifferentDefinitionsError where one of that name is another.
        """
        with self._call(catches_up=False):
            known = self._streams.catalog.copy()
        # A good part of the work, which no event has to wait for.
        metrics = evolution.metrics_of_query(known, stream, sql)
        made_out_for = known.streams[stream].stream

        def missing() -> list[Change]:
            nonlocal made_out_for, metrics
            catalog = self._streams.catalog
            now = evolution.stream_entry(catalog, stream).stream
            if now is not made_out_for:
                made_out_for, metrics = now, evolution.metrics_of_query(catalog, stream, sql)
            return evolution.missing(catalog, Definitions({}, tuple(metrics)))

        made = self._changed(missing)
        return [each.name for each in metrics], bool(made)

    @as_engine_errors()
    def explain(self, stream: str, sql: str) -> dict[str, Any]:
        """The plan of a stream as it would be with a query's metrics. Nothing is registered."""
        with self._call():
            catalog = self._streams.catalog
            metrics = evolution.metrics_of_query(catalog, stream, sql)
            return explained(catalog.streams[stream], metrics)

    def add_metrics(self, stream: str, sql: str, wait: bool = True) -> list[str]:
        """Register a query's metrics; returns their names, once they answer (wait=False: at once)."""
        changes = self._changed(lambda: evolution.new_metrics(self._streams.catalog, stream, sql))
        if wait:
            self.wait_until_warm(stream)
        return [change.metric.name for change in changes]

    def drop_metric(self, stream: str, name: str) -> None:
        """End a metric."""
        self._changed(lambda: [evolution.dropped_metric(self._streams.catalog, stream, name)])

    def add_field(self, stream: str, name: str, type: str) -> None:  # noqa: A002 - what definitions call it
        """Add a field at the end of a stream's; it is null for all events before."""
        self._changed(lambda: [evolution.added_field(self._streams.catalog, stream, name, type)])

    def set_lateness(self, stream: str, lateness: str) -> None:
        """Change how late events may be, as in "5s"."""
        self._changed(lambda: [evolution.evolved(self._streams.catalog, stream, {"lateness": lateness})])

    def set_retention(self, stream: str, retention: str) -> None:
        """Change how long events are kept for metrics to come, as in "30d" or "forever"."""
        self._changed(lambda: [evolution.evolved(self._streams.catalog, stream, {"retention": retention})])

    def drop_stream(self, stream: str) -> None:
        """End a stream: its metrics, its events and all that was made of them are deleted."""
        self._changed(lambda: [evolution.dropped_stream(self._streams.catalog, stream)])

    @as_engine_errors()
    def history_plan(self, stream: str, history: str, cut_ms: int) -> HistoryPlan:
        """What history of a stream is built from. history: an id for it.  cut_ms: all its events are before then."""
        with self._call():
            return self._streams.history_plan(stream, history, cut_ms)

    @as_engine_errors()
    def add_history(self, stream: str) -> None:
        """Put the history of a stream that `railgun backfill` made ready before its log. Its tasks are opened anew.

        Raises HistoryRefusedError, having changed nothing.
        """
        with self._call():
            self._streams.add_history(stream)

    @as_engine_errors()
    def begin_deepening(self, stream: str, cut_ms: int | None = None) -> HistoryPlan:
        """Let older history be built for a stream that goes on meanwhile; what it is built from.

        cut_ms: the history is whole before then, and taken from it; None: the least time that leaves no hole.
        Where one has begun already it is that one's plan. Raises HistoryRefusedError.
        """
        with self._call():
            beginning = self._streams.begin_deepening(stream, cut_ms)
        if beginning is not None:
            started, plan = beginning
            try:
                started.write(plan)
            finally:
                with self._call():
                    self._streams.started_live_backfill(stream)
        with self._call():
            return self._streams.live_backfills.wanted(stream).plan

    @as_engine_errors()
    def deepen(self, stream: str) -> None:
        """Let the tasks that `railgun backfill --deepen` built take the place of a stream's; returns once they have.

        Events are answered meanwhile.  Raises HistoryRefusedError, and FolderError for what is damaged, or for the
        disk: it can be done again, and goes on where it was.
        """
        # Its turns are not what events wait for: background work does not rest beside them.
        install(partial(self._call, catches_up=False), self._streams, stream)

    @as_engine_errors()
    def deepening(self, stream: str) -> LiveBackfillStatus | None:
        """How the live backfill of a stream stands; None where none is under way."""
        with self._call():
            return self._streams.live_backfill_status(stream)

    @as_engine_errors()
    def history(self, stream: str) -> str | None:
        """The id of the history that a stream has from before its log, or None."""
        with self._call():
            return self._streams.history(stream)

    @as_engine_errors()
    def give_up_deepening(self, stream: str) -> bool:
        """Let go of what there is of a live backfill; False where none is under way.

        Raises HistoryRefusedError while it is being installed, and once its tasks answer.
        """
        with self._call():
            backfill = self._streams.give_up_deepening(stream)
        if backfill is not None:
            backfill.remove()
        return backfill is not None

    @property
    def failure(self) -> str | None:
        """Why it stopped and takes nothing any more; None where it goes on."""
        return None if self._failure is None else one_line(_as_told(self._failure))

    # --- what there is -----------------------------------------------------------------------------

    @as_engine_errors()
    def streams(self) -> list[StreamDefinition]:
        """The streams as they are registered, in the order created."""
        with self._call():
            return [entry.stream for entry in self._streams.catalog.streams.values()]

    @as_engine_errors()
    def catalog(self) -> Catalog:
        """All that is registered, as it is now."""
        with self._call():
            return self._streams.catalog.copy()

    @as_engine_errors()
    def metrics(self, stream: str) -> list[MetricStatus]:
        """A stream's metrics, in the order added."""
        with self._call():
            standing = self._streams.standing(stream)
        return standing()

    @as_engine_errors()
    def status(self) -> EngineStatus:
        """Streams with their tasks and metrics, and the disk."""
        with self._call():
            streams, durability = self._streams.streams_status(), str(self._streams.durability)
        return EngineStatus(str(self.folder), durability, streams, read_disk(self.folder, self.folder / LOG))

    @property
    def reading(self) -> EngineReading | None:
        """How the tasks stood about a second ago, for monitoring: nothing waits for it."""
        return self._reading

    @as_engine_errors()
    def wait_until_warm(self, stream: str) -> None:
        """Return once every metric of a stream answers. Calls of other threads are answered in between."""
        while True:
            with self._call():
                if not self._streams.expedite(stream):
                    return
            time.sleep(_BETWEEN_SLICES_S)

    def close(self, checkpoint: bool = True) -> None:
        """Let go of the folder, after a checkpoint; without one the next start reads more of the log.

        Harmless when done already.
        """
        if os.getpid() != self._process_id:
            # A fork has neither the threads nor the locks: all that is open is the other process's.
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
        """A call that takes events; a slice of background work follows where one is overdue."""
        with self._call(catches_up=False):
            yield
            self._catch_up()

    @contextmanager
    def _call(self, *, catches_up: bool = True) -> Iterator[None]:
        """One call at a time. catches_up: does background work follow where it is starved?"""
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
        """A slice of background work in a call that has done what it was asked for: an error is none of the call's.

        As after one in the background's own thread, the next call raises it.
        """
        try:
            self._background.catch_up(after_s)
        except Exception as error:  # noqa: BLE001 - the next call raises it
            self._failure = self._failure or error

    def _between_blocks(self) -> None:
        """Rows of a table are left to take: not by an engine that has stopped."""
        self._catch_up()
        self._check()

    @as_engine_errors()
    def _changed(self, changes: Callable[[], list[C]]) -> list[C]:
        """Make changes, thought out once nothing else can happen in between."""
        coming, place = self._prefetched(changes)
        if not coming:
            return []
        with self._call(catches_up=False):
            # Thought out again where another change came between.
            made = coming if place == self._streams.catalog.last_place else changes()
            self._streams.change(made)
            # Events that waited for this need not wait for what it made overdue, too.
            self._background.put_off()
            return made

    def _prefetched(self, changes: Callable[[], list[C]]) -> tuple[list[C], int]:
        """Think changes out once before they are made, and wait for the chunks that they need: no call waits for these.

        Returns them, and the place in the catalogue that they come behind.
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
        """Stop for good where an error came half-way."""
        if not self._streams.is_usable:
            self._failure = self._failure or error

    def _step(self) -> bool:
        """A brief step of background work. True: there is more to do now."""
        more = self._streams.work()
        now_s = time.monotonic()
        if now_s >= self._next_reading_s:
            self._reading = self._streams.read()
            self._next_reading_s = now_s + _READING_S
        return more

    def _turn(self, work: Callable[[], None]) -> bool:
        """A slice of work in the background's own thread; False once the engine has come to its end."""
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


def _as_told(failure: BaseException) -> BaseException:
    """What a failure is to whoever uses an engine."""
    known = translated(failure) if isinstance(failure, Exception) else None
    return known or failure
