"""Answers `GET /v1/streams/{stream}/samples` with the last events of a stream and their replies, from memory alone."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import Request
from fastapi.responses import Response

from frontend.pages.handlers import PageHandler, PageHandlers, query_parameter
from frontend.pages.requests import PROBLEMS
from frontend.pages.samples.models import LastEvents
from frontend.problems import UnknownStreamError
from frontend.samples.samples import Samples
from frontend.samples.shown import conditions_of, derived_of, times_of
from frontend.scoring.scoring import Scoring
from frontend.url_query import pairs_of, whole_number, wrong_parameter
from railgun.catalog.catalog import StreamEntry

LIMIT, LIMIT_MAX = 100, 1_000
_NUMBER_MAX = (1 << 53) - 1
_encode = msgspec.json.Encoder().encode


def samples(kept: Samples, scoring: Scoring, front_end: Mapping[str, Any]) -> dict[str, PageHandler]:
    """Return the handler of this route, by its name. front_end: name and start of this process."""
    page = PageHandlers(responses=PROBLEMS)

    @page(
        response_model=LastEvents,
        openapi_extra={
            "parameters": [
                query_parameter(
                    "limit", "integer", f"how many at most, up to {LIMIT_MAX:,}; without it {LIMIT}"
                ),
                query_parameter("after", "integer", "only events with a number above this one"),
            ]
        },
    )
    async def last_events(stream: str, request: Request) -> Response:
        """The last events of a stream with their replies that this front-end keeps, without what is masked."""
        limit, after = _asked(request.scope["query_string"])
        scoring.view(stream)
        entry = kept.entries().get(stream)
        if entry is None:
            raise UnknownStreamError(stream, kept.entries())
        # It takes some milliseconds, for which events need not wait.
        return await asyncio.to_thread(_answer, kept, entry, limit, after, front_end)

    return page.by_name


def _asked(query: bytes) -> tuple[int, int]:
    """Return (limit, after) of a request. Raises ProblemError (422)."""
    found = {"limit": LIMIT, "after": 0}
    seen = set()
    for name, value in pairs_of(query):
        if name not in found:
            raise wrong_parameter(name[:80], "there is no such parameter; this route takes limit and after")
        if name in seen:
            raise wrong_parameter(name, "it is there twice")
        seen.add(name)
        found[name] = whole_number(name, value, LIMIT_MAX if name == "limit" else _NUMBER_MAX)
    return found["limit"], found["after"]


def _answer(
    kept: Samples, entry: StreamEntry, limit: int, after: int, front_end: Mapping[str, Any]
) -> Response:
    mask, (answered, last, events) = kept.masks.of(entry), kept.shown(entry, limit, after)
    body = {
        "front_end": front_end,
        "as_of_ms": time.time_ns() // 1_000_000,
        "kept": kept.limit,
        "last": last,
        "answered": answered,
        "masked": {
            "fields": sorted(mask.fields),
            "metrics": sorted(mask.metrics),
            "texts": not mask.shows_texts,
        },
        "derived": derived_of(entry),
        "times": times_of(entry),
        "conditions": conditions_of(entry),
        "events": events,
    }
    return Response(_encode(body), media_type="application/json")
