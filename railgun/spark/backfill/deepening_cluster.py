"""Deepening of a stream on Kafka: gives a live stream older history than its log has, for `railgun backfill --deepen`.

The job and the units (the processes that run the tasks) meet in `backfill/<stream>/` of a node's data folder
(`railgun/history/FORMAT.md`), and in the log of the catalogue:

1. `plan` writes the request, and has BeginDeepening recorded. At that record each unit exports the events that its task
   has accepted. `plan` waits for all exports, and writes the plan.
2. `build`, in the base class, has Spark build all tasks from the history and the exports.
3. `install` writes the offer. Units then open what was built, beside their tasks, and let it follow the logs.
4. Once all are near the ends of their logs, `install` has Deepen recorded. At that record the built tasks take over.
"""

import os
import shutil
import time
import uuid
from pathlib import Path

from railgun.catalog.catalog import Catalog, StreamEntry
from railgun.catalog.changes import BeginDeepening, Change, Deepen
from railgun.catalog.names import column_name
from railgun.cluster.reports import CopyStatus
from railgun.cluster.silence import PUT_ASIDE_S
from railgun.engine.deepening.plan import deepening_plan
from railgun.engine.errors import under_way_error
from railgun.engine.history import check_identified
from railgun.history.accepted_events import OwnEvents
from railgun.history.build import HistoryPlan, new_history_id
from railgun.history.manifest import read_manifest
from railgun.history.plan_file import OWN, PLAN, deepening_folder, read_own, read_plan, write_plan
from railgun.history.request_files import OFFER, REQUEST, DeepeningRequest, read_request, write_request
from railgun.history.task_folder import beside, others
from railgun.host.place import task_folder
from railgun.messaging.kafka.settings import KafkaSettings
from railgun.messaging.kafka.transport import KafkaTransport
from railgun.registry.kafka_registry import KafkaRegistry
from railgun.registry.topics import PREFIX
from railgun.spark.backfill.build import PLAN as BUILT_PLAN
from railgun.spark.backfill.build import alone
from railgun.spark.backfill.installed import keep_installed, remove_unfinished_work
from railgun.spark.backfill.planned_copies import check_copies
from railgun.spark.backfill.target import BackfillRequest, DeepeningTarget
from railgun.spark.backfill.task_standings import StreamKey, TaskStandings
from railgun.spark.errors import HistoryError
from railgun.task.errors import HistoryDamagedError
from railgun.task.settings import TaskSettings

_ASK_S, _LET_GO_S = 0.1, 2.0
_NEAR_RECORDS = 2_000


class DeepeningOfCluster(DeepeningTarget):
    """A deepening for a cluster. The request's data folder is that of the node that runs the stream's tasks.

    kafka, prefix: the broker, and the prefix of the cluster's topics.
    Its methods write and delete in the folder of the deepening, and change the catalogue through the broker.
    Raises EngineError, TransportError, RegistryError, TaskError, HistoryError.
    """

    def __init__(self, request: BackfillRequest, kafka: KafkaSettings, prefix: str = PREFIX) -> None:
        super().__init__(request)
        self._kafka, self._prefix = kafka, prefix
        self._number = ""

    @property
    def _folder(self) -> Path:
        return deepening_folder(self.request.data, self.request.stream)

    def plan(self) -> HistoryPlan:
        request, known = self.request, read_plan(self._folder)
        with KafkaRegistry(self._kafka, self._prefix) as registry, KafkaTransport(self._kafka) as transport:
            entry = registry.snapshot().catalog.entry(request.stream)
            check_copies(transport, registry.topics, entry)
        check_identified(entry.stream)
        if known is not None and known.created == entry.created:
            if request.cut_ms not in (None, known.cut_ms):
                raise HistoryError(str(under_way_error(request.stream, known.cut_ms)))
            return known
        if known is not None:
            # It is of an earlier stream of this name.
            shutil.rmtree(self._folder)
        # Two jobs must not begin a deepening of the stream at once.
        with alone(self._folder):
            self._keep_taken(entry)
            plan = self._requested((entry.stream.name, entry.created))
        self.has_begun = True
        return plan

    def _requested(self, stream: StreamKey) -> HistoryPlan:
        """Begin a deepening, and return its plan. If that fails, the request is withdrawn."""
        history = new_history_id(os.urandom)
        shutil.rmtree(self._folder / OWN, ignore_errors=True)
        write_request(self._folder / REQUEST, DeepeningRequest(history, stream[1]))
        try:
            return self._begun(stream, history)
        except BaseException:
            (self._folder / REQUEST).unlink(missing_ok=True)
            shutil.rmtree(self._folder / OWN, ignore_errors=True)
            raise

    def _begun(self, stream: StreamKey, history: str) -> HistoryPlan:
        request = self.request
        with KafkaRegistry(self._kafka, self._prefix) as registry, KafkaTransport(self._kafka) as transport:
            tasks = TaskStandings(transport, registry.topics.positions, stream, history)
            made = registry.change(
                lambda known: [BeginDeepening(known.last_place + 1, request.stream, history)]
            )
            snapshot, place = registry.snapshot(), made[-1].place
            if snapshot.catalog.last_place != place:
                raise HistoryError(f"{request.stream}: its catalogue was changed meanwhile; run this again")
            entry = snapshot.catalog.entry(request.stream)
            own = self._put_aside(entry, history, tasks)
        settings, key = request.settings or TaskSettings(), snapshot.keys[request.stream]
        plan = deepening_plan(entry, key, settings, own, history, request.cut_ms, place)
        write_plan(self._folder, plan)
        return read_plan(self._folder) or plan

    def offer(self) -> HistoryPlan:
        """Allow the units to take the tasks, which are all built. Returns the plan."""
        plan = read_plan(self._folder)
        if plan is None:
            raise HistoryError(f"{self._folder}: no deepening has begun there")
        self._number = uuid.uuid4().hex
        write_request(self._folder / OFFER, DeepeningRequest(plan.history, plan.created, self._number))
        return plan

    def install(self) -> None:
        self.bring()
        plan, stream = self.offer(), self.request.stream
        with KafkaRegistry(self._kafka, self._prefix) as registry, KafkaTransport(self._kafka) as transport:
            positions = registry.topics.positions
            check_copies(transport, registry.topics, registry.snapshot().catalog.entry(stream))
            tasks = TaskStandings(transport, positions, (stream, plan.created), plan.history, self._number)
            if not _is_deepened(registry.snapshot().catalog, stream, plan):
                tasks.wait(plan.tasks, lambda standing: is_near(standing, plan.history))

                def deepened(catalog: Catalog) -> list[Change]:
                    return [Deepen(catalog.last_place + 1, stream, plan.history, plan.cut_ms)]

                registry.change(deepened)
            tasks.wait(plan.tasks, lambda standing: standing.history == plan.history)
        keep_installed(self.ready, plan.history, plan.created)
        remove_unfinished_work(self._folder)
        self.release()

    def _keep_taken(self, entry: StreamEntry) -> None:
        """Keep the history that the stream has, if it still lies where the new one is to be built."""
        history = None if entry.history is None else entry.history.history
        if history is not None and _history_in(self.ready, entry) == history:
            keep_installed(self.ready, history, entry.created)
            (self._folder / BUILT_PLAN).unlink(missing_ok=True)

    def give_up(self) -> bool:
        """Remove the deepening, also one whose plan cannot be read. Units let go of it when they see that."""
        if not (self._folder / PLAN).is_file():
            return False
        with KafkaRegistry(self._kafka, self._prefix) as registry:
            entry = registry.snapshot().catalog.entry(self.request.stream)
        built = self._built(entry)
        # A unit that has just opened what was built looks for the offer again, and lets go if it is gone.
        (self._folder / OFFER).unlink(missing_ok=True)
        if any(each.exists() for each in built):
            time.sleep(_LET_GO_S)
        # The plan goes last, so that this can be done again if it is cut off.
        for folder in (*built, self.ready, self._folder / OWN):
            shutil.rmtree(folder, ignore_errors=True)
        remove_unfinished_work(self._folder)
        return True

    def _built(self, entry: StreamEntry) -> list[Path]:
        """Return the folders that units may have beside their tasks. Raises HistoryError if tasks need them."""
        requested = entry.history.history if isinstance(entry.history, Deepen) else None
        history, created = self._under_way(entry)
        tasks = [task_folder(self.request.data, entry.stream.name, created, *at) for at in entry.stream.tasks]
        if requested is not None and history in (None, requested):
            # The plan cannot be read, so this history is unknown. A task that has the requested one needs no other.
            if history == requested or not all(beside(task, requested).is_dir() for task in tasks):
                raise HistoryError(f"{entry.stream.name}: its tasks have been told to take over; let it end")
        if history is not None:
            return [beside(task, history) for task in tasks]
        return [path for task in tasks if task.is_dir() for path in others(task, requested)]

    def _under_way(self, entry: StreamEntry) -> tuple[str | None, int]:
        """Return (id of the history, place of its stream's first definition). The id is None if neither plan nor
        request can be read.
        """
        try:
            plan = read_plan(self._folder)
        except HistoryDamagedError:
            plan = None
        known = plan or read_request(self._folder / REQUEST)
        return (None, entry.created) if known is None else (known.history, known.created)

    def _put_aside(
        self, entry: StreamEntry, history: str, standings: TaskStandings
    ) -> dict[tuple[str, int], OwnEvents]:
        """Wait until all units have exported their accepted events, and return what the exports say of themselves."""
        tasks, deadline_s = entry.stream.tasks, time.monotonic() + PUT_ASIDE_S
        found: dict[tuple[str, int], OwnEvents] = {}
        while True:
            for name, at in tasks:
                own = read_own(self._folder / OWN / column_name(name) / str(at), history)
                if own is not None:
                    found[name, at] = own
            if len(found) == len(tasks):
                return found
            standings.check()
            if time.monotonic() > deadline_s:
                lacking = ", ".join(f"{name}/{at}" for name, at in tasks if (name, at) not in found)
                raise HistoryError(
                    f"{self.request.data}: tasks have not put aside there what they accepted: {lacking}; is this the "
                    "data folder of the node that runs them, and does it run?"
                )
            time.sleep(_ASK_S)


def is_near(standing: CopyStatus, history: str) -> bool:
    """Whether a task's successor, which was built with a history, reports that it could take over soon.

    It must not be filling a metric: what is left of a fill would be done in one go at the Deepen record, and events
    would wait for that.
    """
    following = standing.following or {}
    if following.get("history") != history or "behind" not in following or following["filling"]:
        return False
    return bool(following["behind"] <= _NEAR_RECORDS)


def _history_in(ready: Path, entry: StreamEntry) -> str | None:
    """Return the id of the history that was built in a folder; None if there is none."""
    name, number = entry.stream.tasks[0]
    try:
        return read_manifest(ready / column_name(name) / str(number)).history
    except HistoryDamagedError:
        return None


def _is_deepened(catalog: Catalog, stream: str, plan: HistoryPlan) -> bool:
    known = catalog.entry(stream).history
    return known is not None and known.history == plan.history
