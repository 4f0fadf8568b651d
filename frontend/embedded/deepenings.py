"""The deepenings of the streams of this process. A deepening gives a live stream older history than its log has.

`EmbeddedBackend` has one. Each deepening is installed in a thread of its own, since its tasks follow the log until they
have caught up.
"""

import dataclasses
import logging
import threading
from collections.abc import Callable
from typing import Any

from frontend.embedded.problems import as_problem
from frontend.embedded.running_engine import RunningEngine
from railgun.engine.errors import no_deepening_error
from railgun.host.host_state import one_line
from railgun.registry.origin import Origin

_log = logging.getLogger("railgun.frontend")


class EmbeddedDeepenings:
    """`DeepeningOperations` of an engine."""

    def __init__(self, running: RunningEngine) -> None:
        self._running, self._installs = running, _Installs()

    async def begin(self, stream: str, cut_ms: int | None) -> dict[str, Any]:
        await self._running.call(lambda engine: engine.begin_deepening(stream, cut_ms))
        return await self.standing(stream)

    async def install(self, stream: str, origin: Origin) -> dict[str, Any]:
        engine = self._running.ready()
        if await self._running.call(lambda engine: engine.deepening(stream)) is None:
            raise as_problem(no_deepening_error(stream))
        self._installs.begin(stream, lambda: engine.deepen(stream, origin=origin))
        return await self.standing(stream)

    async def standing(self, stream: str) -> dict[str, Any]:
        standing = await self._running.call(lambda engine: engine.deepening(stream))
        failure = self._installs.failure(stream)
        if standing is None:
            history = await self._running.call(lambda engine: engine.history(stream))
            return {"state": "none", "history": history, "failure": failure}
        state = "failed" if failure is not None else standing.state
        return {**dataclasses.asdict(standing), "state": state, "failure": standing.failure or failure}

    async def give_up(self, stream: str) -> None:
        await self._running.call(lambda engine: engine.give_up_deepening(stream))


class _Installs:
    """The installs of deepenings that are under way, and the failures of those that ended. Used in one event loop."""

    def __init__(self) -> None:
        self._threads: dict[str, threading.Thread] = {}
        self._failures: dict[str, str] = {}

    def begin(self, stream: str, install: Callable[[], None]) -> None:
        """Begin an install, unless another one of this stream is under way."""
        known = self._threads.get(stream)
        if known is not None and known.is_alive():
            return
        self._failures.pop(stream, None)
        thread = threading.Thread(
            target=self._run, args=(stream, install), name="railgun-install", daemon=True
        )
        self._threads[stream] = thread
        thread.start()

    def failure(self, stream: str) -> str | None:
        """Return why the last install of a stream failed; None if it did not fail."""
        return self._failures.get(stream)

    def _run(self, stream: str, install: Callable[[], None]) -> None:
        try:
            install()
        except Exception as error:  # noqa: BLE001 - the thread has nobody to raise to; the failure is shown
            self._failures[stream] = one_line(error)
            _log.error("the deepening of %s was not installed: %s", stream, error)
