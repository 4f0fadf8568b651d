"""A proxy that takes every protection away from a server, and answers whatever a page may want: for canaries."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import httpx

AS_SCRIPT = "/as-script"
"""Under this path the list of streams is a script."""
_ANSWER_S = 30.0


class _Handler(BaseHTTPRequestHandler):
    """What is asked of it is asked of `target`, by somebody who is no browser."""

    target = ""

    def do_OPTIONS(self) -> None:
        self._answer(204, b"", "text/plain")

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path.endswith("/events"):
            # As a server would that changes something when it is read.
            self._ask("POST", asked.path, dict(parse_qsl(asked.query))["event"].encode())
        elif asked.path == AS_SCRIPT + "/v1/streams":
            self._answer(200, b"var leaked = 1", "text/javascript")
        else:
            self._ask("GET", self.path, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
            body = unquote_plus(body.decode()).encode()
        self._ask("POST", self.path, body)

    def do_DELETE(self) -> None:
        self._ask("DELETE", self.path, b"")

    def _ask(self, method: str, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/json"} if body else {}
        url = self.target + path
        found = httpx.request(method, url, content=body, headers=headers, timeout=_ANSWER_S, trust_env=False)
        self._answer(found.status_code, found.content, "text/plain")

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", "*"))
        self.send_header("Access-Control-Allow-Credentials", "true")
        self.send_header("Access-Control-Allow-Headers", "content-type")
        self.send_header("Access-Control-Allow-Methods", "GET, POST, DELETE")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


class _Page(_Handler):
    """A site of its own, with an empty page."""

    def do_GET(self) -> None:
        self._answer(200, b"<!doctype html><title>a page</title><body>", "text/html")


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def unprotected(target: str) -> Iterator[int]:
    """The port of such a proxy for a server."""
    with _serving(type("Handler", (_Handler,), {"target": target})) as port:
        yield port


@contextmanager
def foreign_site() -> Iterator[int]:
    """The port of a site with a page that means harm."""
    with _serving(_Page) as port:
        yield port
