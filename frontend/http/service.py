"""Runs an HTTP server over a backend: listens, handles signals, starts the backend, and ends in order.

`railgun serve` and `railgun frontend` run it, through serving.py of the backend.
"""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, cast

import uvicorn
from prometheus_client.registry import Collector

from frontend.backend.backend import ServedBackend
from frontend.http.app import Application
from frontend.http.connection import Connection, connection_type
from frontend.http.handshakes import TlsServer
from frontend.http.monitoring import exposition
from railgun.access.browsers import RESPONSE_HEADERS
from railgun.access.guard import Guard
from railgun.access.tls import Certificates, Tls
from railgun.access.tls_collector import TlsCollector
from railgun.compiling import CompilingStoppedError
from railgun.config.access import check_address, clear_text_warnings, tls_of
from railgun.config.hangup import hangup_ends_it
from railgun.config.settings import HttpSettings
from railgun.registry.errors import EngineError

BACKLOG = 2_048
SWITCH_INTERVAL_S = 0.0005
"""How long a thread keeps the interpreter while another wants it. The event loop must not wait for a whole batch."""
COLLECTIONS = (10_000, 2, 5)
"""The thresholds of garbage collection. Young objects are collected fourteen times more seldom than by default: events
under way are answered by then, and are not looked at in vain. The oldest objects are collected half as often."""
_LONG_START_S = 10.0
_IN_LOOP_S = 60.0
Reload = Callable[[Guard, Tls | None], None]
"""Reads tokens and certificates again, for the guard and the TLS of a server. It is called in a thread of its own."""
_STOP_OTHER = "is another server running there? Stop it, or name another address with --http HOST:PORT"
_NAME_ANOTHER = "name an address of this machine and a port that may be used"
_log = logging.getLogger("railgun.frontend")


class AddressError(Exception):
    """The server cannot listen on an address. The message names the address and the reason."""


def listen(settings: HttpSettings) -> socket.socket:
    """Return a socket that listens. Raises AddressError; ExposedError if the settings forbid this address."""
    place = f"{settings.host}:{settings.port}"
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        check_address(place, str(address[0]), settings)
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        remedy = _STOP_OTHER if error.errno == errno.EADDRINUSE else _NAME_ANOTHER
        raise AddressError(f"{place}: {error.strerror or error}; {remedy}") from error
    return listener


class Service:
    """One run of the server.

    listener: a socket that listens already.
    url: the server's URL.
    on_ready: is called with the URL once events are taken.
    collectors: for `/metrics`, beside those of every server.
    reload: is called at SIGHUP with the guard and TLS.
    shown: all settings without secrets, for support bundles.

    Raises ConfigError, TokenFileError, CertificateError and OSError for tokens and certificates that cannot be used.
    """

    def __init__(
        self,
        settings: HttpSettings,
        backend: ServedBackend,
        listener: socket.socket,
        on_ready: Callable[[str], None] | None = None,
        collectors: Sequence[Collector] = (),
        reload: Reload | None = None,
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        self._reload = reload
        self._settings, self._backend, self._listener = settings, backend, listener
        host, port = listener.getsockname()[:2]
        self._address = host
        self.tls = tls_of(settings)
        scheme = "http" if self.tls is None else "https"
        self.url = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
        self._on_ready = on_ready
        self.application = Application(backend, settings, shown, self.tls)
        if self.tls is not None:
            collectors = [*collectors, TlsCollector(self.tls)]
        self.application.telemetry = exposition(backend, self.application.in_flight, collectors)
        self._stop: Callable[[], object] | None = None
        self._server: _Server | None = None

    def stop(self) -> None:
        """End `run` as a first signal does. Any thread may call it; it does nothing if `run` is over."""
        if self._stop is not None:
            # The loop may be closed by now.
            with contextlib.suppress(RuntimeError):
                self._stop()

    async def run(self) -> int:
        """Serve until a signal or a failure, and return the exit code. Raises EngineError if the start fails."""
        for warning in clear_text_warnings(self.url, self._address, self._settings):
            _log.warning(warning)
        server = self._server = _Server(self._config(), self._backend, self.application, self.tls)
        thresholds = gc.get_threshold()
        loop = asyncio.get_running_loop()
        self._stop = partial(loop.call_soon_threadsafe, server.stop)
        with _signals(server, self._hangup()):
            starting = asyncio.ensure_future(self._start(server))
            await server.serve([self._listener])
            if not starting.done() and self._backend.cancels_start:
                starting.cancel()
            try:
                with contextlib.suppress(asyncio.CancelledError, CompilingStoppedError):
                    await starting
            finally:
                code = await self._close()
                gc.unfreeze()
                gc.set_threshold(*thresholds)
        return code

    def _hangup(self) -> Callable[[], object] | None:
        """Return the function that SIGHUP calls; None if SIGHUP keeps its usual effect."""
        if self._reload is None or hangup_ends_it():
            return None
        loop = asyncio.get_running_loop()
        # Files may be slow to read.
        return partial(loop.run_in_executor, None, self._reload, self.application.guard, self.tls)

    async def _close(self) -> int:
        """Close the backend and return the exit code. Raises EngineError, but not if the backend had failed before."""
        standing = self._backend.readiness()
        if not standing.failed:
            await self._backend.close()
            return 0
        _log.error("the engine stopped: %s", standing.reason)
        # The failure may also keep the backend from closing in order. That error would say nothing new.
        with contextlib.suppress(EngineError):
            await self._backend.close()
        return 1

    async def _start(self, server: "_Server") -> None:
        started_s = asyncio.get_running_loop().time()
        with _stopped_by_failure(server):
            await self._backend.start()
        # The objects of the start stay as long as the server runs, so they are frozen: collections leave them out.
        # After a short start its garbage, a megabyte, is not collected first: finding it takes longer than listening.
        if asyncio.get_running_loop().time() - started_s > _LONG_START_S:
            gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECTIONS)
        gc.enable()
        if server.should_exit:
            return
        if self._on_ready is not None:
            self._on_ready(self.url)
        with _stopped_by_failure(server):
            await asyncio.to_thread(self.application.prepare)
        gc.freeze()

    def _config(self) -> uvicorn.Config:
        settings = self._settings
        return uvicorn.Config(
            self.application,
            http=connection_type(
                settings.connections_limit, settings.keep_alive_s, self.application.single_events
            ),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            headers=[*RESPONSE_HEADERS],
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=max(1, round(settings.keep_alive_s)),
            timeout_graceful_shutdown=max(1, round(settings.shutdown_grace_s)),
        )


class _Server(uvicorn.Server):
    """uvicorn's server, which also sweeps its connections, speaks TLS, and stops if the backend has failed.

    Once a second it has the counts kept that `/v1/live` shows.
    """

    def __init__(
        self, config: uvicorn.Config, backend: ServedBackend, application: Application, tls: Tls | None
    ) -> None:
        super().__init__(config)
        self._backend, self._stopping, self._guard = backend, application.stopping, application.guard
        self._tls, self._live = tls, application.live

    def stop(self) -> None:
        """Take no more connections, answer requests under way, and end a start that is under way."""
        self.should_exit = True
        self._stopping.set()
        self._backend.stop_starting()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: `_signals` handles them, not uvicorn."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([] if self._tls is not None else sockets)
        if self._tls is None:
            return
        loop, connections = asyncio.get_running_loop(), self.server_state.connections
        self._tls.uninterrupted = partial(_in_loop, loop)
        self._tls.on_new_clients = self._end_connections
        kind = cast(type[Connection], self.config.http_protocol_class)

        def make(tls: Tls, certificates: Certificates) -> Connection:
            made = kind(self.config, self.server_state, self.lifespan.state)
            made.is_outdated = partial(tls.is_outdated, certificates)
            return made

        for listener in sockets or []:
            server = TlsServer(listener, self._tls, connections, kind.limit, partial(make, self._tls))
            self.servers.append(cast(asyncio.Server, server))

    def _end_connections(self) -> None:
        """End all connections, since other clients' certificates are accepted now than at their handshakes."""
        for connection in self._connections():
            connection.end()

    def _connections(self) -> list[Connection]:
        return [each for each in self.server_state.connections if isinstance(each, Connection)]

    async def on_tick(self, counter: int) -> bool:
        if counter == 0:
            # At the start, and once a day: uvicorn's counter of tenths of a second begins again each day.
            for warning in (*self._guard.warnings(), *(() if self._tls is None else self._tls.warnings())):
                _log.warning(warning)
        if counter % 10 == 0:
            now_s = asyncio.get_running_loop().time()
            for connection in self._connections():
                connection.sweep(now_s)
            self._live.tick()
            self._backend.samples.forget_dropped()
            await self._live.answered.digest()
            if self._backend.readiness().failed:
                self.stop()
        return await super().on_tick(counter)


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> bool:
    """Call a function in an event loop, from another thread, and wait for it. Return whether it has returned.

    If it has not within `_IN_LOOP_S`, it is still called once the loop comes to it.
    """

    async def called() -> None:
        call()

    coroutine = called()
    try:
        asyncio.run_coroutine_threadsafe(coroutine, loop).result(_IN_LOOP_S)
    except RuntimeError:
        # The loop has ended meanwhile, and so have its connections.
        coroutine.close()
        return False
    except (TimeoutError, CancelledError):
        return False
    return True


@contextlib.contextmanager
def _stopped_by_failure(server: _Server) -> Iterator[None]:
    """Stop the server if the block fails. `Service.run` raises the exception then."""
    try:
        yield
    except BaseException:
        server.stop()
        raise


@contextlib.contextmanager
def _signals(server: _Server, hangup: Callable[[], object] | None) -> Iterator[None]:
    """Handle signals while the block runs: a first SIGTERM or SIGINT stops the server, a second ends the process.

    hangup: is called at SIGHUP.
    """

    def on_signal(number: int) -> None:
        if server.should_exit:
            os._exit(128 + number)
        _log.info("stopping: %s", signal.Signals(number).name)
        server.stop()

    loop = asyncio.get_running_loop()
    handled = [signal.SIGTERM, signal.SIGINT]
    try:
        for number in handled:
            loop.add_signal_handler(number, on_signal, number)
        if hangup is not None:
            loop.add_signal_handler(signal.SIGHUP, hangup)
            handled.append(signal.SIGHUP)
    except (ValueError, RuntimeError):
        # Signals cannot be handled in the loop of a thread other than the main one. Its owner calls `stop`.
        yield
        return
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
