"""The HTTP port of a node, for monitoring and health checks: /metrics, /healthz, /readyz."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from railgun.access.browsers import RESPONSE_HEADERS
from railgun.access.guard import NOBODY, AccessError, Guard
from railgun.access.routes import Route, Routes
from railgun.access.scopes import PROBE, needs
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


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    waits_for: Callable[[], str | None]
    guard: Guard
    # Clients that send nothing for this long are disconnected.
    timeout = 30

    def do_GET(self) -> None:
        found = ROUTES.find(self.command, self.path.partition("?")[0])
        try:
            self._caller = self.guard.decide(self.command, found, self._head())
        except AccessError as error:
            self._answer(error.status, _TEXT, f"{error.detail}\n".encode(), error.headers)
            return
        if found.route is None:
            *most, last = (each.path for each in ROUTES)
            self._answer(404, _TEXT, f"there are {', '.join(most)} and {last}\n".encode())
        else:
            self._handlers[found.route](self)

    do_HEAD = do_GET

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
        for name, value in (*RESPONSE_HEADERS, *((each.decode(), of.decode()) for each, of in headers)):
            self.send_header(name, value)
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
            reason = "starting" if self._caller is NOBODY else f"starting: {waits_for}"
            self._answer(503, _TEXT, f"{reason}\n".encode())

    _handlers = ROUTES.bind(_NODE, {"metrics": _metrics, "alive": _alive, "ready": _ready})


@contextmanager
def serving(
    host: str,
    port: int,
    collector: Collector,
    waits_for: Callable[[], str | None],
    http: HttpSettings,
    guard: Guard,
) -> Iterator[str]:
    """Run the server while the block runs. Gives the server's URL.

    port: 0 lets the system choose.
    waits_for: returns in words what keeps the node from being ready; None if nothing does.
    http: says whether it may be reached from other machines.
    guard: decides about every request.
    Raises OSError if the port is in use; ExposedError if it may not be served so.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    own = {"registry": registry, "waits_for": staticmethod(waits_for), "guard": guard}
    server = ThreadingHTTPServer((host, port), type("Handler", (_Handler,), own), bind_and_activate=False)
    place = f"{host}:{port}"
    try:
        server.server_bind()
        address = str(server.server_address[0])
        check_address(place, address, http)
        server.server_activate()
    except BaseException:
        server.server_close()
        raise
    for warning in (*guard.warnings(), *clear_text_warnings(place, address, http)):
        _log.warning(warning)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="node-http", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
