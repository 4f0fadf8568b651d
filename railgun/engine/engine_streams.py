"""All streams of an engine: opened from the folder, changed by the catalogue, closed again."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import (
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
from railgun.engine.deepening import Beginning, Deepening
from railgun.engine.deepenings import Deepenings
from railgun.engine.errors import HistoryRefusedError
from railgun.engine.folder import DataFolder, of_another_log, without_log
from railgun.engine.history import check_history, history_named, history_plan
from railgun.engine.live_stream import LiveStream
from railgun.engine.members import Member, Members
from railgun.engine.open_files import check_new_tasks, check_opening
from railgun.engine.opening import Opening
from railgun.engine.status import (
    DeepeningStatus,
    MetricStatus,
    StreamStatus,
    task_status,
)
from railgun.engine.upkeep import Upkeep
from railgun.messaging.embedded import Durability, EmbeddedLog
from railgun.messaging.transport import Entry
from railgun.registry.catalog_log import TOPIC, CatalogLog
from railgun.registry.entries import change_stream
from railgun.registry.evolution import stream_entry
from railgun.registry.topics import topics_of_stream
from railgun.task.deepening_plan import deepening_folder
from railgun.task.errors import HistoryMissingError
from railgun.task.foresight import Foresight
from railgun.task.history_build import HistoryPlan
from railgun.task.history_manifest import ready_folder
from railgun.task.processor import TaskProcessor
from railgun.task.settings import TaskSettings
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording
from railgun.unit.memory import MemoryShares
from railgun.unit.reading import filled, read_tasks
from railgun.unit.start import Start
from railgun.wire.encode import encode_control
from reservoir.files import DiskFiles
from reservoir.prefetch import Ahead


class EngineStreams:
    """One thread uses it at a time. Raises the errors of the rooms below.

    threads: how many opening, and a long table, may keep busy.  memory: what tasks get of it.  start: told how far
    opening is.
    """

    def __init__(
        self,
        folder: Path,
        durability: Durability,
        memory: MemoryShares,
        may_warm: Callable[[Warm], bool],
        threads: int,
        recording: Recording,
        start: Start,
    ) -> None:
        self._folder = DataFolder(folder, DiskFiles())
        self._memory, self._may_warm, self._threads = memory, may_warm, threads
        self._live: dict[str, LiveStream] = {}
        self._is_changing = False
        self._upkeep: dict[str, Upkeep] = {}
        self._recording = recording
        self._log = EmbeddedLog(self._folder.log, durability)
        self._opening = Opening(self._folder, self._log, memory, threads)
        self.deepenings = Deepenings(self._folder, self._log)
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
        """What is registered."""
        return self._changes.catalog

    @property
    def durability(self) -> Durability:
        """What an answered event survives."""
        return self._log.durability

    @property
    def is_whole(self) -> bool:
        """False once something went wrong half-way: nothing may be used any more."""
        return not self._is_changing and all(live.members.is_whole for live in self._live.values())

    @property
    def rests(self) -> bool:
        """Whether background work leaves calls most of the time: it fills metrics, or follows tasks that answer, and
        checkpoints what came of it. What follows gains on them, however seldom its steps are.

        Where there is none of it, checkpoints are all there is, and the longer they take, the more has a start after a
        crash to do again.
        """
        return self.deepenings.is_following or self._fills

    @property
    def has_time(self) -> bool:
        """Whether it may take its time. Tasks that follow may not: the fewer their steps, the longer is each."""
        return self._fills and not self.deepenings.is_following

    @property
    def _fills(self) -> bool:
        return any(member.task.metrics.warming for live in self._live.values() for member in live.members)

    def live(self, stream: str) -> LiveStream:
        """A stream's tasks. Raises UnknownNameError."""
        stream_entry(self.catalog, stream)
        return self._live[stream]

    def upkeep(self, stream: str) -> Upkeep:
        """The background work of a stream. Raises UnknownNameError."""
        stream_entry(self.catalog, stream)
        return self._upkeep[stream]

    def metrics(self, stream: str) -> list[MetricStatus]:
        """A stream's metrics, in the order added. Raises UnknownNameError."""
        return self.standing(stream)()

    def standing(self, stream: str) -> Callable[[], list[MetricStatus]]:
        """What says the same later, of now: a hundred metrics are a long list, that nobody else need wait for.

        Raises UnknownNameError.
        """
        metrics = [add.metric for add in stream_entry(self.catalog, stream).metrics.values()]
        members = [(each.partitioner, filled(each.task)) for each in self._live[stream].members]
        return lambda: [_standing(metric, members) for metric in metrics]

    def streams_status(self) -> tuple[StreamStatus, ...]:
        """How every stream stands, in the order created."""
        return tuple(
            StreamStatus(
                name,
                tuple(map(task_status, live.members)),
                tuple(self.metrics(name)),
                self.deepening_status(name),
            )
            for name, live in self._live.items()
        )

    def change(self, changes: Sequence[Change]) -> None:
        """Record changes and bring them into force, in every task.

        Raises CatalogError, and OpenFilesError for streams of too many tasks, having changed nothing.
        """
        if changes:
            self._changes.check(changes)
            self._check_open_files(changes)
            self._is_changing = True
            self._changes.begin(changes)
            self._force(changes)
            self._changes.finish()
            self._is_changing = False

    def history_plan(self, stream: str, history: str, cut_ms: int) -> HistoryPlan:
        """What history of a stream is built from. Raises UnknownNameError, HistoryRefusedError."""
        entry = stream_entry(self.catalog, stream)
        members = list(self._live[stream].members)
        return history_plan(
            entry, self._changes.keys[stream], members, history, cut_ms, self.catalog.last_place
        )

    def add_history(self, stream: str) -> None:
        """Put the history that was made ready before a stream's log. Its tasks are opened anew.

        Raises UnknownNameError, HistoryRefusedError, HistoryDamagedError, having changed nothing.
        """
        entry = stream_entry(self.catalog, stream)
        folder = ready_folder(self._folder.path, stream)
        manifest = check_history(entry, list(self._live[stream].members), folder)
        place = self.catalog.last_place + 1
        self.change([AddHistory(place, stream, manifest.history, manifest.cut_ms, manifest.known_place)])

    def begin_deepening(self, stream: str, cut_ms: int | None) -> tuple[Beginning, HistoryPlan] | None:
        """Let a deepening begin; None where it has already. Raises UnknownNameError, HistoryRefusedError, OSError."""
        entry, members = stream_entry(self.catalog, stream), list(self._live[stream].members)
        place = self.catalog.last_place
        return self.deepenings.begin(entry, self._changes.keys[stream], members, cut_ms, place)

    def begun_deepening(self, stream: str) -> None:
        """Its plan was written, or could not be."""
        self.deepenings.begun(stream, self.catalog.streams.get(stream))

    def installing(self, stream: str) -> tuple[Deepening, TaskSettings | None]:
        """Somebody brings a deepening to its end: it, and what its tasks are to be opened with; None where they have
        taken over already.

        Raises UnknownNameError, HistoryRefusedError, OpenFilesError.
        """
        tasks = len(stream_entry(self.catalog, stream).stream.tasks)
        deepening = self.deepenings.wanted(stream)
        if deepening.is_installing:
            raise HistoryRefusedError(f"{stream}: its deepening is being installed already")
        if deepening.taken_over is None:
            check_new_tasks(f"the deepening of {stream}", self._task_count(), tasks)
        deepening.is_installing, deepening.failure = True, None
        return deepening, self._memory.take(tasks) if deepening.taken_over is None else None

    def installed(self, deepening: Deepening) -> None:
        """Its tasks are in their folders for good. What is not needed any more is for the caller to remove. OSError."""
        if self.deepenings.of(deepening.stream) is deepening:
            deepening.put_away(deepening.plan.history)
            self.deepenings.forget(deepening.stream)

    def not_installed(self, deepening: Deepening, settings: TaskSettings | None) -> None:
        """It did not come to its end: somebody may try again, from the beginning unless its tasks have taken over."""
        deepening.is_installing = False
        deepening.close()
        # Also where the stream was dropped meanwhile, and whether or not its tasks were open yet.
        if deepening.taken_over is None and settings is not None:
            self._memory.give_back([settings] * len(deepening.places))

    def take_over(self, deepening: Deepening) -> LiveStream | None:
        """Once a deepening's tasks have come near the ends of their logs they take over; what they replace is to be
        closed, by whoever asks. None: not yet.

        Raises HistoryRefusedError where they do not follow any more.
        """
        self.deepenings.check_under_way(deepening)
        stream = deepening.stream
        if deepening.failure is not None:
            raise HistoryRefusedError(f"the deepening of {stream} cannot go on: {deepening.failure}")
        if not deepening.is_near:
            return None
        for shadow in deepening.shadows:
            shadow.catch_up()
        replaced, plan = self._live[stream], deepening.plan
        self.change([Deepen(self.catalog.last_place + 1, stream, plan.history, plan.cut_ms)])
        return replaced

    def deepening_status(self, stream: str) -> DeepeningStatus | None:
        """How a deepening stands; None where none is under way. Raises UnknownNameError."""
        stream_entry(self.catalog, stream)
        found = self.deepenings.of(stream)
        if found is None:
            return None
        plan = found.plan
        state = "installing" if found.is_installing or found.taken_over is not None else "building"
        if found.damage is not None:
            state = "damaged"
        failure = found.damage or found.failure
        return DeepeningStatus(
            stream, plan.history, plan.cut_ms, state, str(found.folder), found.behind, failure
        )

    def history(self, stream: str) -> str | None:
        """The id of what a stream has from before its log. Raises UnknownNameError."""
        return history_named(stream_entry(self.catalog, stream))

    def give_up_deepening(self, stream: str) -> Deepening | None:
        """Let go of a deepening, whose files the caller removes.

        Raises UnknownNameError, HistoryRefusedError, OSError.
        """
        entry, found = stream_entry(self.catalog, stream), self.deepenings.of(stream)
        if found is None:
            return None
        if found.is_installing:
            raise HistoryRefusedError(f"{stream}: its deepening is being installed; wait for that")
        if found.taken_over is not None:
            raise HistoryRefusedError(
                f"{stream}: the tasks of its deepening answer already; install it again to bring it to its end"
            )
        found.put_away(history_named(entry))
        return self.deepenings.forget(stream)

    def is_durable(self, deepening: Deepening) -> bool:
        """Have the tasks of a deepening checkpoints behind the point where they took over? Hastens them.

        Raises HistoryRefusedError where its stream was dropped.
        """
        self.deepenings.check_under_way(deepening)
        taken_over = deepening.taken_over
        for member in self._live[deepening.stream].members:
            checkpoints = member.task.checkpoints
            if taken_over is None or checkpoints.durable_position < taken_over[member.log.where]:
                if not member.task.checkpointer.is_in_flight:
                    checkpoints.begin()
                return False
        return True

    def foresee(self, changes: Sequence[Change]) -> list[tuple[TaskProcessor, Foresight]]:
        """Changes will be made soon: the tasks that something can be done for before, and what."""
        of_stream: dict[str, list[Change]] = {}
        for change in changes:
            of_stream.setdefault(change_stream(change), []).append(change)
        return [
            (member.task, foreseen)
            for name, own in of_stream.items()
            for member in self._members_of(name)
            if (foreseen := member.task.foresee(own)) is not None
        ]

    def read_ahead(self, foreseen: Sequence[tuple[TaskProcessor, Foresight]]) -> list[Ahead]:
        """Have read ahead what was foreseen for tasks that are still there; what may be waited for."""
        here = {id(member.task) for name in self._live for member in self._members_of(name)}
        return [ahead for task, each in foreseen if id(task) in here for ahead in each.read_ahead()]

    def _members_of(self, stream: str) -> Iterable[Member]:
        live = self._live.get(stream)
        return () if live is None else live.members

    def read(self) -> EngineReading:
        """How all tasks stand."""
        return read_tasks(member.task for live in self._live.values() for member in live.members)

    def work(self) -> bool:
        """A brief step of background work. True: there is more to do now."""
        more = False
        for upkeep in self._upkeep.values():
            more |= upkeep.work()
        return self.deepenings.work() or more

    def close(self, *, checkpoint: bool) -> None:
        """Let go of everything, whatever fails; the first failure is raised."""
        steps: list[Callable[[], None]] = []
        for stream, live in self._live.items():
            if checkpoint:
                steps.append(self._upkeep[stream].checkpoint)
            steps.append(live.close)
        failures: list[Exception] = []
        for step in (*steps, self.deepenings.close, self._log.close):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the rest is closed too before it is raised
                failures.append(error)
        self._live.clear()
        self._upkeep.clear()
        if failures:
            raise failures[0]

    def _finish_pending(self, start: Start) -> None:
        """Open every stream; what was begun before a crash is brought to its end: tasks skip what they know."""
        pending = list(self._changes.pending)
        for change in pending:
            if isinstance(change, DropStream) and change.name not in self.catalog.streams:
                self._remove(change.name)
            if isinstance(change, AddHistory):
                self._folder.take_history(change.stream)
        strangers = self._folder.streams() - self.catalog.streams.keys()
        if strangers:
            raise of_another_log(self._folder.path, min(strangers))
        self.deepenings.find(self.catalog.streams.values(), self._changes.keys)
        tasks = self._task_count()
        check_opening(str(self._folder.path), tasks)
        if tasks:
            start.opening(tasks)
        self._open(list(self.catalog.streams.values()), start)
        self._force([change for change in pending if change_stream(change) in self.catalog.streams])
        self._changes.finish()
        for name, live in self._live.items():
            self._end_deepening(name, live)

    def _end_deepening(self, stream: str, live: LiveStream) -> None:
        """At the start: what was left to do of a deepening whose tasks have taken over."""
        deepening = self.deepenings.of(stream)
        if deepening is None or deepening.damage is not None:
            return
        if any(each.task.history != deepening.plan.history for each in live.members):
            return
        self._upkeep[stream].checkpoint()
        deepening.move()
        self.installed(deepening)
        deepening.remove()

    def _check_open_files(self, changes: Sequence[Change]) -> None:
        puts = [change.stream for change in changes if isinstance(change, PutStream)]
        new = [stream for stream in puts if stream.name not in self._live]
        if new:
            existing = self._task_count()
            names = ", ".join(stream.name for stream in new)
            check_new_tasks(f"stream {names}", existing, sum(len(stream.tasks) for stream in new))

    def _force(self, changes: Sequence[Change]) -> None:
        """Tell tasks, those of one stream all of its changes at once."""
        by_stream: dict[str, list[Change]] = {}
        for change in changes:
            by_stream.setdefault(change_stream(change), []).append(change)
        for stream, own in by_stream.items():
            if isinstance(own[-1], DropStream):
                self._remove(stream)
                continue
            if any(isinstance(change, AddHistory) for change in own):
                self._let_go(stream)
                self._folder.take_history(stream)
            if stream not in self._live:
                self._open([self.catalog.streams[stream]], Start())
            if isinstance(own[-1], Deepen):
                self._replace(stream, own[-1])
            else:
                self._live[stream].tell(own)

    def _replace(self, stream: str, change: Deepen) -> None:
        """The tasks of a deepening take the place of a stream's, at the record that is written now."""
        live, deepening = self._live[stream], self.deepenings.of(stream)
        if all(member.task.history == change.history for member in live.members):
            return
        if deepening is None or deepening.plan.history != change.history:
            raise HistoryMissingError(stream, change.history)
        at_start = not deepening.shadows
        if at_start:
            deepening.shadows = self.deepenings.open(deepening, self._memory.take(len(deepening.places)))
        record = [encode_control(change_to_json(change))]
        self._log.submit([Entry(shadow.log.where, record) for shadow in deepening.shadows]).result()
        for shadow in deepening.shadows:
            shadow.catch_up()
        self.deepenings.keep_all(stream)
        shadows = deepening.shadows
        self._memory.give_back(member.task.settings for member in live.members)
        deepening.taken_over = {shadow.log.where: shadow.task.position for shadow in shadows}
        self._begin_live(
            self.catalog.streams[stream],
            [Member(each.task.identity.partitioner, each.task, each.log) for each in shadows],
        )
        deepening.shadows = []
        if at_start:
            live.close()

    def _open(self, entries: Sequence[StreamEntry], start: Start) -> None:
        """Open the tasks of streams, and let them process what their logs hold."""
        members = self._opening.members(entries, self._changes.keys, start)
        for entry in entries:
            name = entry.stream.name
            self._begin_live(entry, [each for each in members if each.task.identity.stream == name])

    def _begin_live(self, entry: StreamEntry, members: Sequence[Member]) -> None:
        name, own = entry.stream.name, Members(self._log, members)
        self._live[name] = LiveStream(entry, own, self._threads, self._recording.stream(name))
        self._upkeep[name] = Upkeep(own, self._may_warm, self.deepenings.kept)

    def _remove(self, stream: str) -> None:
        """Delete what there is of a stream that was dropped."""
        self._let_go(stream)
        deepening = self.deepenings.forget(stream)
        self._recording.forget(stream)
        for topic in topics_of_stream(self._log, stream):
            self._log.delete_topic(topic)
        self._folder.remove_stream(stream)
        if deepening is not None:
            shutil.rmtree(deepening_folder(self._folder.path, stream), ignore_errors=True)

    def _task_count(self) -> int:
        return sum(len(entry.stream.tasks) for entry in self.catalog.streams.values())

    def _let_go(self, stream: str) -> None:
        """Close a stream's tasks, if they are open."""
        live = self._live.pop(stream, None)
        self._upkeep.pop(stream, None)
        if live is not None:
            live.close()
            self._memory.give_back(member.task.settings for member in live.members)


def _standing(metric: MetricDefinition, members: Sequence[tuple[str, Mapping[str, float]]]) -> MetricStatus:
    shares = [of[metric.name] for home, of in members if home == metric.home and metric.name in of]
    return MetricStatus(metric.name, metric.sql, metric.home, bool(shares), min(shares, default=1.0))


def said(change: Change) -> str:
    """What a change makes, for whoever asked for it."""
    match change:
        case PutStream():
            return f"stream {change.stream.name}"
        case AddMetric():
            return f"metric {change.metric.stream}.{change.metric.name}"
        case DropMetric():
            return f"metric {change.stream}.{change.name}, dropped"
        case DropStream():
            return f"stream {change.name}, dropped"
        case AddHistory() | BeginDeepening() | Deepen():
            return f"history of stream {change.stream}"
