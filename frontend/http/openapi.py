"""The OpenAPI description and its page, `/docs`.

FastAPI describes the pages that it answers. The other routes, which it does not know, are added here. `/docs` loads
nothing from elsewhere.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from frontend.http.routes import ROUTES, ServedBy
from frontend.http.score_options import ON_TIMEOUT
from frontend.live.models import Live
from frontend.pages.cluster.models import Drain, GapOrder, OneTask
from frontend.pages.registry import models
from frontend.pages.values.models import KeyValues, ValueQuery

_METHODS = ("get", "post", "patch", "delete")
DOCS_POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'"
"""The policy of `/docs`: it may load its style alone. Every answer has the header that forbids frames."""
DOCS_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
code, pre { font: 0.875rem/1.45 ui-monospace, monospace; }
pre { padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .5rem .75rem; }
summary { cursor: pointer; display: flex; gap: .75rem; flex-wrap: wrap; align-items: baseline; }
summary b { font: 600 .8rem ui-monospace, monospace; width: 4rem; }
summary span { opacity: .75; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .25rem .75rem .25rem 0;
border-bottom: 1px solid var(--line); vertical-align: top; } th { font-weight: 600; }
"""


def docs_page(openapi: Mapping[str, Any]) -> str:
    """Return the whole page `/docs`, made from the description."""
    info = openapi["info"]
    title = html.escape(f"{info['title']} {info['version']}")
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{title}</title><link rel="stylesheet" href="/docs.css"></head><body><h1>{title}</h1>',
        f"<p>{html.escape(info.get('description', ''))} ",
        'The same for programs: <a href="/openapi.json">/openapi.json</a>.</p><h2>Routes</h2>',
        *_routes(openapi),
        "<h2>Bodies</h2>",
        *_schemas(openapi),
        "</body></html>",
    ]
    return "".join(parts)


def _routes(openapi: Mapping[str, Any]) -> Iterator[str]:
    for path, operations in openapi["paths"].items():
        for method in _METHODS:
            operation = operations.get(method)
            if operation is None:
                continue
            yield f"<details><summary><b>{method.upper()}</b><code>{html.escape(path)}</code>"
            yield f"<span>{html.escape(operation.get('summary', ''))}</span></summary>"
            yield f"<p>{html.escape(operation.get('description', ''))}</p>"
            yield from _parameters(operation)
            yield from _request_body(operation)
            yield from _responses(operation)
            yield "</details>"


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        (f"{each['name']} ({each['in']})", _type(each.get("schema", {})), each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    yield from _table("Parameters", rows)


def _request_body(operation: Mapping[str, Any]) -> Iterator[str]:
    content = operation.get("requestBody", {}).get("content", {})
    yield from _table("Body", [(media, _type(each.get("schema", {})), "") for media, each in content.items()])


def _responses(operation: Mapping[str, Any]) -> Iterator[str]:
    rows: list[tuple[str, str, str]] = []
    for status, each in operation.get("responses", {}).items():
        types = {_type(body.get("schema", {})) for body in each.get("content", {}).values()}
        rows.append((str(status), " or ".join(sorted(types)), each.get("description", "")))
    yield from _table("Answers", rows)


def _schemas(openapi: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(openapi.get("components", {}).get("schemas", {}).items()):
        yield f'<details id="{html.escape(name)}"><summary><b>{html.escape(name)}</b>'
        yield f"<span>{html.escape(schema.get('description', ''))}</span></summary>"
        rows = []
        for key, each in schema.get("properties", {}).items():
            default = each.get("default")
            description = each.get("description", "") + (
                f" (default {default!r})" if default is not None else ""
            )
            rows.append((key, _type(each), description))
        yield from _table("", rows)
        yield "</details>"


def _table(title: str, rows: list[tuple[str, str, str]]) -> Iterator[str]:
    if rows:
        head = f'<tr><th colspan="3">{title}</th></tr>' if title else ""
        yield f"<table>{head}"
        for name, type_, description in rows:
            cells = f"<td><code>{html.escape(name)}</code></td><td>{html.escape(type_)}</td>"
            yield f"<tr>{cells}<td>{html.escape(description)}</td></tr>"
        yield "</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type that a JSON schema describes, in words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
    if "oneOf" in schema:
        return " or ".join(_type(each) for each in schema["oneOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"{_type(schema['additionalProperties'])} by name"
    return str(schema.get("title" if schema.get("type") == "object" else "type", schema.get("type", "")))


_MODELS = (
    models.Stream,
    models.NewStream,
    models.DeepeningStart,
    models.StreamChange,
    models.Query,
    ValueQuery,
    KeyValues,
    Drain,
    OneTask,
    GapOrder,
    Live,
    models.Problem,
    models.Reply,
)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the whole OpenAPI description."""
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
    """Return the descriptions of the routes that the framework does not know, by the name of the handler."""
    return {
        "score": _scoring(),
        "alive": _probe("The process is alive"),
        "ready": _probe(
            "It has recovered and takes events",
            {
                "200": {
                    "description": "yes; with `unanswered`, the tasks that nobody answers, where there are some"
                },
                "503": _problem("not yet, or no more; or tasks there are, and nobody answers any of them"),
            },
        ),
        "metrics": _probe("For Prometheus"),
        "live": _probe(
            "How the process, the cluster and each stream stand now, as far as the token may see it",
            {
                "200": {
                    "description": "at most a second old",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Live"}}},
                },
                "401": _problem("a token is needed"),
                "422": _problem("an unknown parameter"),
            },
        ),
    }


def _probe(says: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Describe a route for monitoring. more: answers beside a plain 200, or in its place."""
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
            _parameter(
                "on_timeout",
                "query",
                "string",
                "error, as without it: a 504 once that time is over; partial: in its place the results that have come, "
                "if there are any",
                ON_TIMEOUT,
            ),
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
    400: "malformed, with the position; another on_timeout",
    401: "a token is needed",
    403: "the token lacks a scope, which is named",
    404: "there is no such stream",
    408: "the body did not arrive in time",
    413: "too large",
    415: "neither JSON nor lines of it",
    422: "an invalid event or query, with the place",
    429: "as much is in flight as may be, or the token has sent as many events as it may",
    503: "starting, stopping or stopped",
    504: "not answered in time",
}


def _problem(says: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": says, "content": {"application/problem+json": {"schema": schema}}}


def _parameter(
    name: str, where: str, type_: str, says: str, values: Sequence[str] = (), *, required: bool = False
) -> dict[str, Any]:
    """Describe a parameter. values: all that it may be; empty if they are not listed."""
    schema = {"type": type_, "enum": list(values)} if values else {"type": type_}
    return {"name": name, "in": where, "required": required, "schema": schema, "description": says}
