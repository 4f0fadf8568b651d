"""A backfill of a stream in an embedded engine's data folder: created, built beside it, put in place."""

from railgun.engine.engine import Engine
from railgun.engine.errors import FolderLockedError
from railgun.spark.backfill import new_history_id
from railgun.spark.backfill_target import BackfillTarget
from railgun.spark.errors import HistoryError
from railgun.task.history_build import HistoryPlan


class BackfillOfEngine(BackfillTarget):
    """The folder is the engine's again while Spark works. Raises EngineError; HistoryError where it is in use."""

    def plan(self) -> HistoryPlan:
        with self._open() as engine:
            engine.apply(self.request.definitions, wait=False)
            return engine.history_plan(self.request.stream, new_history_id(), self.request.cut_ms)

    def install(self) -> None:
        self.bring()
        with self._open() as engine:
            engine.add_history(self.request.stream)

    def _open(self) -> Engine:
        try:
            return Engine(self.request.data, settings=self.request.settings)
        except FolderLockedError as error:
            raise HistoryError(
                f"{error}; stop the server that runs there for a moment, then run this again: what was built is kept"
            ) from error
