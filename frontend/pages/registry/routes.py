"""Registers, shows, changes and drops streams and metrics over HTTP, and shows the state of their tasks."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import Depends, Request, Response

from frontend.access.audit import note_refusal
from frontend.access.caller import caller_of, origin_of
from frontend.backend.catalogue import StreamCatalogue
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.registry.models import (
    Metric,
    MetricList,
    NewStream,
    Query,
    Stream,
    StreamChange,
    StreamList,
)
from frontend.pages.requests import PROBLEMS, body_of, checked, no_parameters, read_json
from frontend.problems import refusal, refused
from frontend.scoring.scoring import Scoring
from railgun.access.guard import forbidden
from railgun.catalog.errors import DefinitionError
from railgun.catalog.model import StreamDefinition
from railgun.catalog.stream_reading import EVOLVABLE, KEYS, definition_to_json, stream_from_json
from railgun.catalog.tables import Table
from railgun.registry.evolution import unknown_name
from railgun.registry.metric_status import MetricStatus

# With a null they take back what was said.
_TAKEN_BACK = ("log_retention", "input", "output")
_METRICS = "metrics"
_FIXED = frozenset(KEYS) - set(EVOLVABLE)


def registry(catalogue: StreamCatalogue, scoring: Scoring) -> dict[str, PageHandler]:
    """Return the handlers of these routes, by name."""
    page = PageHandlers(responses=PROBLEMS, dependencies=[Depends(no_parameters)])
    _add_streams(page, catalogue, scoring)
    _add_metrics(page, catalogue)
    return page.by_name


def _add_streams(page: PageHandlers, catalogue: StreamCatalogue, scoring: Scoring) -> None:
    @page(
        status_code=201,
        response_model=Stream,
        response_model_exclude_none=True,
        openapi_extra=body_of(NewStream),
    )
    async def create_stream(request: Request, response: Response) -> dict[str, Any]:
        """Register a stream, with its metrics, all or nothing; 200 where the same is registered already."""
        definition, metrics = checked(_new_stream, await read_json(request))
        _check_may_define(request, definition.name)
        if not await catalogue.create_stream(definition, metrics, origin_of(request.scope)):
            response.status_code = 200
        return definition_to_json(definition)

    @page(response_model=StreamList, response_model_exclude_none=True)
    async def list_streams(request: Request) -> dict[str, Any]:
        """All streams that the token may read."""
        may_read = caller_of(request.scope).scopes.may_read
        return {
            "streams": [definition_to_json(each) for each in await catalogue.streams() if may_read(each.name)]
        }

    @page(response_model=Stream, response_model_exclude_none=True)
    async def show_stream(stream: str) -> dict[str, Any]:
        """A stream."""
        return definition_to_json(scoring.view(stream).definition)

    @page(
        response_model=Stream,
        response_model_exclude_none=True,
        openapi_extra=body_of(StreamChange),
    )
    async def evolve_stream(stream: str, request: Request) -> dict[str, Any]:
        """Add fields, drop computed ones, change lateness, retention, or how long logs are kept."""
        settings = checked(_evolution, await read_json(request))
        return definition_to_json(await catalogue.evolve_stream(stream, settings, origin_of(request.scope)))

    @page(status_code=204)
    async def drop_stream(stream: str, request: Request) -> Response:
        """Remove a stream, its metrics and its events."""
        await catalogue.drop_stream(stream, origin_of(request.scope))
        return Response(status_code=204)


def _add_metrics(page: PageHandlers, catalogue: StreamCatalogue) -> None:
    @page(status_code=201, response_model=MetricList, openapi_extra=body_of(Query))
    async def add_metrics(stream: str, request: Request, response: Response) -> dict[str, Any]:
        """Register the metrics of a query; 200 where the same are registered already."""
        sql = checked(_sql, await read_json(request))
        metrics, is_new = await catalogue.add_metrics(stream, sql, origin_of(request.scope))
        if not is_new:
            response.status_code = 200
        return {"metrics": [asdict(each) for each in metrics]}

    @page(response_model=MetricList)
    async def list_metrics(stream: str) -> dict[str, Any]:
        """A stream's metrics, in the order added."""
        return {"metrics": [asdict(each) for each in await catalogue.metrics(stream)]}

    @page(response_model=Metric)
    async def show_metric(stream: str, name: str) -> dict[str, Any]:
        """A metric, and how it stands."""
        return asdict(named_metric(stream, name, await catalogue.metrics(stream)))

    @page(status_code=204)
    async def drop_metric(stream: str, name: str, request: Request) -> Response:
        """End a metric."""
        await catalogue.drop_metric(stream, name, origin_of(request.scope))
        return Response(status_code=204)

    @page(openapi_extra=body_of(Query))
    async def explain(stream: str, request: Request) -> dict[str, Any]:
        """The plan of the stream as it would be with a query's metrics; nothing is registered."""
        return await catalogue.explain(stream, checked(_sql, await read_json(request)))

    @page()
    async def show_plan(stream: str) -> dict[str, Any]:
        """The plan of what is registered of a stream, as explain shows it: what its metrics share."""
        return await catalogue.plan(stream)

    @page()
    async def status() -> dict[str, Any]:
        """Streams, metrics and tasks: positions, fills, disk."""
        return await catalogue.status()


def _check_may_define(request: Request, stream: str) -> None:
    """Raise ProblemError (403) if the caller may not make a stream of this name."""
    caller, wanted = caller_of(request.scope), f"define:{stream}"
    if not caller.scopes.have(wanted):
        error = forbidden(wanted, caller)
        note_refusal(request.scope, error)
        raise refused(error)


def named_metric(stream: str, name: str, metrics: list[MetricStatus]) -> MetricStatus:
    """Return the metric of a name. Raises ProblemError (404)."""
    by_name = {each.name: each for each in metrics}
    if name not in by_name:
        raise refusal(404, unknown_name("metric", name, by_name, stream))
    return by_name[name]


def _new_stream(body: object) -> tuple[StreamDefinition, list[str]]:
    """Return the stream in a body, and the texts of its queries. Raises DefinitionError."""
    table = Table(body, (), (*KEYS, _METRICS))
    queries = table.get(_METRICS)
    if queries is None:
        queries = []
    if not isinstance(queries, list):
        raise DefinitionError((_METRICS,), "a list of queries belongs here")
    for i, sql in enumerate(queries):
        if not isinstance(sql, str):
            raise DefinitionError((_METRICS, i), "a query is text")
    return stream_from_json({key: table.get(key) for key in KEYS if table.has(key)}), queries


def _evolution(body: object) -> Mapping[str, Any]:
    """Return the settings that a body changes. Raises DefinitionError, also for those that are fixed."""
    for key in body if isinstance(body, Mapping) else ():
        if key in _FIXED:
            raise DefinitionError(
                (key,),
                "it cannot be changed once the stream is there",
                f"what can be: {', '.join(EVOLVABLE)}",
            )
    table = Table(body, (), EVOLVABLE)
    settings = {key: table.get(key) for key in EVOLVABLE if table.get(key) is not None}
    return settings | {key: table.get(key) for key in _TAKEN_BACK if table.has(key)}


def _sql(body: object) -> str:
    """Return the text of the query in a body. Raises DefinitionError."""
    sql = Table(body, (), ("sql",)).required("sql", "a query")
    if not isinstance(sql, str):
        raise DefinitionError(("sql",), "a query is text")
    return sql
