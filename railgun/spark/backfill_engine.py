"""A backfill of a stream in an embedded engine's data folder: created, built beside it, put in place."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from railgun.catalog.model import Definitions
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderLockedError
from railgun.engine.folder import BACKFILL, TASKS
from railgun.messaging.embedded import Durability
from railgun.spark.backfill import Backfill, build, new_history_id
from railgun.spark.backfill_progress import Progress
from railgun.spark.backfill_report import BackfillReport
from railgun.spark.backfill_source import HistorySource
from railgun.spark.errors import HistoryError
from railgun.task.history_build import HistoryPlan
from railgun.task.settings import TaskSettings


@dataclass(frozen=True, slots=True)
class BackfillOfEngine:
    """definitions: of one stream and its metrics.  cut_ms: the history's events are before then.

    work: where tasks are built, if not in the data folder.  settings: what the engine is opened with.  For the rest
    see `Backfill`.
    """

    data: Path
    definitions: Definitions
    source: HistorySource
    columns: Mapping[str, str]
    cut_ms: int
    work: Path | None = None
    scratch: Path | None = None
    settings: TaskSettings | None = None

    @property
    def stream(self) -> str:
        """The stream's name."""
        return next(iter(self.definitions.streams))

    def build(
        self,
        session: Callable[[], SparkSession],
        told: Progress | None = None,
        now_ms: int | None = None,
    ) -> BackfillReport:
        """Create the stream if it is missing, and build its tasks. The folder is the engine's again while Spark works.

        session: called once it is known that there is something to do.  now_ms: see `build`.
        Raises EngineError, SparkSideError.
        """
        plan = self.plan()
        work = self._staged if self.work is None else self.work
        job = Backfill(self.source, self.columns, work, self.scratch)
        return build(session(), job, plan, now_ms=now_ms, told=told)

    def plan(self) -> HistoryPlan:
        """What is to be built. The stream is created if it is missing. Raises EngineError, HistoryError."""
        with self._open() as engine:
            engine.apply(self.definitions, wait=False)
            return engine.history_plan(self.stream, new_history_id(), self.cut_ms)

    def install(self) -> None:
        """Put what was built in place. Raises EngineError, HistoryError, OSError."""
        if self.work is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            shutil.copytree(self.work / TASKS, self._staged / TASKS)
        with self._open() as engine:
            engine.add_history(self.stream)

    @property
    def _staged(self) -> Path:
        return self.data / BACKFILL / self.stream

    def _open(self) -> Engine:
        try:
            return Engine(self.data, durability=Durability.FSYNC, settings=self.settings)
        except FolderLockedError as error:
            raise HistoryError(
                f"{error}; stop the server that runs there for a moment, then run this again: what was built is kept"
            ) from error
