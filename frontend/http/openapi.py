"""The OpenAPI description: FastAPI's of the pages, and what it cannot know of the other routes."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from frontend.http.routes import ROUTES, ServedBy
from frontend.registry import models

_MODELS = (
    models.Stream,
    models.DeepeningStart,
    models.StreamChange,
    models.Query,
    models.Problem,
    models.Reply,
)


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole description."""
    made: dict[str, Any] = app.openapi()
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    for model in _MODELS:
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    raw = _raw()
    for route in (*ROUTES.rows_of(ServedBy.EVENTS), *ROUTES.rows_of(ServedBy.PROBES)):
        # A HEAD is answered as the GET of its path, which is described.
        if route.method != "HEAD":
            made["paths"][route.path] = {route.method.lower(): raw[route.handler]}
    return made


def _raw() -> dict[str, Any]:
    """What the framework does not know of, by the name of the handler."""
    return {
        "score": _scoring(),
        "alive": _probe("The process is alive"),
        "ready": _probe("It has recovered and takes events", {"503": _problem("not yet, or no more")}),
        "metrics": _probe("For Prometheus"),
    }


def _probe(says: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """more: answers beside a 200."""
    return {"summary": says, "responses": {"200": {"description": "yes"}, **(more or {})}}


def _scoring() -> dict[str, Any]:
    event = {"type": "object", "description": "an event: the stream's fields by name"}
    reply = {"$ref": "#/components/schemas/Reply"}
    problem = {"$ref": "#/components/schemas/Problem"}
    each = {"oneOf": [reply, problem]}
    return {
        "summary": "Score events",
        "description": "An event gives a reply; an array, or lines, one for each in order, with a problem in the place "
        "of each event that failed, which harms no other.",
        "parameters": [
            _parameter("stream", "path", "string", "the stream's name", required=True),
            _parameter("metrics", "query", "string", "only these, separated by commas"),
            _parameter(
                "reply",
                "query",
                "string",
                "all, as without it; none: 202 once the events are durable",
                ("all", "none"),
            ),
            _parameter("timeout_ms", "query", "integer", "how long to wait before a 504"),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"oneOf": [event, {"type": "array", "items": event}]}},
                "application/x-ndjson": {"schema": {"type": "string", "description": "an event per line"}},
            },
        },
        "responses": {
            "200": {
                "description": "replies",
                "content": {
                    "application/json": {"schema": {"oneOf": [reply, {"type": "array", "items": each}]}},
                    "application/x-ndjson": {"schema": {"type": "string"}},
                },
            },
            "202": {
                "description": "durable, with the number of events taken",
                "content": {"application/json": {}},
            },
            **{str(status): _problem(says) for status, says in _REFUSALS.items()},
        },
    }


_REFUSALS = {
    400: "malformed, with the position",
    404: "there is no such stream",
    408: "the body did not arrive in time",
    413: "too large",
    415: "neither JSON nor lines of it",
    422: "an invalid event or query, with the place",
    429: "as much is in flight as may be",
    503: "starting, stopping or stopped",
    504: "not answered in time",
}


def _problem(says: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": says, "content": {"application/problem+json": {"schema": schema}}}


def _parameter(
    name: str, where: str, type_: str, says: str, values: Sequence[str] = (), *, required: bool = False
) -> dict[str, Any]:
    """values: all that it may be; none where that is not listed."""
    schema = {"type": type_, "enum": list(values)} if values else {"type": type_}
    return {"name": name, "in": where, "required": required, "schema": schema, "description": says}
