"""Answers `GET /v1/streams/{stream}/metrics/{name}/answered` with what a metric was answered lately."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Depends

from frontend.backend.catalogue import StreamCatalogue
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.registry.models import AnsweredMetric
from frontend.pages.registry.routes import named_metric
from frontend.pages.requests import PROBLEMS, no_parameters

Lately = Callable[[str, str], Mapping[str, Any] | None]
"""Returns what a metric of a stream was answered lately, as `AnsweredMetric` has it; None if it is not registered."""


def answered(
    catalogue: StreamCatalogue, lately: Lately, front_end: Mapping[str, Any]
) -> dict[str, PageHandler]:
    """Return the handler of this route, by its name. front_end: name and start of this process."""
    page = PageHandlers(responses=PROBLEMS, dependencies=[Depends(no_parameters)])

    @page(response_model=AnsweredMetric)
    async def show_answered(stream: str, name: str) -> dict[str, Any]:
        """What a metric was answered lately, from some of the last replies: nulls, quantiles, a histogram."""
        found = lately(stream, name)
        if found is None:
            # It says what there is in its place.
            named_metric(stream, name, await catalogue.metrics(stream))
            found = lately(stream, name)
        assert found is not None
        return {"name": name, "front_end": front_end, **found}

    return page.by_name
