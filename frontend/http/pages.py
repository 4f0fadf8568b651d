"""Makes the pages: all routes that the framework, FastAPI, answers. Scoring and the probes are not among them.

`Application.prepare` imports this file once events are taken, or at the first request for a page: the framework takes
a third of the time of all imports of a server.
"""

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

import railgun
from frontend.access.caller import for_caller_of
from frontend.backend.backend import Backend
from frontend.http.asgi import Message, encoder
from frontend.http.bundle_parts import about
from frontend.http.openapi import DOCS_POLICY, DOCS_STYLE, describe, docs_page
from frontend.http.routes import ROUTES, ServedBy
from frontend.pages.cluster.routes import cluster
from frontend.pages.console.routes import console
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.letters.routes import letters
from frontend.pages.registry.answered import Lately, answered
from frontend.pages.registry.deepening import deepening
from frontend.pages.registry.log import change_log
from frontend.pages.registry.routes import registry
from frontend.pages.samples.routes import samples
from frontend.pages.support.archive import Part
from frontend.pages.support.routes import bundles
from frontend.pages.values.routes import values
from frontend.pages.whoami import callers
from frontend.problems import ProblemError, of_defect
from railgun.config.settings import HttpSettings

# The framework makes types in a way that its library, pydantic, warns of. It hides the warning, but not safely among
# threads, and several servers of a process may make their pages at once.
warnings.filterwarnings("ignore", "The 'alias' attribute with value", UserWarning)


def pages_of(
    backend: Backend,
    settings: HttpSettings,
    front_end: Mapping[str, Any],
    lately: Lately,
    parts: Sequence[Part] = (),
) -> FastAPI:
    """Return the pages as an application of the framework. Not to be called on a thread with an event loop.

    front_end: name and start of this process, which answers about its memory say.
    lately: returns what a metric was answered lately.
    parts: of a support bundle.
    """
    pages = FastAPI(
        title="Railgun",
        version=railgun.__version__,
        description="Exact sliding-window metrics for every event.",
        # At a redirect, clients would send bodies twice, or drop them.
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    handlers = registry(backend.catalogue, backend.scoring) | change_log(backend.catalogue)
    handlers |= letters(backend.catalogue)
    handlers |= samples(backend.samples, backend.scoring, front_end)
    handlers |= answered(backend.catalogue, lately, front_end)
    handlers |= deepening(backend.deepenings) | cluster(backend.cluster)
    handlers |= (
        values(backend.scoring, settings) | callers(backend.topic_prefix) | console() | _descriptions(pages)
    )
    handlers |= bundles(parts, partial(about, front_end), str(front_end.get("name", "")))
    for route, (function, described) in ROUTES.bind(ServedBy.PAGES, handlers).items():
        pages.add_api_route(route.path, function, methods=[route.method], **described)
    pages.add_exception_handler(ProblemError, _on_problem)
    pages.add_exception_handler(Exception, _on_defect)
    asyncio.run(_tried(pages))
    return pages


def _descriptions(pages: FastAPI) -> dict[str, PageHandler]:
    """Return the handlers of the pages that describe all routes."""
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
    """Send the pages a first request, at which the framework makes its routes. Later, events would wait for that."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        pass

    # There is no such path, so the framework looks at all routes.
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
    """Answer a defect. The framework raises the error again after that, and `Application` logs it."""
    return await _on_problem(request, of_defect())


async def _on_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    error = for_caller_of(request.scope, error)
    headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(encoder.encode(error.problem), error.problem.status, headers, "application/problem+json")
