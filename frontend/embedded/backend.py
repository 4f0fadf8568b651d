"""The backend in this process: `railgun.Engine`, one thread that scores, and threads for calls that take long.

The front-end's server uses it.
"""

from collections.abc import Callable
from typing import Any

from frontend.access.masks import Masks
from frontend.backend.readiness import Readiness
from frontend.embedded.catalogue import EmbeddedCatalogue
from frontend.embedded.deepenings import EmbeddedDeepenings
from frontend.embedded.live_figures import EmbeddedLiveFigures
from frontend.embedded.running_engine import RunningEngine
from frontend.embedded.scoring import EmbeddedScoring
from frontend.embedded.unread_topics import warn_of_unread_topics
from frontend.samples.samples import Samples
from railgun.config.settings import CONSOLE_DEFAULTS, ConsoleSettings
from railgun.engine.engine import Engine
from railgun.telemetry.reading import EngineReading
from railgun.telemetry.recording import Recording


class EmbeddedBackend:
    """`ServedBackend` over an engine. Used in one event loop.

    open_engine: opens the engine, in a thread; `start` waits for it.
    stop_opening: has `open_engine` raise CompilingStoppedError, unless it is opening the data already.
    console: what is kept and shown of single events.
    """

    # An engine that is recovering can be closed only once it is open.
    cancels_start = False
    # This process processes the events itself.
    cluster = None
    topic_prefix = None

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        stop_opening: Callable[[], object] = lambda: None,
        console: ConsoleSettings = CONSOLE_DEFAULTS,
    ) -> None:
        self._stop_opening = stop_opening
        self.running = RunningEngine(open_engine)
        self.scoring = EmbeddedScoring(self.running)
        self.catalogue = EmbeddedCatalogue(self.running)
        self.deepenings = EmbeddedDeepenings(self.running)
        masks = Masks(console.masks)
        self.live_figures = EmbeddedLiveFigures(self.running, masks)
        self.samples = Samples(console, self.live_figures.entries, masks)

    async def start(self) -> None:
        """Open the engine and take requests. Raises EngineError; CompilingStoppedError after `stop_starting`."""
        self.scoring.start(await self.running.open())
        for entry in self.running.entries.values():
            warn_of_unread_topics(entry.stream)
        self.running.begin()

    def stop_starting(self) -> None:
        self._stop_opening()

    def readiness(self) -> Readiness:
        return self.running.readiness()

    def unanswered(self) -> list[dict[str, Any]]:
        """Return none: all tasks are in this process, and answer as long as it is ready."""
        return []

    @property
    def recording(self) -> Recording:
        return self.running.recording

    def reading(self) -> EngineReading | None:
        engine = self.running.engine
        return None if engine is None else engine.reading

    async def close(self) -> None:
        self.running.end()
        await self.scoring.close()
        await self.running.close()
