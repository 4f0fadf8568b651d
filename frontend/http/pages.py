"""The pages: what the framework routes, which is all but scoring and the probes.

Imported once events are taken, or when the first of them is asked for (`Application.prepare`): the framework takes a
third of the time of all that a server imports.
"""

import asyncio
import warnings
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

import railgun
from frontend.http.asgi import Message, encoder
from frontend.http.docs_page import docs_page
from frontend.http.openapi import describe
from frontend.problems import ProblemError, problem, wrong_method
from frontend.registry.live_backfill import deepening
from frontend.registry.routes import registry
from frontend.scoring.backend import Backend

# The framework makes each parameter's type in a way that its library of types warns of, and hides that: from one thread
# at a time, while several servers of a process may make their pages at once.
warnings.filterwarnings("ignore", "The 'alias' attribute with value", UserWarning)


def pages_of(backend: Backend) -> FastAPI:
    """The routes as an application of the framework's. Not on a thread with an event loop."""
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

    asyncio.run(_tried(pages))
    return pages


async def _tried(pages: FastAPI) -> None:
    """Have the framework make its routes, which it puts off to a first request: events would wait for that."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        pass

    # One that there is not: all are looked at.
    path = "/-"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
    }
    await pages(scope, receive, send)


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
        detail = wrong_method(request.method, request.url.path, methods)
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
