"""A look that blocks, taken in a thread at most once in a while, for all who wait for it."""

import asyncio
import logging
import time
from collections.abc import Callable

from frontend.backend.abandonable_call import call_abandonably

PATIENCE_S = 1.0
"""How long who asks waits for a look. A look that takes longer goes on; what was seen before is answered meanwhile."""
_log = logging.getLogger("railgun.frontend")


class Look:
    """Takes a look again once the last one began `every_s` ago and somebody asks. Used in one event loop."""

    def __init__(
        self, look: Callable[[], None], every_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._look, self._every_s, self._now_s = look, every_s, now_s
        self._begun_s = float("-inf")
        self._running: asyncio.Future[None] | None = None

    async def recent(self) -> None:
        """Return once there was a recent look, or `PATIENCE_S` after the present one began."""
        now_s = self._now_s()
        if (self._running is None or self._running.done()) and now_s - self._begun_s >= self._every_s:
            self._begun_s = now_s
            self._running = asyncio.ensure_future(call_abandonably(self._tried))
        left_s = self._begun_s + PATIENCE_S - now_s
        if self._running is not None and not self._running.done() and left_s > 0:
            # It goes on if the time is over, or if this caller is gone.
            await asyncio.wait([self._running], timeout=left_s)

    def _tried(self) -> None:
        try:
            self._look()
        except Exception:  # noqa: BLE001 - who asks gets what was seen before
            _log.exception("a defect: a look failed")
