"""Answers `GET` and `POST /v1/streams/{stream}/values` with the metrics of keys as they are now, without an event."""

from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import Request
from fastapi.responses import Response

from frontend.pages.handlers import PageHandler, PageHandlers, query_parameter
from frontend.pages.requests import PROBLEMS, body_of, checked, read_json
from frontend.pages.values.models import KeyValues, ValueQuery
from frontend.problems import ProblemError, refusal
from frontend.scoring.scoring import Scoring
from frontend.url_query import metrics_of, pairs_of, timeout_of, wrong_parameter
from railgun.catalog.errors import DefinitionError
from railgun.catalog.tables import Table
from railgun.config.settings import HttpSettings
from railgun.ingest.value_queries import QueryRefusedError, ValueRequest
from railgun.wire.values import decode_json

_encode = msgspec.json.Encoder().encode
_FIELDS_MAX = 64
_PROBLEMS = PROBLEMS | {504: PROBLEMS[503] | {"description": "a task has not answered in time"}}


def values(scoring: Scoring, settings: HttpSettings) -> dict[str, PageHandler]:
    """Return the handlers of these routes, by the names that the table of routes has for them."""
    page = PageHandlers(responses=_PROBLEMS)

    @page(
        response_model=KeyValues,
        openapi_extra={
            "parameters": [
                query_parameter(
                    "{field}", "string", "the value of a field of the key, as text; one for each field"
                ),
                query_parameter("metrics", "string", "only these, separated by commas"),
                query_parameter("timeout_ms", "integer", "how long to wait before a 504"),
            ]
        },
    )
    async def key_values(stream: str, request: Request) -> Response:
        """The metrics of a key as they are now: what a duplicate with its fields would be answered.

        Each parameter but `metrics`, `at` and `timeout_ms` is a field of the key. Null, and fields of these
        names, go by POST.
        """
        scoring.view(stream)
        asked, timeout_ms = _asked_by_url(request.scope["query_string"], settings.timeout_ms)
        try:
            (found,) = await scoring.values(stream, asked, timeout_ms)
        except QueryRefusedError as error:
            raise _of_url(error) from None
        return _answer(found)

    @page(response_model=list[KeyValues], openapi_extra=body_of(ValueQuery))
    async def values_of_keys(stream: str, request: Request) -> Response:
        """The metrics of several keys, in their order. One key that cannot be answered refuses the request."""
        timeout_ms = settings.timeout_ms
        for name, value in pairs_of(request.scope["query_string"]):
            if name != "timeout_ms":
                raise wrong_parameter(name[:80], "there is no such parameter; this route takes timeout_ms")
            timeout_ms = timeout_of(value)
        scoring.view(stream)
        keys, metrics = checked(_query, await read_json(request, decode_json))
        if len(keys) > settings.batch_limit_events:
            detail = (
                f"{len(keys)} keys; at most {settings.batch_limit_events} are taken: send several requests"
            )
            raise refusal(413, detail, [(("keys",), detail)])
        try:
            found = await scoring.values(stream, ValueRequest(keys, metrics), timeout_ms)
        except QueryRefusedError as error:
            raise _of_body(error) from None
        return _answer(found)

    return page.by_name


def _asked_by_url(query: bytes, timeout_ms: int) -> tuple[ValueRequest, int]:
    """Read the fields of a key, its metrics and the time limit from the query of a URL. Raises ProblemError.

    timeout_ms: the time limit if the query names none.
    """
    texts: dict[str, str] = {}
    metrics = None
    for name, value in pairs_of(query, _FIELDS_MAX):
        if name in texts or (name == "metrics" and metrics is not None):
            raise wrong_parameter(name[:80], "it is there twice")
        if name == "at":
            raise wrong_parameter(name, "it is kept for a time; a field of this name goes by POST")
        if name == "metrics":
            metrics = metrics_of(value)
        elif name == "timeout_ms":
            timeout_ms = timeout_of(value)
        else:
            texts[name] = value
    return ValueRequest([texts], metrics, are_texts=True), timeout_ms


def _query(body: object) -> tuple[Sequence[Any], Sequence[str] | None]:
    table = Table(body, (), ("keys", "metrics"))
    keys, metrics = table.required("keys", "a list of keys"), table.get("metrics")
    if not isinstance(keys, list):
        raise DefinitionError(
            ("keys",), "a list of keys belongs here, each an object of fields and their values"
        )
    if metrics is not None and not (isinstance(metrics, list) and all(type(each) is str for each in metrics)):
        raise DefinitionError(("metrics",), "a list of names of metrics belongs here")
    return keys, metrics


def _of_body(error: QueryRefusedError) -> ProblemError:
    places = [
        (("keys", *each.loc) if isinstance(each.loc[0], int) else each.loc, each.msg) for each in error.errors
    ]
    return refusal(422, str(error), places)


def _of_url(error: QueryRefusedError) -> ProblemError:
    """Return the problem of a refused query whose only key is in the URL: places name parameters of the URL."""
    places = [(("query", *(part for part in each.loc if part != 0)), each.msg) for each in error.errors]
    shown = "; ".join(": ".join([*map(str, loc[1:]), message]) for loc, message in places)
    return refusal(422, shown, places)


def _answer(found: object) -> Response:
    return Response(_encode(found), media_type="application/json")
