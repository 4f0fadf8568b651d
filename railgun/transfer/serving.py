"""Runs the HTTP server of a donor, with limits for connections, heads and idle time, in a thread of its own."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from railgun.transfer.server import Application
from railgun.transfer.snapshots import Snapshots

CONNECTIONS_MAX: Final = 64
HEAD_BYTES_MAX: Final = 16 << 10
IDLE_S: Final = 10.0
"""A connection that sends no whole request for this long, or a little longer, is closed."""

_SWEEP_S = 1.0
_STOP_S = 1

_log = logging.getLogger("railgun.transfer")


class _Connection(H11Protocol):
    """A connection of a fetcher. It is closed if there are too many, or if it sends no request in time."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
        else:
            self._look_again()

    def _look_again(self) -> None:
        self.loop.call_later(IDLE_S, self._look, self.cycle)

    def _look(self, last: Any) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is last and (last is None or last.response_complete):
            self.transport.abort()
        else:
            self._look_again()


class DonorServer:
    """The server of a donor, while its `with` block runs.

    listening: the socket, which this closes.
    tls: None if it speaks no TLS.
    """

    def __init__(
        self,
        listening: socket.socket,
        application: Application,
        snapshots: Snapshots,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listening, self._snapshots = listening, snapshots
        config = uvicorn.Config(
            application,
            http=_Connection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            timeout_keep_alive=int(IDLE_S),
            timeout_graceful_shutdown=_STOP_S,
        )
        config.load()
        config.ssl = tls
        self._server, self._loop = uvicorn.Server(config), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="serving", daemon=True)

    def __enter__(self) -> "DonorServer":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the thread of the server. Any thread may call this."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        sweeping = asyncio.create_task(self._sweep())
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            sweeping.cancel()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            try:
                await self._snapshots.sweep()
            except OSError as error:
                _log.warning("snapshots that nobody reads cannot be deleted for now: %s", error)
