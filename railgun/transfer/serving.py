"""Runs the HTTP server of a donor, with limits for connections, heads and idle time, in a thread of its own."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Final, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from railgun.transfer.server import Application
from railgun.transfer.snapshots import Snapshots

CONNECTIONS_MAX: Final = 64
"""So many connections are open at once, handshakes counted."""
HEAD_BYTES_MAX: Final = 16 << 10
IDLE_S: Final = 10.0
"""A connection that sends no whole request for this long, or a little longer, is closed."""
TAKES_S: Final = 30.0
"""A connection that takes nothing of what is sent for this long is closed."""

_SWEEP_S = 1.0
_STOP_S = 1

_log = logging.getLogger("railgun.transfer")


class _Client(socket.socket):
    """A client's socket, which is counted while it is open."""

    def __init__(self, accepted: socket.socket, open_now: set[int]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._open_now, self._number = open_now, self.fileno()
        open_now.add(self._number)

    def _real_close(self) -> None:
        self._open_now.discard(self._number)
        super()._real_close()  # type: ignore[misc]


class _Listener(socket.socket):
    """A socket that accepts so many clients at once. Further ones are closed at once, also before a TLS handshake."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(listening.family, listening.type, listening.proto, listening.detach())
        self._open_now: set[int] = set()

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises ConnectionAbortedError if a client was closed; more may wait."""
        client, address = super().accept()
        if len(self._open_now) >= CONNECTIONS_MAX:
            client.close()
            raise ConnectionAbortedError
        return _Client(client, self._open_now), address


class _Connection(H11Protocol):
    """A connection of a fetcher. It is closed if it sends no request in time, or does not take what is sent."""

    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_unread(None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        self._set_unread(self.loop.call_later(TAKES_S, self.transport.abort))
        super().pause_writing()

    def resume_writing(self) -> None:
        self._set_unread(None)
        super().resume_writing()

    def _set_unread(self, timer: asyncio.TimerHandle | None) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = timer

    def _look_again(self) -> None:
        self.loop.call_later(IDLE_S, self._look, self.cycle)

    def _look(self, last: Any) -> None:
        if self.transport.is_closing():
            # It would wait for ever for a client that does not take the rest of an answer.
            self.loop.call_later(TAKES_S, self.transport.abort)
        elif self.cycle is last and (last is None or last.response_complete):
            self.transport.abort()
        else:
            self._look_again()


class _Server(uvicorn.Server):
    """uvicorn's server, whose handshakes have to be over in time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        kind, tls = cast(type[_Connection], self.config.http_protocol_class), self.config.ssl
        for each in sockets or ():
            server = await asyncio.get_running_loop().create_server(
                lambda: kind(self.config, self.server_state, self.lifespan.state),
                sock=each,
                backlog=self.config.backlog,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else IDLE_S,
            )
            self.servers.append(server)


class DonorServer:
    """The server of a donor, while its `with` block runs.

    listening: the socket, which this takes over and closes.
    tls: None if it speaks no TLS.
    """

    def __init__(
        self,
        listening: socket.socket,
        application: Application,
        snapshots: Snapshots,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listening, self._snapshots = _Listener(listening), snapshots
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
        self._server, self._loop = _Server(config), asyncio.new_event_loop()
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
