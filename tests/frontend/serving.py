"""A real server over real sockets, in a thread of this process."""

import dataclasses
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvloop

from frontend.embedded.backend import EmbeddedBackend
from frontend.http.service import Service, listen
from railgun.config.settings import CONSOLE_DEFAULTS, ConsoleSettings, HttpSettings, Settings
from railgun.config.shown import settings_shown
from railgun.engine.engine import Engine
from railgun.kernels import load_all
from reservoir.native.jit import is_image

PATIENCE_S = 60.0


class Server:
    """A server that runs. client: over its own connections.  code: what `serve` returned, once it has.

    context: with which clients speak TLS to it.
    """

    def __init__(
        self,
        service: Service,
        backend: EmbeddedBackend,
        engine: Callable[[], Engine],
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.service, self.backend, self.engine, self.context = service, backend, engine, context
        self.code: int | None = None
        self.client = httpx.Client(
            base_url=service.url, timeout=PATIENCE_S, trust_env=False, verify=context or True
        )

    @property
    def address(self) -> tuple[str, int]:
        url = httpx.URL(self.service.url)
        assert url.port is not None
        return url.host, url.port

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.client.post(path, json=body, **more)

    def score(self, stream: str, event: Any, **more: Any) -> Any:
        response = self.post(f"/v1/streams/{stream}/events", event, **more)
        assert response.status_code == 200, response.text
        return response.json()

    def define(self, definitions: str) -> None:
        self.engine().apply(definitions)
        self.backend.running.refresh()


def load_kernels() -> None:
    """Load them all, unless they come as one image: else the first request may time out."""
    if not is_image():
        load_all()


@contextmanager
def server(
    folder: Path,
    *,
    open_engine: Callable[[], Engine] | None = None,
    wait: bool = True,
    context: ssl.SSLContext | None = None,
    console: ConsoleSettings = CONSOLE_DEFAULTS,
    **http: Any,
) -> Iterator[Server]:
    """A server on a free port over an engine in `folder`; http: settings that differ from the defaults.

    context: of its client, where they have it speak TLS.
    console: what it keeps and shows of single events.
    """
    settings = dataclasses.replace(HttpSettings(), **{"port": 0, "shutdown_grace_s": 1.0, **http})
    opened: list[Engine] = []

    def opening() -> Engine:
        opened.append(Engine(folder, durability="os") if open_engine is None else open_engine())
        return opened[-1]

    listener = listen(settings)
    backend = EmbeddedBackend(opening, console=console)
    shown = settings_shown(Settings(http=settings, console=console))
    service = Service(settings, backend, listener, shown=shown)
    running = Server(service, backend, lambda: opened[-1], context)

    def ended(code: int) -> None:
        running.code = code

    with listener, running.client, in_thread(service, ended) as failures:
        if wait:
            until(lambda: running.client.get("/readyz").status_code == 200 or bool(failures))
        yield running


@contextmanager
def in_thread(service: Service, ended: Callable[[int], None]) -> Iterator[list[BaseException]]:
    """A service that runs as long as the block; gives its failures, the first of which is raised at the end.

    ended: called with the exit code.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            ended(uvloop.run(service.run()))
        except BaseException as error:  # noqa: BLE001 - the test raises it
            failures.append(error)

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        yield failures
    finally:
        service.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, for long enough on any machine."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come about"
        time.sleep(0.005)
