"""The HTTP port of a node, for monitoring and health checks: /metrics, /healthz, /readyz."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from railgun.wire.http_routes import Route, Routes

_NODE = "node"
ROUTES = Routes(
    (
        Route("GET", "/metrics", "metrics", _NODE),
        Route("GET", "/healthz", "alive", _NODE),
        Route("GET", "/readyz", "ready", _NODE),
    )
)
"""All routes that a node answers. Those of the service are in `frontend/http/routes.py`."""
_TEXT = "text/plain; charset=utf-8"


class _Handler(BaseHTTPRequestHandler):
    registry: CollectorRegistry
    waits_for: Callable[[], str | None]
    # Clients that send nothing for this long are disconnected.
    timeout = 30

    def do_GET(self) -> None:
        route = ROUTES.find(self.command, self.path.partition("?")[0]).route
        if route is None:
            *most, last = (each.path for each in ROUTES)
            self._answer(404, _TEXT, f"there are {', '.join(most)} and {last}\n".encode())
        else:
            self._handlers[route](self)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as http.server names it
        """Do nothing: requests are not logged."""

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
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
            self._answer(503, _TEXT, f"starting: {waits_for}\n".encode())

    _handlers = ROUTES.bind(_NODE, {"metrics": _metrics, "alive": _alive, "ready": _ready})


@contextmanager
def serving(host: str, port: int, collector: Collector, waits_for: Callable[[], str | None]) -> Iterator[str]:
    """Run the server while the block runs. Gives the server's URL.

    port: 0 lets the system choose.
    waits_for: returns in words what keeps the node from being ready; None if nothing does.
    Raises OSError if the port is in use.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    handler = type("Handler", (_Handler,), {"registry": registry, "waits_for": staticmethod(waits_for)})
    server = ThreadingHTTPServer((host, port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="node-http", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
