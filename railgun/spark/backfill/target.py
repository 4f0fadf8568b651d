"""What every backfill has, wherever the stream's log is: a request, tasks built, their folder brought in place."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from railgun.catalog.catalog import Catalog
from railgun.catalog.model import Definitions, StreamDefinition
from railgun.engine.history import check_identified
from railgun.history.build import HistoryPlan
from railgun.history.durable_files import make_all_durable, make_durable
from railgun.history.manifest import ready_folder
from railgun.registry import evolution
from railgun.spark.backfill.build import TASKS, Backfill, alone, build, check_source
from railgun.spark.backfill.progress import Progress
from railgun.spark.backfill.report import BackfillReport
from railgun.spark.backfill.source import HistorySource
from railgun.spark.errors import BackfillFailedError, HistoryError, SparkSideError, WorkTakenError
from railgun.spark.worker_errors import own_errors
from railgun.task.settings import TaskSettings


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What is to be put before which stream.

    data: the data folder of an engine, or of a node.  definitions: of one stream and its metrics.  cut_ms: the
    history's events are before then; None, for a deepening: the least that leaves no hole.  work: where tasks are
    built, if not in the data folder.  settings: what tasks there are opened with.  For the rest see `Backfill`.
    """

    data: Path
    definitions: Definitions
    source: HistorySource
    columns: Mapping[str, str]
    cut_ms: int | None
    work: Path | None = None
    scratch: Path | None = None
    settings: TaskSettings | None = None

    @property
    def stream(self) -> str:
        """The stream's name."""
        return next(iter(self.definitions.streams))

    def unregistered(self, catalog: Catalog) -> StreamDefinition | None:
        """The stream as it will be, where a catalogue lacks something of the definitions; None where it has all.

        Raises DifferentDefinitionsError, DefinitionError, HistoryRefusedError.
        """
        changes = evolution.missing(catalog, self.definitions)
        if not changes:
            return None
        after = catalog.copy()
        for change in changes:
            after.apply(change)
        stream = after.streams[self.stream].stream
        check_identified(stream)
        return stream

    @property
    def stated_cut_ms(self) -> int:
        """The cut. Raises HistoryError where none was stated."""
        if self.cut_ms is None:
            raise HistoryError(f"{self.stream}: until when its history goes is to be stated: --until")
        return self.cut_ms


class BackfillTarget(ABC):
    """A stream to begin with history."""

    def __init__(self, request: BackfillRequest) -> None:
        self.request = request

    @abstractmethod
    def plan(self) -> HistoryPlan:
        """What is to be built. The stream is created if it is missing, and its metrics.

        Raises HistoryRefusedError among others, having registered nothing.
        """

    def unregistered(self) -> StreamDefinition | None:
        """The stream as it will be, where `plan` has something of the request to register; None where it has not.

        The history is looked at before anything is registered: what is refused then leaves nothing behind.
        """
        return None

    @abstractmethod
    def install(self) -> None:
        """Put what was built before the stream's log. Raises HistoryRefusedError, having changed nothing."""

    def build(
        self, session: Callable[[], SparkSession], told: Progress | None = None, now_ms: int | None = None
    ) -> BackfillReport:
        """Build what is not built yet. The stream goes on meanwhile.

        session: called once Spark is wanted, and then once more.  told, now_ms: see `build`.  Raises EngineError,
        SparkSideError.
        """
        with own_errors(BackfillFailedError):
            rows: DataFrame | None = None
            stream = self.unregistered()
            if stream is not None:
                self._job.check_free()
                rows = check_source(session(), self._job, stream)
            plan = self.plan()
            if plan.stream != stream:
                rows = None
            return build(session(), self._job, plan, now_ms=now_ms, told=told, rows=rows)

    def discard(self) -> None:
        """What was built is of no use: nothing is left of it."""
        self._job.release()

    def release(self) -> None:
        """What was built elsewhere is in its place: the folder is free for other work."""
        if self.request.work is not None:
            self._job.release()

    @property
    def _job(self) -> Backfill:
        request = self.request
        return Backfill(request.source, request.columns, self.work, request.scratch)

    @property
    def work(self) -> Path:
        """Where tasks are built."""
        return self.request.work or self.ready.parent

    @property
    def ready(self) -> Path:
        """Where tasks are ready to be taken."""
        return ready_folder(self.request.data, self.request.stream)

    def bring(self) -> None:
        """Bring to the data folder what was built elsewhere, durably. Raises OSError."""
        if self.request.work is not None:
            shutil.rmtree(self.ready, ignore_errors=True)
            shutil.copytree(self.request.work / TASKS, self.ready)
            make_all_durable(self.ready)
            for folder in (self.ready.parent, self.ready.parent.parent, self.request.data):
                make_durable(folder)


class DeepeningTarget(BackfillTarget):
    """A live stream, to be given older history. has_begun: by the `plan` last made."""

    def __init__(self, request: BackfillRequest) -> None:
        super().__init__(request)
        self.has_begun = False

    @abstractmethod
    def give_up(self) -> bool:
        """Let go of what there is of a deepening; False where none is under way. Raises HistoryRefusedError among
        others."""

    def build(
        self, session: Callable[[], SparkSession], told: Progress | None = None, now_ms: int | None = None
    ) -> BackfillReport:
        """The same. What is refused before any work starts leaves nothing begun, unless another job builds it."""
        self.has_begun = False
        try:
            return super().build(session, told, now_ms)
        except (BackfillFailedError, WorkTakenError):
            raise
        except SparkSideError:
            if self.has_begun:
                self._give_up_alone()
            raise

    def _give_up_alone(self) -> None:
        """Unless another job has found by now what this one had begun, and builds it."""
        work = self._job.work
        with suppress(WorkTakenError), alone(work) if work.is_dir() else nullcontext():
            self.give_up()

    def discard(self) -> None:
        super().discard()
        self.give_up()
