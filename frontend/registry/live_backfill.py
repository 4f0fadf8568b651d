"""Deepening a stream over HTTP: begun, installed, shown, given up. What is built in between is `railgun backfill`'s."""

from typing import Any

from fastapi import Depends, Request, Response

from frontend.page_handlers import PageHandler, PageHandlers
from frontend.registry.models import Deepening, DeepeningStart
from frontend.registry.routes import PROBLEMS, body_of, checked, no_parameters, read_json
from frontend.scoring.backend import Backend
from railgun.catalog.errors import DefinitionError
from railgun.catalog.tables import Table


def deepening(backend: Backend) -> dict[str, PageHandler]:
    """The handlers, by name."""
    page = PageHandlers(responses=PROBLEMS, dependencies=[Depends(no_parameters)])

    @page(response_model=Deepening, openapi_extra=body_of(DeepeningStart))
    async def begin_deepening(stream: str, request: Request) -> dict[str, Any]:
        """Let older history be built for a stream; the same again where that has begun."""
        return await backend.begin_deepening(stream, checked(_cut, await read_json(request)))

    @page(status_code=202, response_model=Deepening)
    async def install_deepening(stream: str) -> dict[str, Any]:
        """Let the tasks that were built take over, once they have followed the log to its end."""
        return await backend.install_deepening(stream)

    @page(response_model=Deepening)
    async def show_deepening(stream: str) -> dict[str, Any]:
        """How the deepening of a stream stands."""
        return await backend.deepening(stream)

    @page(status_code=204)
    async def give_up_deepening(stream: str) -> Response:
        """Let go of what there is of a deepening; nothing happens where none is under way."""
        await backend.give_up_deepening(stream)
        return Response(status_code=204)

    return page.by_name


def _cut(body: object) -> int | None:
    cut_ms = Table(body, (), ("cut_ms",)).get("cut_ms")
    if cut_ms is not None and (not isinstance(cut_ms, int) or isinstance(cut_ms, bool)):
        raise DefinitionError(("cut_ms",), "a time is a whole number of milliseconds")
    return cut_ms
