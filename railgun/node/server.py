"""Serves the HTTP port of a node, for monitoring and health checks: /metrics, /healthz, /readyz.

`railgun node` runs it (`serving`). Each connection has a thread and carries one request.
"""

import logging
import math
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from railgun.access import clear_text
from railgun.access.browsers import NO_STORE, RESPONSE_HEADERS
from railgun.access.guard import UNAUTHENTICATED, AccessError, Guard
from railgun.access.refusal_collector import RefusalCollector
from railgun.access.refusals import UNAUTHORIZED, refusals
from railgun.access.routes import Route, Routes
from railgun.access.scopes import PROBE, needs
from railgun.access.tls import HANDSHAKE_LEAST_S, HANDSHAKE_S, Certificates, Tls, has_certificate
from railgun.access.tls_collector import TlsCollector
from railgun.config.access import check_address, clear_text_warnings
from railgun.config.settings import HttpSettings

_NODE = "node"
ROUTES = Routes(
    (
        Route("GET", "/metrics", "metrics", _NODE, needs("metrics")),
        Route("GET", "/healthz", "alive", _NODE, PROBE),
        Route("GET", "/readyz", "ready", _NODE, PROBE),
    )
)
"""All routes that a node answers. Those of the service are in `frontend/http/routes.py`."""
_log = logging.getLogger("railgun.node")
_TEXT = "text/plain; charset=utf-8"
REQUEST_S = 60.0
"""How long a connection, which carries one request, may take from its handshake to the end of its answer."""
WARN_EVERY_S = 86_400.0
"""How often warnings are logged again."""


class _Handler(BaseHTTPRequestHandler):
    """Answers the request of one connection. `serving` makes a subclass with the attributes below."""

    registry: CollectorRegistry
    waits_for: Callable[[], str | None]
    guard: Guard
    # Clients that send nothing for so many seconds are disconnected.
    timeout = 30

    def parse_request(self) -> bool:
        # A head may arrive long after the handshake. A client whose certificate is no longer accepted by then gets no
        # answer. Nor does a part of a head, which is all that a connection leaves when the server has ended it.
        return super().parse_request() and not (
            self._server.is_late(self.connection) or self._server.is_outdated(self.connection)
        )

    def do_GET(self) -> None:
        found = ROUTES.find(self.command, self.path.partition("?")[0])
        try:
            self._caller = self.guard.authorize(
                self.command, found, self._head(), has_certificate=self._has_certificate()
            )
        except AccessError as error:
            self._note_refusal(error)
            self._answer(error.status, _TEXT, f"{error.detail}\n".encode(), error.headers)
            return
        if found.route is None:
            *most, last = (each.path for each in ROUTES)
            self._answer(404, _TEXT, f"there are {', '.join(most)} and {last}\n".encode())
        else:
            self._handlers[found.route](self)

    do_HEAD = do_GET

    def _note_refusal(self, error: AccessError) -> None:
        path = self.path.partition("?")[0].encode("latin-1", "replace")
        is_logged = error.status == UNAUTHORIZED
        refusals.note_request(error, self.command, path, str(self.client_address[0]), is_logged=is_logged)

    @property
    def _server(self) -> "_Server":
        assert isinstance(self.server, _Server)
        return self.server

    def _has_certificate(self) -> bool:
        connection = self.connection
        return isinstance(connection, ssl.SSLSocket) and has_certificate(connection, time.time())

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as http.server names it
        """Do nothing: requests are not logged."""

    def _head(self) -> list[tuple[bytes, bytes]]:
        return [
            (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in self.headers.items()
        ]

    def _answer(
        self, status: int, content_type: str, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in (*RESPONSE_HEADERS, NO_STORE):
            self.send_header(name, value)
        for each, of in headers:
            self.send_header(each.decode(), of.decode())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _metrics(self) -> None:
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        self._answer(200, content_type, encode(self.registry))

    def _alive(self) -> None:
        self._answer(200, _TEXT, b"alive\n")

    def _ready(self) -> None:
        waits_for = type(self).waits_for()
        if waits_for is None:
            self._answer(200, _TEXT, b"ready\n")
        else:
            # The reason may name streams, which only clients with a token may know.
            reason = "not ready" if self._caller is UNAUTHENTICATED else waits_for
            self._answer(503, _TEXT, f"{reason}\n".encode())

    _handlers = ROUTES.bind(_NODE, {"metrics": _metrics, "alive": _alive, "ready": _ready})


class _Begun(NamedTuple):
    """A connection: when it began, and the certificates of its handshake."""

    since_s: float
    certificates: Certificates | None


class _Server(ThreadingHTTPServer):
    """Serves each connection in a thread of its own.

    limit: the greatest number of connections at a time.
    tls: None if the server speaks no TLS.
    warnings: returns what to warn about now. It is called at the start and once a day.
    """

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[_Handler],
        limit: int,
        tls: Tls | None,
        warnings: Callable[[], list[str]],
    ) -> None:
        super().__init__(address, handler, bind_and_activate=False)
        self._free, self._tls, self._warnings = threading.Semaphore(limit), tls, warnings
        self._warned_s = -math.inf
        self._begun: dict[socket.socket, _Begun] = {}

    def service_actions(self) -> None:
        """End connections that take too long, and warn once a day. Called at the start, then twice a second."""
        now_s = time.monotonic()
        if now_s - self._warned_s >= WARN_EVERY_S:
            self._warned_s = now_s
            for warning in self._warnings():
                _log.warning(warning)
        for connection in list(self._begun):
            if self.is_late(connection):
                # The connection may have ended by now. Its thread, which waits for it, closes it.
                with suppress(OSError):
                    # TLS's own shutdown takes the encryption off first: a reply under way would go out in clear text.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        if self._tls is not None:
            self._tls.handshakes["full"] += 1
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._tls is None:
            self._answer_in_time(request, client_address, None)
            return
        certificates = self._tls.certificates
        due_s = time.monotonic() + HANDSHAKE_S
        request.settimeout(HANDSHAKE_S)
        try:
            if clear_text.is_clear_text(request.recv(clear_text.BEGINNING_BYTES, socket.MSG_PEEK)):
                clear_text.answer(request)
                self._tls.handshakes["failed"] += 1
                return
            request.settimeout(max(HANDSHAKE_LEAST_S, due_s - time.monotonic()))
            secured = certificates.context.wrap_socket(request, server_side=True)
        except OSError as error:
            self._tls.note_failure(error, client_address[0])
            return
        self._tls.handshakes["done"] += 1
        with secured:
            self._answer_in_time(secured, client_address, certificates)

    def is_late(self, connection: socket.socket) -> bool:
        """Whether a connection has taken too long, so that it is ended or will be."""
        begun = self._begun.get(connection)
        return begun is not None and time.monotonic() - begun.since_s >= REQUEST_S

    def is_outdated(self, connection: socket.socket) -> bool:
        """Whether other clients' certificates are accepted now than at a connection's handshake."""
        certificates = self._begun[connection].certificates
        return self._tls is not None and certificates is not None and self._tls.is_outdated(certificates)

    def _answer_in_time(
        self, connection: socket.socket, client_address: Any, certificates: Certificates | None
    ) -> None:
        self._begun[connection] = _Begun(time.monotonic(), certificates)
        try:
            super().finish_request(connection, client_address)
        finally:
            del self._begun[connection]

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that go away are no error.
        if not isinstance(sys.exception(), OSError):
            _log.exception("a defect: a request from %s", client_address[0])


def _bind(server: _Server, place: str) -> None:
    """Bind a server to its address. Raises OSError, whose text names the address and the settings."""
    try:
        server.server_bind()
    except OSError as error:
        text = f"{place}: {error.strerror or error}; cluster.metrics_host and cluster.metrics_port say where it listens"
        raise OSError(error.errno, text) from error


@contextmanager
def serving(
    host: str,
    port: int,
    collector: Collector,
    waits_for: Callable[[], str | None],
    http: HttpSettings,
    guard: Guard,
    tls: Tls | None = None,
) -> Iterator[str]:
    """Run the server while the block runs. Yields the server's URL.

    port: 0 lets the system choose.
    waits_for: returns what keeps the node from being ready, as `starting: the units`; None if nothing does.
    http: says whether other machines may reach the server.
    guard: decides about every request.
    tls: None if the server speaks no TLS.
    Raises OSError if the port is in use; ExposedError if the settings do not allow to serve at this address.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    registry.register(RefusalCollector())
    if tls is not None:
        registry.register(TlsCollector(tls))
    own = {"registry": registry, "waits_for": staticmethod(waits_for), "guard": guard}
    place = f"{host}:{port}"

    def warnings() -> list[str]:
        return [*guard.warnings(), *(() if tls is None else tls.warnings())]

    server = _Server((host, port), type("Handler", (_Handler,), own), http.connections_limit, tls, warnings)
    try:
        _bind(server, place)
        address = str(server.server_address[0])
        check_address(place, address, http)
        server.server_activate()
    except BaseException:
        server.server_close()
        raise
    for warning in clear_text_warnings(place, address, http):
        _log.warning(warning)
    server.service_actions()
    thread = threading.Thread(target=server.serve_forever, name="node-http", daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
