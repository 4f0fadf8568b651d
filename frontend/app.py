"""The HTTP application: scoring on a raw route, all else where it belongs; every error is a problem object."""

import asyncio
import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

import railgun
from frontend.asgi import (
    Message,
    Receive,
    Scope,
    Send,
    answer,
    answer_problem,
    encoder,
    header,
)
from frontend.backend import Backend
from frontend.deepening import deepening
from frontend.docs_page import docs_page
from frontend.in_flight import InFlight
from frontend.openapi import describe
from frontend.problems import ProblemError, of_defect, problem, refusal
from frontend.registry import registry
from frontend.request_body import Body, GoneError, check_length
from frontend.scoring_route import ScoringRoute, stream_of
from frontend.single_events import SingleEvents
from railgun.config.settings import HttpSettings

REGISTRATION_LIMIT_BYTES = 1 << 20
_log = logging.getLogger("railgun.frontend")


class Telemetry(Protocol):
    """What `/metrics` answers with."""

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """(body, content type) for an Accept header."""


class Application:
    """An ASGI application over a backend. stopping: set when streams of lines are to end.

    telemetry: for `/metrics`; without it there is no such route.
    """

    def __init__(self, backend: Backend, settings: HttpSettings) -> None:
        self._backend, self._settings = backend, settings
        self.telemetry: Telemetry | None = None
        self.in_flight = InFlight(settings.in_flight_limit_events, settings.in_flight_limit_bytes)
        self.stopping = asyncio.Event()
        self._scoring = ScoringRoute(backend, settings, self.in_flight, self.stopping)
        self.single_events = SingleEvents(backend, settings, self.in_flight)
        self._pages = _pages(backend)
        self._plain = {"/healthz": self._alive, "/readyz": self._ready, "/metrics": self._metrics}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        answering = _Answering(send)
        try:
            await self._route(scope, receive, answering)
        except ProblemError as error:
            await answer_problem(send, error)
        except GoneError:
            return
        except Exception:
            _log.exception("a defect: %s %s", scope["method"], scope["path"])
            if answering.started:
                raise
            await answer_problem(send, of_defect())

    async def warm_up(self) -> None:
        """Have the framework make its routes, which it puts off to the first request: events would wait for that."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b""}

        async def send(message: Message) -> None:
            pass

        # The routes that come last, of a stream that nobody can have registered.
        path = "/v1/streams/-/deepening"
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [],
        }
        await self(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        stream = stream_of(path)
        if stream is not None:
            _check_method(scope, "POST")
            await self._scoring(stream, scope, receive, send)
            return
        plain = self._plain.get(path)
        if plain is None:
            await self._page(scope, receive, send)
            return
        _check_method(scope, "GET", "HEAD")
        await plain(scope, send)

    async def _alive(self, scope: Scope, send: Send) -> None:
        await answer(send, 200, b'{"status":"alive"}')

    async def _metrics(self, scope: Scope, send: Send) -> None:
        if self.telemetry is None:
            raise refusal(404, "nothing is measured here")
        accept = (header(scope, b"accept") or b"").decode("latin-1")
        text, content_type = await asyncio.to_thread(self.telemetry.text, accept)
        await answer(send, 200, text, content_type.encode())

    async def _ready(self, scope: Scope, send: Send) -> None:
        standing = self._backend.readiness()
        if not standing.ready:
            raise refusal(503, standing.reason)
        await answer(send, 200, b'{"status":"ready"}')

    async def _page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The routes of the framework, which reads bodies of any length: it gets one that is read already."""
        limit_bytes = min(REGISTRATION_LIMIT_BYTES, self._settings.body_limit_bytes)
        check_length(scope, limit_bytes)
        body = Body(receive, self.in_flight, limit_bytes)
        with body.held():
            whole: list[Message] = [
                {"type": "http.request", "body": await body.read(self._settings.timeout_ms / 1000)}
            ]

            async def replay() -> Message:
                return whole.pop() if whole else await receive()

            await self._pages(scope, replay, send)


def _check_method(scope: Scope, *allowed: str) -> None:
    """Raise ProblemError (405) for another method."""
    if scope["method"] not in allowed:
        shown = _wrong_method(scope["method"], scope["path"], allowed)
        raise ProblemError(problem(405, shown), [(b"allow", ", ".join(allowed).encode())])


def _wrong_method(method: str, path: str, allowed: Sequence[str]) -> str:
    *most, last = allowed
    listed = f"{', '.join(most)} or {last}" if most else last
    return f"{path[:200]} takes {listed}, not {method[:40]}"


class _Answering:
    """Passes messages on, and knows whether an answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send, self.started = send, False

    async def __call__(self, message: Message) -> None:
        self.started = True
        await self._send(message)


def _pages(backend: Backend) -> FastAPI:
    pages = FastAPI(
        title="Railgun",
        version=railgun.__version__,
        description="Exact sliding-window metrics for every event.",
        # A redirect would have clients send bodies twice, or drop them.
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    pages.include_router(registry(backend))
    pages.include_router(deepening(backend))
    pages.add_exception_handler(ProblemError, _on_problem)
    pages.add_exception_handler(HTTPException, _on_http_error)

    @cache
    def description() -> dict[str, Any]:
        return describe(pages)

    @pages.get("/openapi.json", include_in_schema=False)
    async def openapi() -> JSONResponse:
        return JSONResponse(description())

    @pages.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(description()))

    return pages


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(encoder.encode(error.problem), error.problem.status, headers, "application/problem+json")


async def _on_http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses by itself: routes and methods that there are not."""
    assert isinstance(error, HTTPException)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    shown, detail = f"{request.method} {request.url.path[:200]}", str(error.detail)
    if error.status_code == 404:
        detail = f"there is no {shown}; /docs lists what there is"
        if request.url.path.endswith("/"):
            detail = f"there is no {shown}: no route ends in a slash; /docs lists what there is"
    elif error.status_code == 405:
        # The framework names the methods of one route; the same path may have others.
        methods = sorted(_methods(request))
        headers["allow"] = ", ".join(methods)
        detail = _wrong_method(request.method, request.url.path, methods)
    body = problem(error.status_code, detail)
    return Response(encoder.encode(body), body.status, headers, "application/problem+json")


def _methods(request: Request) -> set[str]:
    """The methods that a path has."""
    tried = ("GET", "POST", "PATCH", "DELETE")
    routes = request.app.routes
    return {
        method
        for method in tried
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    }
