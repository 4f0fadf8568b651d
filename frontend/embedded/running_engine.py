"""The engine of a server, from its opening to its end. Threads call it; one request at a time changes it.

The embedded backend's scoring, catalogue and deepenings share one `RunningEngine`.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from frontend.backend.readiness import READY, STOPPING, Readiness, unavailable
from frontend.embedded.problems import as_problem
from frontend.problems import UnknownStreamError
from frontend.scoring.scoring import StreamView
from railgun.catalog.catalog import StreamEntry
from railgun.engine.engine import Engine
from railgun.registry.errors import EngineError
from railgun.telemetry.recording import Recording

T = TypeVar("T")
_STARTING = Readiness(False, "starting: the data is being recovered")


class RunningEngine:
    """An engine that is opened, called and closed. Used in one event loop.

    open_engine: opens the engine, in a thread.
    engine: None before it is open and once it is closed.
    views: each stream as the scoring route needs it.
    entries: the streams in the catalogue, as of the last change.
    recording: the engine's notes for monitoring; empty before it is open.
    """

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open_engine = open_engine
        self.engine: Engine | None = None
        self.views: dict[str, StreamView] = {}
        self.entries: dict[str, StreamEntry] = {}
        self.recording = Recording()
        # Changes wait in the event loop. If they waited in its few threads, calls that only read would find none free.
        self._changing, self._turns = threading.Lock(), asyncio.Lock()
        self._standing = self._starting = _STARTING

    async def open(self) -> Engine:
        """Open the engine: recover its data and compile its kernels. Raises EngineError, CompilingStoppedError."""
        engine = self.engine = await asyncio.to_thread(self._open_engine)
        self.recording = engine.recording
        await asyncio.to_thread(self.refresh)
        return engine

    def is_doing(self, what: str) -> None:
        """Note what the opening does now, for people. Any thread may call it."""
        self._starting = Readiness(False, f"starting: {what}")

    def begin(self) -> None:
        """Take requests from now on, unless the end has begun."""
        if self._standing is _STARTING:
            self._standing = READY

    def end(self) -> None:
        """Take no more requests."""
        if not self._standing.failed:
            self._standing = STOPPING

    def readiness(self) -> Readiness:
        """Whether requests are taken now."""
        if self._standing is _STARTING:
            return self._starting
        if self._standing.ready and self.engine is not None and self.engine.failure is not None:
            self._standing = Readiness(False, self.engine.failure, failed=True)
        return self._standing

    def view(self, stream: str) -> StreamView:
        """Return a stream as the scoring route needs it. Raises ProblemError."""
        found = self.views.get(stream)
        if found is None:
            self.ready()
            raise UnknownStreamError(stream, self.views)
        return found

    def ready(self) -> Engine:
        """Return the engine. Raises ProblemError (503) if requests are not taken."""
        standing = self.readiness()
        if self.engine is None or not standing.ready:
            raise unavailable(standing)
        return self.engine

    async def call(self, do: Callable[[Engine], T]) -> T:
        """Call the engine in a thread and return the result. Raises ProblemError."""
        engine = self.ready()
        try:
            return await asyncio.to_thread(do, engine)
        except EngineError as error:
            raise as_problem(error) from error

    async def change(self, do: Callable[[Engine], T]) -> T:
        """Call the engine like `call`, to change what is registered: one change after another."""

        def changed(engine: Engine) -> T:
            # A change whose caller has gone leaves its turn, but may still run when the next one begins.
            with self._changing:
                try:
                    return do(engine)
                finally:
                    self.refresh()

        self.ready()
        async with self._turns:
            return await self.call(changed)

    def refresh(self) -> None:
        """Note the present streams for the scoring route. To be called after each change of the engine."""
        engine = self.engine
        if engine is None:
            return
        entries = self.entries = engine.catalog().streams
        self.views = {name: StreamView(entry.stream, entry.names) for name, entry in entries.items()}

    async def close(self) -> None:
        """Close the engine, if it is open."""
        engine, self.engine = self.engine, None
        if engine is not None:
            await asyncio.to_thread(engine.close)
