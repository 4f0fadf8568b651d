"""Backfill of a stream in an embedded engine's data folder: built beside the tasks, then put in place."""

import os

from railgun.catalog.catalog import Catalog
from railgun.catalog.model import StreamDefinition
from railgun.engine.engine import Engine
from railgun.engine.errors import FolderLockedError
from railgun.history.build import HistoryPlan, new_history_id
from railgun.spark.backfill.target import BackfillRequest, BackfillTarget, DeepeningTarget
from railgun.spark.errors import HistoryError


class BackfillOfEngine(BackfillTarget):
    """A backfill for an engine that nobody runs now. The engine may use the folder while Spark works.

    Raises EngineError, and HistoryError if the folder is in use.
    """

    def plan(self) -> HistoryPlan:
        request, cut_ms = self.request, self.request.stated_cut_ms
        with self._open() as engine:
            if request.stream in engine.catalog().streams:
                # If the backfill is refused, that comes before metrics are registered.
                engine.history_plan(request.stream, new_history_id(os.urandom), cut_ms)
            engine.apply(request.definitions, wait=False)
            return engine.history_plan(request.stream, new_history_id(os.urandom), cut_ms)

    def unregistered(self) -> StreamDefinition | None:
        if not self.request.data.exists():
            return self.request.unregistered(Catalog())
        with self._open() as engine:
            return self.request.unregistered(engine.catalog())

    def install(self) -> None:
        self.bring()
        with self._open() as engine:
            engine.add_history(self.request.stream)
        self.release()

    def _open(self) -> Engine:
        return opened(self.request, "stop the server that runs there for a moment")


class DeepeningOfEngine(DeepeningTarget):
    """A deepening (older history for a live stream) for an engine that nobody runs now.

    Raises EngineError, and HistoryError if the folder is in use.
    """

    def plan(self) -> HistoryPlan:
        with self._open() as engine:
            self.has_begun = engine.deepening(self.request.stream) is None
            return engine.begin_deepening(self.request.stream, self.request.cut_ms)

    def install(self) -> None:
        self.bring()
        with self._open() as engine:
            engine.deepen(self.request.stream)
        self.release()

    def give_up(self) -> bool:
        with self._open() as engine:
            return engine.give_up_deepening(self.request.stream)

    def _open(self) -> Engine:
        return opened(self.request, "name the server that runs there with --url")


def opened(request: BackfillRequest, remedy: str) -> Engine:
    """Open the engine of a request's data folder. Raises EngineError; HistoryError with `remedy` if in use."""
    try:
        return Engine(request.data, settings=request.settings)
    except FolderLockedError as error:
        raise HistoryError(
            f"{request.data}: the folder is in use by process {error.owner}; {remedy}, then run this again: what was "
            "built is kept"
        ) from error
