"""All streams of an engine. Opens them from the data folder, applies changes of the catalogue, and closes them."""

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
from railgun.engine.errors import HistoryRefusedError
from railgun.engine.folder import DataFolder, of_another_log, without_log
from railgun.engine.history import check_history, history_id, history_plan
from railgun.engine.live_backfill import LiveBackfill, LiveBackfillStart
from railgun.engine.live_backfills import LiveBackfills
from railgun.engine.live_stream import LiveStream
from railgun.engine.opening import Opening, check_new_tasks, check_opening
from railgun.engine.status import LiveBackfillStatus, StreamStatus, task_status
from railgun.engine.stream_hosts import StreamHosts
from railgun.history.build import HistoryPlan
from railgun.history.manifest import ready_folder
from railgun.history.plan_file import live_backfill_folder
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
from railgun.registry.topics import topics_of_stream
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
        self._turn = 0
        self._recording = recording
        self._log = EmbeddedLog(self._folder.log, durability)
        self._now, self._lanes = environment.now, HostLanes(environment.executor, _AT_ONCE)
        self.live_backfills = LiveBackfills(self._folder, self._log, environment.randomness)
        self._opening = Opening(
            self._folder,
            self._log,
            memory,
            threads,
            self._write_warm,
            self.live_backfills.kept,
            self.live_backfills.offered,
            environment,
            self._lanes,
        )
        try:
            if TOPIC not in self._log.topics() and self._folder.has_tasks:
                raise without_log(folder)
            self._changes = CatalogLog(self._log, str(folder))
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
                self.live_backfill_status(name),
            )
            for name, live in self._live.items()
        )

    @property
    def change_log(self) -> ChangeLog:
        """Who changed what."""
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
        """Put history that a backfill has built before a stream's log. The stream's tasks are opened anew from it.

        Raises UnknownNameError, HistoryRefusedError and HistoryDamagedError; nothing has changed then.
        """
        entry = stream_entry(self.catalog, stream)
        folder = ready_folder(self._folder.path, stream)
        manifest = check_history(entry, list(self._live[stream].hosts), folder)
        place = self.catalog.last_place + 1
        self.change([AddHistory(place, stream, manifest.history, manifest.cut_ms, manifest.known_place)])

    def begin_deepening(
        self, stream: str, cut_ms: int | None
    ) -> tuple[LiveBackfillStart, HistoryPlan] | None:
        """Begin a live backfill; None where it has begun. Raises UnknownNameError, HistoryRefusedError, OSError."""
        entry, hosts = stream_entry(self.catalog, stream), list(self._live[stream].hosts)
        place = self.catalog.last_place
        return self.live_backfills.begin(entry, self._changes.keys[stream], hosts, cut_ms, place)

    def started_live_backfill(self, stream: str) -> None:
        """Note that writing the plan of a stream's deepening has ended, with or without an error."""
        self.live_backfills.begun(stream, self.catalog.streams.get(stream))

    def begin_installing(self, stream: str) -> LiveBackfill:
        """The live backfill that the caller will bring to its end. Its tasks may open their successors from now on.

        Raises UnknownNameError, HistoryRefusedError, OpenFilesError.
        """
        entry = stream_entry(self.catalog, stream)
        backfill = self.live_backfills.wanted(stream)
        if backfill.is_installing:
            raise HistoryRefusedError(f"{stream}: its deepening is being installed already")
        if not _has_taken_over(entry, backfill):
            backfill.check_built()
            check_new_tasks(f"the deepening of {stream}", self._task_count(), len(entry.stream.tasks))
        backfill.begin_installing()
        for host in self._live[stream].hosts:
            host.take_over.look_soon()
        return backfill

    def take_over(self, backfill: LiveBackfill, origin: Origin) -> bool:
        """Let the successors take over if all of them are near the ends of their logs. Returns whether they have
        taken over.

        origin: who asked for it.
        Raises HistoryRefusedError if the stream was dropped. If a successor cannot follow, raises the error that
        stops it.
        """
        self.live_backfills.check_under_way(backfill)
        stream = backfill.stream
        if _has_taken_over(self.catalog.streams[stream], backfill):
            return True
        hosts = self._live[stream].hosts
        _check_following(hosts, backfill)
        successors = [host.take_over.successor for host in hosts]
        if not all(each is not None and each.is_near for each in successors):
            return False
        for each in successors:
            assert each is not None
            each.catch_up()
        plan = backfill.plan
        self.change([Deepen(self.catalog.last_place + 1, stream, plan.history, plan.cut_ms)], origin)
        return True

    def is_settled(self, backfill: LiveBackfill) -> bool:
        """Whether the places of all tasks that took over point to their new folders.

        Raises HistoryRefusedError if the stream was dropped. If a task could not be moved, raises the error.
        """
        self.live_backfills.check_under_way(backfill)
        hosts = self._live[backfill.stream].hosts
        _check_following(hosts, backfill)
        return not any(host.take_over.is_moving for host in hosts)

    def finish_installing(self, backfill: LiveBackfill) -> None:
        """Note that a deepening is installed, and forget it. The caller then deletes what is no longer needed, with
        `remove`.

        Raises OSError.
        """
        if self.live_backfills.of(backfill.stream) is backfill:
            backfill.rename_for_deletion(backfill.plan.history)
            self.live_backfills.forget(backfill.stream)

    def installing_failed(self, backfill: LiveBackfill) -> None:
        """Note that installing a deepening has failed. A caller may try again.

        The next attempt starts from the beginning, unless the successors have taken over already.
        """
        backfill.is_installing, backfill.offer = False, None
        if self.live_backfills.of(backfill.stream) is backfill:
            for host in self._live[backfill.stream].hosts:
                host.take_over.withdraw()

    def live_backfill_status(self, stream: str) -> LiveBackfillStatus | None:
        """How a live backfill stands; None where none is under way. Raises UnknownNameError."""
        stream_entry(self.catalog, stream)
        found = self.live_backfills.of(stream)
        if found is None:
            return None
        plan = found.plan
        entry, hosts = self.catalog.streams[stream], self._live[stream].hosts
        state = "installing" if found.is_installing or _has_taken_over(entry, found) else "building"
        if found.damage is not None:
            state = "damaged"
        failures = [host.take_over.failure for host in hosts if host.take_over.failure is not None]
        failure = found.damage or next(iter(failures), None)
        behind = sum(s.behind for host in hosts if (s := host.take_over.successor) is not None)
        return LiveBackfillStatus(
            stream, plan.history, plan.cut_ms, state, str(found.folder), behind, failure
        )

    def history(self, stream: str) -> str | None:
        """Return the id of the history that a stream has from before its log; None if it has none. Raises
        UnknownNameError.
        """
        return history_id(stream_entry(self.catalog, stream))

    def give_up_deepening(self, stream: str) -> LiveBackfill | None:
        """Let go of a live backfill, whose files the caller removes.

        Raises UnknownNameError, HistoryRefusedError, OSError.
        """
        entry, found = stream_entry(self.catalog, stream), self.live_backfills.of(stream)
        if found is None:
            return None
        if found.is_installing:
            raise HistoryRefusedError(f"{stream}: its deepening is being installed; wait for that")
        if _has_taken_over(entry, found):
            raise HistoryRefusedError(
                f"{stream}: the tasks of its deepening answer already; install it again to bring it to its end"
            )
        found.rename_for_deletion(history_id(entry))
        return self.live_backfills.forget(stream)

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
        return self._follow() or more

    def _follow(self) -> bool:
        """Let one successor do a brief step, in turns, and with it each successor that would fall behind otherwise.

        Returns whether there is more to do now.
        """
        following = [host for host in self._hosts if host.take_over.successor is not None]
        self._turn += 1
        more = False
        for number, host in enumerate(following):
            successor = host.take_over.successor
            if number == self._turn % len(following) or (successor is not None and successor.has_backlog):
                more |= host.take_over.step()
        behind = [s.behind for host in following if (s := host.take_over.successor) is not None]
        return more or any(behind)

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
        self.live_backfills.recover(self.catalog.streams.values(), self._changes.keys)
        tasks = self._task_count()
        check_opening(str(self._folder.path), tasks)
        if tasks:
            start.opening(tasks)
        self._open(list(self.catalog.streams.values()), start)
        self._apply_in_tasks([change for change in pending if change_stream(change) in self.catalog.streams])
        self._changes.finish()
        for name, live in self._live.items():
            self._end_live_backfill(name, live)

    def _end_live_backfill(self, stream: str, live: LiveStream) -> None:
        """At the start: what was left to do of a live backfill whose tasks have taken over."""
        backfill = self.live_backfills.of(stream)
        if backfill is None or backfill.damage is not None:
            return
        if any(host.task.history != backfill.plan.history for host in live.hosts):
            return
        for host in live.hosts:
            host.take_over.settle(host.task)
        if not any(host.take_over.is_moving for host in live.hosts):
            self.finish_installing(backfill)
            backfill.remove()

    def _check_open_files(self, changes: Sequence[Change]) -> None:
        puts = [change.stream for change in changes if isinstance(change, PutStream)]
        new = [stream for stream in puts if stream.name not in self._live]
        if new:
            existing = self._task_count()
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
                self.live_backfills.keep_all(stream)
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
        backfill = self.live_backfills.forget(stream)
        self._recording.forget(stream)
        for topic in topics_of_stream(self._log, stream):
            self._log.delete_topic(topic)
        self._folder.remove_stream(stream)
        if backfill is not None:
            shutil.rmtree(live_backfill_folder(self._folder.path, stream), ignore_errors=True)

    def _task_count(self) -> int:
        return sum(len(entry.stream.tasks) for entry in self.catalog.streams.values())

    def _let_go(self, stream: str) -> None:
        """Close a stream's tasks, if they are open."""
        live = self._live.pop(stream, None)
        if live is not None:
            live.close()
            self._memory.give_back(host.settings for host in live.hosts)


def _has_taken_over(entry: StreamEntry, backfill: LiveBackfill) -> bool:
    return history_id(entry) == backfill.plan.history


def _check_following(hosts: StreamHosts, backfill: LiveBackfill) -> None:
    """Raise the error of a successor that cannot be opened, cannot follow or cannot be moved, if it belongs to the
    present offer.
    """
    for host in hosts:
        error = host.take_over.error
        if error is not None and host.take_over.offer == backfill.offer:
            raise error


def _cold(task: TaskProcessor) -> list[Warm]:
    """Return a `warm` change for each metric of a task that is still warming."""
    metrics = task.metrics.by_name.values()
    return [Warm(task.identity.stream, m.definition.name, m.added) for m in metrics if not m.warm]


def _standing(metric: MetricDefinition, filled_of: Sequence[tuple[str, Mapping[str, float]]]) -> MetricStatus:
    shares = [of[metric.name] for home, of in filled_of if home == metric.home and metric.name in of]
    outdated = metric.resolved.outdated_zones
    return MetricStatus(
        metric.name, metric.sql, metric.home, bool(shares), min(shares, default=1.0), outdated
    )


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
