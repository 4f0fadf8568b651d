"""The common part of all backfills: the request, building tasks, and bringing their folder into place.

A backfill puts older events (history) before a stream's log. Its subclasses are for an engine, a server and a cluster.
"""

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
    """A request to put history before a stream's log.

    data: the data folder of an engine or of a node.
    definitions: one stream and its metrics.
    cut_ms: all events of the history are before this time. None, for a deepening: the least time that leaves no gap.
    work: the folder where tasks are built, if that is not in the data folder.
    settings: the settings of the stream's tasks.
    source, columns, scratch: as in `Backfill`: the rows of the history, the expressions for its fields, and a local
        folder of the executors.
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
        """Return the stream as it will be if the catalogue lacks part of the definitions; None if it has all of them.

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
        """The cut, in ms. Raises HistoryError if none was given."""
        if self.cut_ms is None:
            raise HistoryError(f"{self.stream}: until when its history goes is to be stated: --until")
        return self.cut_ms


class BackfillTarget(ABC):
    """A stream that a backfill puts history before. Each place of a log has a subclass."""

    def __init__(self, request: BackfillRequest) -> None:
        self.request = request

    @abstractmethod
    def plan(self) -> HistoryPlan:
        """Return the plan for the tasks. The stream and its metrics are created if they are missing.

        Raises HistoryRefusedError among others; nothing was registered then.
        """

    def unregistered(self) -> StreamDefinition | None:
        """Return the stream as it will be if `plan` has to register anything; None otherwise.

        The history is checked before anything is registered, so a refusal leaves nothing behind.
        """
        return None

    @abstractmethod
    def install(self) -> None:
        """Put the built history before the stream's log. Raises HistoryRefusedError; nothing has changed then."""

    def build(
        self, session: Callable[[], SparkSession], told: Progress | None = None, now_ms: int | None = None
    ) -> BackfillReport:
        """Build what is not built yet. The stream continues meanwhile.

        session: gives the Spark session; called when it is needed first, and once more later.
        told, now_ms: see `railgun.spark.backfill.build.build`.
        Raises EngineError, SparkSideError.
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
        """Remove all that was built, because it is of no use."""
        self._job.release()

    def release(self) -> None:
        """Free the work folder, after what was built elsewhere was brought into place."""
        if self.request.work is not None:
            self._job.release()

    @property
    def _job(self) -> Backfill:
        request = self.request
        return Backfill(request.source, request.columns, self.work, request.scratch)

    @property
    def work(self) -> Path:
        """The folder where tasks are built."""
        return self.request.work or self.ready.parent

    @property
    def ready(self) -> Path:
        """The folder where finished tasks are ready to be taken."""
        return ready_folder(self.request.data, self.request.stream)

    def bring(self) -> None:
        """Copy what was built elsewhere to the data folder, durably. Raises OSError."""
        if self.request.work is not None:
            shutil.rmtree(self.ready, ignore_errors=True)
            shutil.copytree(self.request.work / TASKS, self.ready)
            make_all_durable(self.ready)
            for folder in (self.ready.parent, self.ready.parent.parent, self.request.data):
                make_durable(folder)


class DeepeningTarget(BackfillTarget):
    """A live stream that is given older history than its log has (deepened).

    has_begun: whether the last `plan` began the deepening.
    """

    def __init__(self, request: BackfillRequest) -> None:
        super().__init__(request)
        self.has_begun = False

    @abstractmethod
    def give_up(self) -> bool:
        """Remove a deepening. Returns False if none is under way. Raises HistoryRefusedError among others."""

    def build(
        self, session: Callable[[], SparkSession], told: Progress | None = None, now_ms: int | None = None
    ) -> BackfillReport:
        """Build as other backfills do.

        A refusal before any work starts leaves no deepening, unless another job builds it.
        """
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
        """Give up the deepening, unless another job has found it meanwhile and builds it."""
        work = self._job.work
        with suppress(WorkTakenError), alone(work) if work.is_dir() else nullcontext():
            self.give_up()

    def discard(self) -> None:
        super().discard()
        self.give_up()
