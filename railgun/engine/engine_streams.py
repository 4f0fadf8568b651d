"""All streams of an `Engine`: opens them from the data folder, applies changes of the catalogue, and closes them."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import (
    AddDerived,
    AddHistory,
    AddMetric,
    BeginDeepening,
    Change,
    Deepen,
    DropMetric,
    DropStream,
    PutStream,
    Warm,
    change_to_json,
)
from railgun.catalog.model import MetricDefinition
from railgun.engine.deepening.deepenings import Deepenings
from railgun.engine.deepening.steps import DeepeningSteps
from railgun.engine.folder import DataFolder, of_another_log, without_log
from railgun.engine.history import check_history, history_id, history_plan
from railgun.engine.live_stream import LiveStream
from railgun.engine.opening import Opening, check_new_tasks, check_opening, task_count
from railgun.engine.status import StreamStatus, task_status
from railgun.engine.stream_hosts import StreamHosts
from railgun.history.build import HistoryPlan
from railgun.history.manifest import ready_folder
from railgun.history.plan_file import deepening_folder
from railgun.host.lanes import HostLanes
from railgun.host.memory import MemoryShares
from railgun.host.place import Place
from railgun.host.reading import filled, read_tasks
from railgun.host.start import StartProgress
from railgun.host.task_host import TaskHost
from railgun.messaging.embedded.log import Durability, EmbeddedLog
from railgun.registry.catalog_log import TOPIC, CatalogLog
from railgun.registry.change_log import ChangeLog
from railgun.registry.entries import change_stream
from railgun.registry.evolution import stream_entry
from railgun.registry.metric_status import MetricStatus, with_derived
from railgun.registry.origin import UNNAMED, Origin
from railgun.registry.task_topics import topics_of_stream
from railgun.task.environment import TaskEnvironment
from railgun.task.processor import TaskProcessor
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording
from railgun.wire.control_records import encode_control
from railgun.wire.records import Records
from reservoir.cursors.held_frame import Ahead
from reservoir.files import DiskFiles

# How many tasks are opened as successors, or closed, at the same time.
_AT_ONCE = 2


class EngineStreams:
    """The streams of an engine. One thread at a time may use it. Raises the errors of the packages that it uses.

    memory: divides the memory limit among the tasks.
    may_warm: whether a metric that has been filled may begin to answer now.
    threads: how many threads opening, or scoring a large table, may use.
    start: is told about the progress of opening.
    environment: clocks, randomness and executor for the tasks.
    deepening: the steps by which a stream gets older history.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability,
        memory: MemoryShares,
        may_warm: Callable[[Warm], bool],
        threads: int,
        recording: Recording,
        start: StartProgress,
        environment: TaskEnvironment,
    ) -> None:
        self._folder = DataFolder(folder, DiskFiles())
        self._memory, self._may_warm, self._threads = memory, may_warm, threads
        self._live: dict[str, LiveStream] = {}
        self._is_changing = False
        self._recording = recording
        self._log = EmbeddedLog(self._folder.log, durability)
        self._now, self._lanes = environment.now, HostLanes(environment.executor, _AT_ONCE)
        self._deepenings = Deepenings(self._folder, self._log, environment.randomness)
        self._opening = Opening(
            self._folder,
            self._log,
            memory,
            threads,
            self._write_warm,
            self._deepenings.kept,
            self._deepenings.offered,
            environment,
            self._lanes,
        )
        try:
            if TOPIC not in self._log.topics() and self._folder.has_tasks:
                raise without_log(folder)
            self._changes = CatalogLog(self._log, str(folder))
            self.deepening = DeepeningSteps(self._deepenings, self._changes, self._live, self.change)
            self._finish_pending(start)
        except BaseException:
            self.close(checkpoint=False)
            raise

    @property
    def catalog(self) -> Catalog:
        """The catalogue of everything that is registered."""
        return self._changes.catalog

    @property
    def durability(self) -> Durability:
        """Which failures an answered event survives."""
        return self._log.durability

    @property
    def is_usable(self) -> bool:
        """False after an error in the middle of a change. Nothing may be used then."""
        return not self._is_changing and all(live.hosts.is_usable for live in self._live.values())

    @property
    def is_throttled(self) -> bool:
        """Whether background work leaves most of the time to calls.

        That is so while it fills metrics, or while successors follow live tasks: the checkpoints that these cause are
        throttled too. Successors still catch up, however rarely they get a step.

        Otherwise checkpoints are the only background work. They are not throttled, because the longer they take, the
        more records have to be processed again after a crash.
        """
        return self.is_following or self._fills

    @property
    def is_deferrable(self) -> bool:
        """Whether background work may be delayed. If successors follow it may not: the fewer steps they get, the
        longer each step takes.
        """
        return self._fills and not self.is_following

    @property
    def is_following(self) -> bool:
        """Whether any task has a successor that follows it."""
        return any(host.take_over.successor is not None for host in self._hosts)

    @property
    def _fills(self) -> bool:
        return any(host.task.metrics.warming for host in self._hosts)

    @property
    def _hosts(self) -> Iterator[TaskHost]:
        return (host for live in self._live.values() for host in live.hosts)

    def live(self, stream: str) -> LiveStream:
        """Return a stream that is open. Raises UnknownNameError."""
        stream_entry(self.catalog, stream)
        return self._live[stream]

    def expedite(self, stream: str) -> bool:
        """Do a slice of the work that a stream's warming metrics wait for. Returns whether there is more to do.

        Raises UnknownNameError.
        """
        hosts = self.live(stream).hosts
        hosts.expedite()
        return any(self._may_warm(warm) for host in hosts for warm in _cold(host.task))

    def metrics(self, stream: str) -> list[MetricStatus]:
        """Return the status of a stream's metrics, in the order in which they were added. Raises UnknownNameError."""
        return self.standing(stream)()

    def standing(self, stream: str) -> Callable[[], list[MetricStatus]]:
        """Return a function that makes the result of `metrics` from a snapshot of the present state.

        The caller may call it after it has released the lock. So other threads do not wait while a list of a hundred
        metrics is made.
        Raises UnknownNameError.
        """
        entry = stream_entry(self.catalog, stream)
        registered = entry.registered.copy()
        metrics = [add.metric for add in entry.metrics.values()]
        shares = [(each.place.key.partitioner, filled(each.task)) for each in self._live[stream].hosts]
        return lambda: with_derived(registered, [_standing(metric, shares) for metric in metrics])

    def streams_status(self) -> tuple[StreamStatus, ...]:
        """Return the status of every stream, in the order in which they were created."""
        return tuple(
            StreamStatus(
                name,
                tuple(map(task_status, live.hosts)),
                tuple(self.metrics(name)),
                self.deepening.status(name),
            )
            for name, live in self._live.items()
        )

    @property
    def change_log(self) -> ChangeLog:
        """Return the log of who changed what."""
        return self._changes.log

    def change(self, changes: Sequence[Change], origin: Origin = UNNAMED) -> None:
        """Record changes in the catalogue's log, and apply them in every task.

        Raises CatalogError, and OpenFilesError if the new streams have too many tasks; nothing has changed then.
        """
        if changes:
            self._changes.check(changes)
            self._check_open_files(changes)
            self._is_changing = True
            self._changes.begin(changes, origin)
            self._apply_in_tasks(changes)
            self._changes.finish()
            self._is_changing = False

    def history_plan(self, stream: str, history: str, cut_ms: int) -> HistoryPlan:
        """Return the plan from which history of a stream is built. Raises UnknownNameError and
        HistoryRefusedError.
        """
        entry = stream_entry(self.catalog, stream)
        hosts = list(self._live[stream].hosts)
        return history_plan(
            entry, self._changes.keys[stream], hosts, history, cut_ms, self.catalog.last_place
        )

    def add_history(self, stream: str) -> None:
        """Put history that a backfill has built before a stream's log. The stream's tasks are opened again from it.

        Raises UnknownNameError, HistoryRefusedError and HistoryDamagedError; nothing has changed then.
        """
        entry = stream_entry(self.catalog, stream)
        folder = ready_folder(self._folder.path, stream)
        manifest = check_history(entry, list(self._live[stream].hosts), folder)
        place = self.catalog.last_place + 1
        self.change([AddHistory(place, stream, manifest.history, manifest.cut_ms, manifest.known_place)])

    def history(self, stream: str) -> str | None:
        """Return the id of the history that a stream has from before its log; None if it has none. Raises
        UnknownNameError.
        """
        return history_id(stream_entry(self.catalog, stream))

    def prefetch(self, changes: Sequence[Change]) -> list[Ahead]:
        """Decode chunks that tasks will need for changes that are about to be made. Returns handles that the caller
        may wait for.
        """
        of_stream: dict[str, list[Change]] = {}
        for change in changes:
            of_stream.setdefault(change_stream(change), []).append(change)
        return [
            ahead
            for name, own in of_stream.items()
            for host in self._hosts_of(name)
            for ahead in host.task.prefetch(own)
        ]

    def _hosts_of(self, stream: str) -> Iterable[TaskHost]:
        live = self._live.get(stream)
        return () if live is None else live.hosts

    def read(self) -> EngineReading:
        """Return a reading of all tasks, for monitoring."""
        return read_tasks((host.task for host in self._hosts), self._now())

    def work(self) -> bool:
        """Do a brief step of background work. Returns whether there is more to do now."""
        more = False
        for live in self._live.values():
            more |= live.hosts.work()
        return (self.is_following and self.deepening.follow()) or more

    def close(self, *, checkpoint: bool) -> None:
        """Close everything. An error does not stop the rest from being closed; the first error is raised."""
        steps: list[Callable[[], None]] = []
        for live in self._live.values():
            if checkpoint:
                steps.append(live.hosts.checkpoint)
            steps.append(live.close)
        failures: list[Exception] = []
        for step in (*steps, self._lanes.close, self._log.close):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the rest is closed too before it is raised
                failures.append(error)
        self._live.clear()
        if failures:
            raise failures[0]

    def _write_warm(self, place: Place, due: Sequence[Warm]) -> None:
        records = [encode_control(change_to_json(each)) for each in due if self._may_warm(each)]
        if records:
            hosts, key = self._live[place.key.stream].hosts, place.key
            hosts.control([hosts.at(key.partitioner, key.partition)], Records.of(records))

    def _finish_pending(self, start: StartProgress) -> None:
        """Open every stream, and complete the changes that a crash has cut off. Tasks skip changes that they have
        applied already.
        """
        pending = list(self._changes.pending)
        for change in pending:
            if isinstance(change, DropStream) and change.name not in self.catalog.streams:
                self._remove(change.name)
        strangers = self._folder.streams() - self.catalog.streams.keys()
        if strangers:
            raise of_another_log(self._folder.path, min(strangers))
        self._deepenings.recover(self.catalog.streams.values(), self._changes.keys)
        tasks = task_count(self.catalog.streams.values())
        check_opening(str(self._folder.path), tasks)
        if tasks:
            start.opening(tasks)
        self._open(list(self.catalog.streams.values()), start)
        self._apply_in_tasks([change for change in pending if change_stream(change) in self.catalog.streams])
        self._changes.finish()
        for name in self._live:
            self.deepening.finish_if_taken_over(name)

    def _check_open_files(self, changes: Sequence[Change]) -> None:
        puts = [change.stream for change in changes if isinstance(change, PutStream)]
        new = [stream for stream in puts if stream.name not in self._live]
        if new:
            existing = task_count(self.catalog.streams.values())
            names = ", ".join(stream.name for stream in new)
            check_new_tasks(f"stream {names}", existing, sum(len(stream.tasks) for stream in new))

    def _apply_in_tasks(self, changes: Sequence[Change]) -> None:
        """Send changes to the tasks. All changes of one stream are sent together."""
        by_stream: dict[str, list[Change]] = {}
        for change in changes:
            by_stream.setdefault(change_stream(change), []).append(change)
        for stream, own in by_stream.items():
            if isinstance(own[-1], DropStream):
                self._remove(stream)
                continue
            if stream not in self._live:
                self._open([self.catalog.streams[stream]], StartProgress())
            self._live[stream].tell(own)
            if isinstance(own[-1], Deepen):
                self._deepenings.keep_all(stream)
            if isinstance(own[-1], AddHistory):
                shutil.rmtree(ready_folder(self._folder.path, stream).parent, ignore_errors=True)

    def _open(self, entries: Sequence[StreamEntry], start: StartProgress) -> None:
        """Open the tasks of streams, and process what their logs hold."""
        opened = self._opening.hosts(entries, self._changes.keys, start)
        for entry in entries:
            name = entry.stream.name
            hosts = StreamHosts(self._log, [each for each in opened if each.place.key.stream == name])
            self._live[name] = LiveStream(entry, hosts, self._threads, self._recording.stream(name))

    def _remove(self, stream: str) -> None:
        """Delete all files and topics of a stream that was dropped."""
        self._let_go(stream)
        deepening = self._deepenings.forget(stream)
        self._recording.forget(stream)
        for topic in topics_of_stream(self._log, stream):
            self._log.delete_topic(topic)
        self._folder.remove_stream(stream)
        if deepening is not None:
            shutil.rmtree(deepening_folder(self._folder.path, stream), ignore_errors=True)

    def _let_go(self, stream: str) -> None:
        """Close a stream's tasks, if they are open."""
        live = self._live.pop(stream, None)
        if live is not None:
            live.close()
            self._memory.give_back(host.settings for host in live.hosts)


def _cold(task: TaskProcessor) -> list[Warm]:
    """Return a `warm` change for each metric of a task that is still warming."""
    metrics = task.metrics.by_name.values()
    return [Warm(task.identity.stream, m.definition.name, m.added) for m in metrics if not m.warm]


def _standing(metric: MetricDefinition, filled_of: Sequence[tuple[str, Mapping[str, float]]]) -> MetricStatus:
    shares = [of[metric.name] for home, of in filled_of if home == metric.home and metric.name in of]
    return MetricStatus.of(metric, warming=bool(shares), filled=min(shares, default=1.0))


def describe(change: Change) -> str:
    """Return a line that tells the caller what a change has made."""
    match change:
        case PutStream():
            return f"stream {change.stream.name}"
        case AddMetric():
            return f"metric {change.metric.stream}.{change.metric.name}"
        case AddDerived():
            return f"metric {change.stream}.{change.name}"
        case DropMetric():
            return f"metric {change.stream}.{change.name}, dropped"
        case DropStream():
            return f"stream {change.name}, dropped"
        case AddHistory() | BeginDeepening() | Deepen():
            return f"history of stream {change.stream}"
