"""A schema registry on loopback with schemas of its own."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RunningRegistry:
    """answers: by path, the body. pending: paths asked for, in order. authorization: of the last. is_down: it answers
    503.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers, self.pending, self.is_down = dict(answers), list[str](), False
        self.authorization: str | None = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.pending.append(self.path)
                registry.authorization = self.headers.get("Authorization")
                found = registry.answers.get(self.path)
                self.send_response(503 if registry.is_down else 404 if found is None else 200)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def schema_registry(answers: Mapping[str, Any]) -> Iterator[RunningRegistry]:
    """Runs with the block."""
    made = RunningRegistry(answers)
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()
