"""Counts the events and bytes that were taken and not answered yet, over all HTTP requests, and bounds them.

It does no I/O.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from frontend.problems import refusal

_FULL = "as much is in flight as may be ({limit} {what}); send it again a little later"


class InFlight:
    """The counts of one event loop. If there is no room, `take` refuses a request, and `wait` lets a stream wait."""

    def __init__(self, events_limit: int, bytes_limit: int) -> None:
        self.events_limit, self.bytes_limit = events_limit, bytes_limit
        self.events = 0
        self.size_bytes = 0
        self._waiting: deque[tuple[int, int, asyncio.Future[None]]] = deque()

    def take(self, events: int, size_bytes: int) -> None:
        """Count events and bytes in. Raises ProblemError: 413 if they can never fit, 429 if they do not fit now."""
        if events > self.events_limit or size_bytes > self.bytes_limit:
            limits = f"{self.events_limit} events and {self.bytes_limit} bytes"
            keys = "http.in_flight_limit_events, http.in_flight_limit_bytes"
            raise refusal(413, f"{events} events of {size_bytes} bytes; at most {limits} are taken ({keys})")
        if self.events + events > self.events_limit:
            raise refusal(429, _FULL.format(limit=self.events_limit, what="events"))
        if self.size_bytes + size_bytes > self.bytes_limit:
            raise refusal(429, _FULL.format(limit=self.bytes_limit, what="bytes"))
        self.events += events
        self.size_bytes += size_bytes

    async def wait(
        self, events: int, size_bytes: int, timeout_s: float, check: Callable[[], None], check_s: float
    ) -> None:
        """Wait until events and bytes fit, and count them in. Callers take turns in the order in which they came.

        check: is called each `check_s` meanwhile; an exception that it raises ends the waiting.
        Raises ProblemError: 413 if they can never fit, 429 after `timeout_s`.
        """
        if not self._waiting and self._fits(events, size_bytes):
            self.take(events, size_bytes)
            return
        if events > self.events_limit or size_bytes > self.bytes_limit:
            self.take(events, size_bytes)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (events, size_bytes, turn)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(timeout_s):
                while not turn.done():
                    await asyncio.wait((turn,), timeout=check_s)
                    check()
        except BaseException as error:
            if turn.done():
                self.release(events, size_bytes)
            elif entry in self._waiting:
                self._waiting.remove(entry)
                self._grant()
            if isinstance(error, TimeoutError):
                raise refusal(
                    429, f"no room for {events} events and {size_bytes} bytes within {timeout_s:g} s"
                ) from None
            raise

    def release(self, events: int, size_bytes: int) -> None:
        """Count out events and bytes that were answered, and let others in."""
        self.events -= events
        self.size_bytes -= size_bytes
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            events, size_bytes, turn = self._waiting[0]
            if not self._fits(events, size_bytes):
                return
            self._waiting.popleft()
            if not turn.done():
                self.events += events
                self.size_bytes += size_bytes
                turn.set_result(None)

    def _fits(self, events: int, size_bytes: int) -> bool:
        return self.events + events <= self.events_limit and self.size_bytes + size_bytes <= self.bytes_limit
