"""Answers `GET /v1/log` with the changes of streams and metrics, and who made them."""

from typing import Any

import msgspec
from fastapi import Request

from frontend.backend.catalogue import StreamCatalogue
from frontend.pages.handlers import PageHandler, PageHandlers, query_parameter
from frontend.pages.registry.models import ChangeList
from frontend.pages.requests import PROBLEMS
from frontend.url_query import pairs_of, whole_number, wrong_parameter

LIMIT, LIMIT_MAX = 100, 1_000
_PLACE_MAX = (1 << 53) - 1


def change_log(catalogue: StreamCatalogue) -> dict[str, PageHandler]:
    """Return the handler of this route, by its name."""
    page = PageHandlers(responses=PROBLEMS)

    @page(
        response_model=ChangeList,
        openapi_extra={
            "parameters": [
                query_parameter(
                    "limit", "integer", f"how many at most, up to {LIMIT_MAX:,}; without it {LIMIT}"
                ),
                query_parameter(
                    "before",
                    "integer",
                    "only changes of a smaller place: that of the last one of an earlier answer",
                ),
            ]
        },
    )
    async def change_log(request: Request) -> dict[str, Any]:
        """Who changed what: changes of streams and metrics, the newest first."""
        found: dict[str, int] = {}
        for name, value in pairs_of(request.scope["query_string"]):
            if name in found:
                raise wrong_parameter(name, "it is there twice")
            if name == "limit":
                found[name] = whole_number(name, value, LIMIT_MAX)
            elif name == "before":
                found[name] = whole_number(name, value, _PLACE_MAX)
            else:
                raise wrong_parameter(
                    name[:80], "there is no such parameter; this route takes limit and before"
                )
        changes = await catalogue.change_log(found.get("limit", LIMIT), found.get("before"))
        return {"changes": [msgspec.to_builtins(each) for each in changes]}

    return page.by_name
