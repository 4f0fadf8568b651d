"""A schema registry on loopback with schemas of its own.

It stands for a real one where that would have to lie, and for Protobuf: one that can be had here serves no descriptors.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class RunningRegistry:
    """answers: by path, the body, or what writes it. pending: paths asked for, in order. authorization: of the last.
    is_down: it answers 503.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers, self.pending, self.is_down = dict(answers), list[str](), False
        self.authorization: str | None = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                assert query == "format=serialized"
                registry.pending.append(path)
                registry.authorization = self.headers.get("Authorization")
                found = registry.answers.get(path)
                self.send_response(503 if registry.is_down else 404 if found is None else 200)
                self.end_headers()
                # A client that has read enough goes away.
                with suppress(OSError):
                    if callable(found):
                        found(self.wfile)
                    else:
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
