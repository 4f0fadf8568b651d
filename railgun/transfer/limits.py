"""The limits of a donor, a node that gives its data to others: how many fetches at once, how many bytes in a second.

It does no I/O.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final

FETCHES_MAX: Final = 2
"""A donor serves so many fetches at once, and a target makes so many."""

SILENT_S: Final = 30.0
"""A fetch that sends no request for this long has ended. Between two files a slow disk of the target may take seconds,
and a fetch that ends in order says so.
"""

# What was not sent is made up for, up to so much: time goes by between files, and while they are hashed.
_BURST_S = 0.5


class FetchSlots:
    """The fetches that are served at present. The event loop alone uses it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._active: dict[str, int] = {}
        self._seen_s: dict[str, float] = {}

    def enter(self, fetch: str) -> bool:
        """Begin a request of a fetch. Returns False if too many others are served. `leave` ends it."""
        now_s = self._now_s()
        for each, seen_s in list(self._seen_s.items()):
            if not self._active.get(each) and now_s - seen_s >= SILENT_S:
                self.end(each)
        if fetch not in self._seen_s and len(self._seen_s) >= FETCHES_MAX:
            return False
        self._active[fetch] = self._active.get(fetch, 0) + 1
        self._seen_s[fetch] = now_s
        return True

    def leave(self, fetch: str) -> None:
        """End a request of a fetch."""
        if fetch in self._seen_s:
            self._active[fetch] -= 1
            self._seen_s[fetch] = self._now_s()

    def end(self, fetch: str) -> None:
        """End a fetch. Another may begin."""
        self._active.pop(fetch, None)
        self._seen_s.pop(fetch, None)


class Rate:
    """Delays what is sent, so that a donor sends no more than some bytes in a second, over some seconds.

    bytes_per_s: 0: as many as it can.
    """

    def __init__(
        self,
        bytes_per_s: int,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._bytes_per_s, self._now_s, self._sleep = bytes_per_s, now_s, sleep
        self._free_s = -math.inf

    def chunk_bytes(self, most: int) -> int:
        """Return how much may be sent at once, so that no more than a second lies between two chunks."""
        return most if not self._bytes_per_s else max(1, min(most, self._bytes_per_s // 4))

    async def take(self, size: int) -> None:
        """Wait until so many bytes may be sent."""
        if not self._bytes_per_s:
            return
        now_s = self._now_s()
        begin_s = max(self._free_s, now_s - _BURST_S)
        self._free_s = begin_s + size / self._bytes_per_s
        if begin_s > now_s:
            await self._sleep(begin_s - now_s)
