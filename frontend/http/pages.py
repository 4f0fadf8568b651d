"""The pages: what the framework answers, which is all but scoring and the probes.

Imported once events are taken, or when the first of them is asked for (`Application.prepare`): the framework takes a
third of the time of all that a server imports.
"""

import asyncio
import warnings
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

import railgun
from frontend.access.caller import for_caller_of
from frontend.backend.backend import Backend
from frontend.http.asgi import Message, encoder
from frontend.http.openapi import DOCS_POLICY, DOCS_STYLE, describe, docs_page
from frontend.http.routes import ROUTES, ServedBy
from frontend.pages.cluster.routes import cluster
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.registry.deepening import deepening
from frontend.pages.registry.log import change_log
from frontend.pages.registry.routes import registry
from frontend.pages.values.routes import values
from frontend.pages.whoami import callers
from frontend.problems import ProblemError, of_defect
from railgun.config.settings import HttpSettings

# The framework makes each parameter's type in a way that its library of types warns of, and hides that: from one thread
# at a time, while several servers of a process may make their pages at once.
warnings.filterwarnings("ignore", "The 'alias' attribute with value", UserWarning)


def pages_of(backend: Backend, settings: HttpSettings) -> FastAPI:
    """The pages as an application of the framework. Not on a thread with an event loop."""
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
    handlers = registry(backend.catalogue, backend.scoring) | change_log(backend.catalogue)
    handlers |= deepening(backend.deepenings) | cluster(backend.cluster)
    handlers |= values(backend.scoring, settings) | callers() | _descriptions(pages)
    for route, (function, described) in ROUTES.bind(ServedBy.PAGES, handlers).items():
        pages.add_api_route(route.path, function, methods=[route.method], **described)
    pages.add_exception_handler(ProblemError, _on_problem)
    pages.add_exception_handler(Exception, _on_defect)
    asyncio.run(_tried(pages))
    return pages


def _descriptions(pages: FastAPI) -> dict[str, PageHandler]:
    """The handlers of the pages that describe all routes."""
    page = PageHandlers(include_in_schema=False)

    @cache
    def description() -> dict[str, Any]:
        return describe(pages)

    @page()
    async def openapi() -> JSONResponse:
        return JSONResponse(description())

    @page()
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(description()), headers={"content-security-policy": DOCS_POLICY})

    @page()
    async def docs_style() -> Response:
        return Response(DOCS_STYLE, media_type="text/css")

    return page.by_name


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


async def _on_defect(request: Request, error: Exception) -> Response:
    """The framework raises the error once this is sent; whoever called it logs that."""
    return await _on_problem(request, of_defect())


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    error = for_caller_of(request.scope, error)
    headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(encoder.encode(error.problem), error.problem.status, headers, "application/problem+json")
