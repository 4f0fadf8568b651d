"""The connections of a client that threads share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from railgun.client.connection import limits_of


class PoolClosedError(Exception):
    """The pool was closed."""


class Pool:
    """Lends connections, each to one thread at a time: httpx clients of one connection.

    httpx has a pool of its own, which threads may share too. But one thread that looks whether an idle connection has
    ended may close it just as another one begins to use it (httpcore 1.0.9: `has_expired` reads the state, and then
    whether there is something to read). The request is lost then, and nobody knows whether it was taken.

    arguments: of httpx's clients.
    """

    def __init__(self, arguments: dict[str, Any], connections: int) -> None:
        self._arguments = {**arguments, "limits": limits_of(1)}
        self._free = threading.Semaphore(connections)
        self._lock, self._idle, self._is_closed = threading.Lock(), list[httpx.Client](), False

    @contextmanager
    def lent(self, timeout_s: float) -> Iterator[httpx.Client]:
        """A connection while the block runs, the one that was used last. Raises PoolTimeout, PoolClosedError."""
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
        """Let the connections go; those that are lent once they come back."""
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for http in idle:
            http.close()

    def _taken(self) -> httpx.Client:
        with self._lock:
            if self._is_closed:
                raise PoolClosedError
            if self._idle:
                return self._idle.pop()
        return httpx.Client(**self._arguments)

    def _give_back(self, http: httpx.Client) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(http)
                return
        http.close()
