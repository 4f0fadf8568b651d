"""The connection pool of a client that threads share."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from railgun.client.connection import IDLE_S, limits_of


class PoolClosedError(Exception):
    """The pool was closed."""


class Pool:
    """Lends connections, each to one thread at a time: httpx clients of one connection.

    httpx has a pool of its own for threads, but it has a race. A thread that checks whether an idle connection has
    ended may close it while another thread begins to use it. (httpcore 1.0.9: `has_expired` reads the state first, and
    then checks the socket for data.) That request is lost, and nobody knows whether it was taken.

    arguments: those of httpx's clients.  now_s: a clock that never goes back.
    """

    def __init__(
        self, arguments: dict[str, Any], connections: int, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._arguments = {**arguments, "limits": limits_of(1)}
        self._free = threading.Semaphore(connections)
        self._lock, self._is_closed, self._now_s = threading.Lock(), False, now_s
        # (connection, the time since which it is idle), with the most recently used one at the end.
        self._idle = list[tuple[httpx.Client, float]]()

    @contextmanager
    def lent(self, timeout_s: float) -> Iterator[httpx.Client]:
        """Lend the most recently used connection for the time of the block. Raises PoolTimeout, PoolClosedError.

        Connections that have been idle for longer than `IDLE_S` are closed.
        """
        if not self._free.acquire(timeout=timeout_s):
            raise httpx.PoolTimeout("no connection was free")
        try:
            http = self._taken()
            try:
                yield http
            finally:
                self._give_back(http)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close the idle connections now, and each lent one when it comes back."""
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        _close(idle)

    def _taken(self) -> httpx.Client:
        with self._lock:
            if self._is_closed:
                raise PoolClosedError
            since_s = self._now_s() - IDLE_S
            old = [each for each in self._idle if each[1] <= since_s]
            del self._idle[: len(old)]
            found = self._idle.pop()[0] if self._idle else None
        _close(old)
        return httpx.Client(**self._arguments) if found is None else found

    def _give_back(self, http: httpx.Client) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append((http, self._now_s()))
                return
        http.close()


def _close(idle: Iterable[tuple[httpx.Client, float]]) -> None:
    for http, _ in idle:
        http.close()
