"""The registry over HTTP: streams, metrics and live backfills. FastAPI makes their OpenAPI description.

The data of a deepening is built by `railgun backfill`; here it is started, installed, shown and given up.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec
from fastapi import Depends, Request, Response

from frontend.access.audit import note, note_refusal
from frontend.access.caller import caller_of, for_caller_of, origin_of
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.registry.models import (
    Deepening,
    DeepeningStart,
    Metric,
    MetricList,
    Query,
    Stream,
    StreamChange,
    StreamList,
)
from frontend.problems import failed, of_no_json, refusal, refused
from frontend.scoring.scoring import Backend
from railgun.access.guard import forbidden
from railgun.catalog.errors import DefinitionError
from railgun.catalog.stream_reading import KEYS, stream_from_json, stream_to_json
from railgun.catalog.tables import Table
from railgun.engine.status import MetricStatus
from railgun.ingest.intake import LONG_INTEGER
from railgun.registry.evolution import unknown_name


def deepening(backend: Backend) -> dict[str, PageHandler]:
    """The handlers, by name."""
    page = PageHandlers(responses=PROBLEMS, dependencies=[Depends(no_parameters)])

    @page(response_model=Deepening, openapi_extra=body_of(DeepeningStart))
    async def begin_deepening(stream: str, request: Request) -> dict[str, Any]:
        """Let older history be built for a stream; the same again where that has begun."""
        begun = await backend.begin_deepening(stream, checked(_cut, await read_json(request)))
        note(request.scope, f"the deepening of {stream} begins")
        return _as_told(request, begun)

    @page(status_code=202, response_model=Deepening)
    async def install_deepening(stream: str, request: Request) -> dict[str, Any]:
        """Let the tasks that were built take over, once they have followed the log to its end."""
        installing = await backend.install_deepening(stream, origin_of(request.scope))
        note(request.scope, f"the deepening of {stream} is to be installed")
        return _as_told(request, installing)

    @page(response_model=Deepening)
    async def show_deepening(stream: str, request: Request) -> dict[str, Any]:
        """How the deepening of a stream stands."""
        return _as_told(request, await backend.deepening(stream))

    @page(status_code=204)
    async def give_up_deepening(stream: str, request: Request) -> Response:
        """Let go of what there is of a deepening; nothing happens where none is under way."""
        await backend.give_up_deepening(stream)
        note(request.scope, f"the deepening of {stream} is given up")
        return Response(status_code=204)

    return page.by_name


def _as_told(request: Request, standing: dict[str, Any]) -> dict[str, Any]:
    """How a deepening stands, in the words that the caller may read: its failure may name folders of the server."""
    failure = standing.get("failure")
    if failure is None:
        return standing
    return {**standing, "failure": for_caller_of(request.scope, failed(failure)).problem.detail}


def _cut(body: object) -> int | None:
    cut_ms = Table(body, (), ("cut_ms",)).get("cut_ms")
    if cut_ms is not None and (not isinstance(cut_ms, int) or isinstance(cut_ms, bool)):
        raise DefinitionError(("cut_ms",), "a time is a whole number of milliseconds")
    return cut_ms


_EVOLVABLE = ("fields", "lateness", "retention")
_FIXED = frozenset(KEYS) - set(_EVOLVABLE)
_decode = msgspec.json.Decoder().decode
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": says,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, says in {
        400: "malformed",
        401: "a token is needed",
        403: "the token lacks a scope, which is named",
        404: "there is no such stream or metric",
        409: "it exists with another definition",
        413: "too large",
        415: "no JSON",
        422: "invalid, with the place",
        503: "starting, stopping or stopped; or a change that the broker has not confirmed",
    }.items()
}


def registry(backend: Backend) -> dict[str, PageHandler]:
    """The handlers, by name."""
    page = PageHandlers(responses=PROBLEMS, dependencies=[Depends(no_parameters)])
    _add_streams(page, backend)
    _add_metrics(page, backend)
    return page.by_name


def _add_streams(page: PageHandlers, backend: Backend) -> None:
    @page(
        status_code=201,
        response_model=Stream,
        response_model_exclude_none=True,
        openapi_extra=body_of(Stream),
    )
    async def create_stream(request: Request, response: Response) -> dict[str, Any]:
        """Register a stream; 200 where the same is registered already."""
        definition = checked(lambda body: stream_from_json(body), await read_json(request))
        _check_may_define(request, definition.name)
        if not await backend.create_stream(definition, origin_of(request.scope)):
            response.status_code = 200
        return stream_to_json(definition)

    @page(response_model=StreamList, response_model_exclude_none=True)
    async def list_streams(request: Request) -> dict[str, Any]:
        """All streams that the token may read."""
        may_read = caller_of(request.scope).scopes.may_read
        return {"streams": [stream_to_json(each) for each in await backend.streams() if may_read(each.name)]}

    @page(response_model=Stream, response_model_exclude_none=True)
    async def show_stream(stream: str) -> dict[str, Any]:
        """A stream."""
        return stream_to_json(backend.view(stream).definition)

    @page(
        response_model=Stream,
        response_model_exclude_none=True,
        openapi_extra=body_of(StreamChange),
    )
    async def evolve_stream(stream: str, request: Request) -> dict[str, Any]:
        """Add fields, change lateness or retention."""
        settings = checked(_evolution, await read_json(request))
        return stream_to_json(await backend.evolve_stream(stream, settings, origin_of(request.scope)))

    @page(status_code=204)
    async def drop_stream(stream: str, request: Request) -> Response:
        """Remove a stream, its metrics and its events."""
        await backend.drop_stream(stream, origin_of(request.scope))
        return Response(status_code=204)


def _add_metrics(page: PageHandlers, backend: Backend) -> None:
    @page(status_code=201, response_model=MetricList, openapi_extra=body_of(Query))
    async def add_metrics(stream: str, request: Request, response: Response) -> dict[str, Any]:
        """Register the metrics of a query; 200 where the same are registered already."""
        sql = checked(_sql, await read_json(request))
        metrics, is_new = await backend.add_metrics(stream, sql, origin_of(request.scope))
        if not is_new:
            response.status_code = 200
        return {"metrics": [asdict(each) for each in metrics]}

    @page(response_model=MetricList)
    async def list_metrics(stream: str) -> dict[str, Any]:
        """A stream's metrics, in the order added."""
        return {"metrics": [asdict(each) for each in await backend.metrics(stream)]}

    @page(response_model=Metric)
    async def show_metric(stream: str, name: str) -> dict[str, Any]:
        """A metric, and how it stands."""
        return asdict(_named(stream, name, await backend.metrics(stream)))

    @page(status_code=204)
    async def drop_metric(stream: str, name: str, request: Request) -> Response:
        """End a metric."""
        await backend.drop_metric(stream, name, origin_of(request.scope))
        return Response(status_code=204)

    @page(openapi_extra=body_of(Query))
    async def explain(stream: str, request: Request) -> dict[str, Any]:
        """The plan of the stream as it would be with a query's metrics; nothing is registered."""
        return await backend.explain(stream, checked(_sql, await read_json(request)))

    @page()
    async def status() -> dict[str, Any]:
        """Streams, metrics and tasks: positions, fills, disk."""
        return await backend.status()


def _check_may_define(request: Request, stream: str) -> None:
    """Raise ProblemError (403) where the caller may not make a stream of this name."""
    caller, wanted = caller_of(request.scope), f"define:{stream}"
    if not caller.scopes.have(wanted):
        error = forbidden(wanted, caller)
        note_refusal(request.scope, error)
        raise refused(error)


async def no_parameters(request: Request) -> None:
    """None of these routes takes one: what looks like a condition of a DELETE must not be passed over."""
    # A coroutine: the framework gives a function a thread of its own.
    for name in request.query_params:
        detail = f"unknown parameter {name[:80]!r}; this route takes none"
        raise refusal(422, detail, [(("query", name[:80]), detail)])


def _named(stream: str, name: str, metrics: list[MetricStatus]) -> MetricStatus:
    by_name = {each.name: each for each in metrics}
    if name not in by_name:
        raise refusal(404, unknown_name("metric", name, by_name, stream))
    return by_name[name]


def body_of(model: type[Any], *, is_required: bool = True) -> dict[str, Any]:
    """How OpenAPI shows the body of a request that is read here."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": is_required, "content": {"application/json": {"schema": schema}}}}


async def read_json(request: Request, decode: Callable[[bytes], Any] = _decode) -> Any:
    """The body of a request. Raises ProblemError."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise refusal(415, f"the Content-Type is {media[:80] or 'missing'}; application/json is taken")
    text = await request.body()
    try:
        return decode(text)
    except msgspec.ValidationError:
        raise refusal(422, LONG_INTEGER, [((), LONG_INTEGER)]) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise of_no_json(text, error) from None
    except RecursionError:
        raise refusal(400, "no JSON that can be read: nested too deep") from None


def checked(read: Any, body: object) -> Any:
    """What `read` makes of a body. Raises ProblemError with the place of what is wrong."""
    try:
        return read(body)
    except DefinitionError as error:
        detail = error.message + (f"; {error.hint}" if error.hint else "")
        raise refusal(422, str(error), [(error.loc, detail)]) from None


def _evolution(body: object) -> Mapping[str, Any]:
    for key in body if isinstance(body, Mapping) else ():
        if key in _FIXED:
            raise DefinitionError(
                (key,),
                "it cannot be changed once the stream is there",
                f"what can be: {', '.join(_EVOLVABLE)}",
            )
    table = Table(body, (), _EVOLVABLE)
    return {key: table.get(key) for key in _EVOLVABLE if table.get(key) is not None}


def _sql(body: object) -> str:
    sql = Table(body, (), ("sql",)).required("sql", "a query")
    if not isinstance(sql, str):
        raise DefinitionError(("sql",), "a query is text")
    return sql
