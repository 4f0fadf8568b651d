"""Begins, installs, shows and gives up deepenings over HTTP.

A deepening gives a live stream older history than its log has. `railgun backfill` builds its data.
"""

from typing import Any

from fastapi import Depends, Request, Response

from frontend.access.audit import note
from frontend.access.caller import for_caller_of, origin_of
from frontend.backend.deepenings import DeepeningOperations
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.registry.models import Deepening, DeepeningStart
from frontend.pages.requests import PROBLEMS, body_of, checked, no_parameters, read_json
from frontend.problems import failed, refusal
from railgun.catalog.errors import DefinitionError
from railgun.catalog.tables import Table

_ON_KAFKA = (
    "a stream whose log is Kafka is deepened by its units: railgun backfill --deepen --broker HOST:PORT --data with "
    "the data folder of their node"
)


def deepening(deepenings: DeepeningOperations | None) -> dict[str, PageHandler]:
    """Return the handlers of these routes, by name. deepenings: None if the units of a cluster do them."""
    page = PageHandlers(responses=PROBLEMS, dependencies=[Depends(no_parameters)])

    @page(response_model=Deepening, openapi_extra=body_of(DeepeningStart))
    async def begin_deepening(stream: str, request: Request) -> dict[str, Any]:
        """Let older history be built for a stream; the same again where that has begun."""
        cut_ms = checked(_cut, await read_json(request))
        begun = await _served(deepenings).begin(stream, cut_ms)
        note(request.scope, f"the deepening of {stream} begins")
        return _as_told(request, begun)

    @page(status_code=202, response_model=Deepening)
    async def install_deepening(stream: str, request: Request) -> dict[str, Any]:
        """Let the tasks that were built take over, once they have followed the log to its end."""
        installing = await _served(deepenings).install(stream, origin_of(request.scope))
        note(request.scope, f"the deepening of {stream} is to be installed")
        return _as_told(request, installing)

    @page(response_model=Deepening)
    async def show_deepening(stream: str, request: Request) -> dict[str, Any]:
        """How the deepening of a stream stands."""
        return _as_told(request, await _served(deepenings).standing(stream))

    @page(status_code=204)
    async def give_up_deepening(stream: str, request: Request) -> Response:
        """Let go of what there is of a deepening; nothing happens where none is under way."""
        await _served(deepenings).give_up(stream)
        note(request.scope, f"the deepening of {stream} is given up")
        return Response(status_code=204)

    return page.by_name


def _served(deepenings: DeepeningOperations | None) -> DeepeningOperations:
    """Return the operations. Raises ProblemError (409) if streams are deepened by the units of a cluster."""
    if deepenings is None:
        raise refusal(409, _ON_KAFKA)
    return deepenings


def _as_told(request: Request, standing: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a deepening in words that the caller may read: a failure may name folders of the server."""
    failure = standing.get("failure")
    if failure is None:
        return standing
    return {**standing, "failure": for_caller_of(request.scope, failed(failure)).problem.detail}


def _cut(body: object) -> int | None:
    cut_ms = Table(body, (), ("cut_ms",)).get("cut_ms")
    if cut_ms is not None and (not isinstance(cut_ms, int) or isinstance(cut_ms, bool)):
        raise DefinitionError(("cut_ms",), "a time is a whole number of milliseconds")
    return cut_ms
