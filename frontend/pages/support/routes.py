"""Answers `GET /v1/support` with a support bundle: a ZIP file, made anew for each who asks."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import Depends, Request, Response

from frontend.access.caller import caller_of
from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.pages.requests import PROBLEMS, no_parameters
from frontend.pages.support.archive import Part, archive
from frontend.problems import refusal

_TYPE = "application/zip"
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "a ZIP file; `about.json` in it says what is missing, and why",
        "content": {_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    },
    429: {**PROBLEMS[503], "description": "another one is being made"},
    **{status: PROBLEMS[status] for status in (401, 403, 422)},
}


def bundles(
    parts: Sequence[Part], about: Callable[[], Mapping[str, Any]], name: str
) -> dict[str, PageHandler]:
    """Return the handler of this route, by its name.

    about: returns what `about.json` says; it may block.  name: of this server.
    """
    page, one = PageHandlers(responses=_ANSWERS, dependencies=[Depends(no_parameters)]), asyncio.Lock()

    @page(response_class=Response)
    async def bundle(request: Request) -> Response:
        """A support bundle: versions, settings without secrets, status, cluster, figures, changes."""
        if one.locked():
            raise refusal(
                429, "another bundle is being made, and each takes memory; ask again in some seconds"
            )
        async with one:
            made = await archive(parts, await asyncio.to_thread(about), caller_of(request.scope))
        file = f"railgun-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.zip"
        return Response(
            made, media_type=_TYPE, headers={"content-disposition": f'attachment; filename="{file}"'}
        )

    return page.by_name
