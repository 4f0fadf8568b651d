"""How soon after one change of streams and metrics the next may come: events shall not wait for several in a row.

After a change the first events that meet a row find it in an older layout, which costs them a few milliseconds: where a
hundred metrics are registered as fast as they can be, one after the other, events wait for all of them together.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

# Of the time in which events are scored changes get this share; the second of two waits no longer than this for it.
_SHARE, _REST_MOST_S = 1 / 25, 0.15


class Pace:
    """Changes one by one. Where no event is scored meanwhile they follow each other at once.

    Used in one event loop: threads are few, so that changes that waited in them would keep out whoever only looks.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now, self._sleep = now, sleep
        self._turns = asyncio.Lock()
        self._rests_until_s = 0.0
        self._has_scored = False

    def scored(self) -> None:
        """Events were. From any thread."""
        self._has_scored = True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a change, which is made within."""
        async with self._turns:
            rest_s = self._rests_until_s - self._now()
            if self._has_scored and rest_s > 0:
                await self._sleep(rest_s)
            # Events that are scored beside the change count: the next one may be in line already.
            self._has_scored = False
            begun_s = self._now()
            try:
                yield
            finally:
                ended_s = self._now()
                self._rests_until_s = ended_s + min((ended_s - begun_s) * (1 / _SHARE - 1), _REST_MOST_S)
