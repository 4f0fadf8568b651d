"""What is in a support bundle of this server. No file of it has a secret, or a value of an event but the time of a
task's newest one.
"""

import asyncio
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from importlib.metadata import distributions
from typing import Any

import msgspec

import railgun
from frontend.backend.backend import Backend
from frontend.pages.support.archive import Part, as_json
from railgun.access.guard import Caller
from railgun.access.scopes import Scopes
from railgun.catalog.stream_reading import definition_to_json

CHANGES = 1_000
"""How many changes of streams and metrics are in it, the newest."""


def about(front_end: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server says of itself, with its name and start. It reads the names of installed packages."""
    packages = {str(each.metadata["Name"]): each.version for each in distributions()}
    return {
        "made_ms": time.time_ns() // 1_000_000,
        "front_end": dict(front_end),
        "release": railgun.__version__,
        "python": sys.version,
        "platform": platform.platform(),
        "packages": dict(sorted(packages.items())),
    }


def bundle_parts(
    backend: Backend,
    live: Callable[[Scopes], Awaitable[bytes]],
    metrics: Callable[[], bytes] | None,
    settings: Mapping[str, Any],
) -> list[Part]:
    """Return the parts.

    live: the answer of `/v1/live`.  metrics: returns the text of `/metrics`, and may block.
    settings: without secrets.
    """

    async def status(caller: Caller) -> bytes:
        return await _json(await backend.catalogue.status())

    async def cluster(caller: Caller) -> bytes | None:
        return None if backend.cluster is None else await _json(await backend.cluster.overview())

    async def streams(caller: Caller) -> bytes:
        own = [each for each in await backend.catalogue.streams() if caller.scopes.may_read(each.name)]
        return await _json(
            [
                {
                    **definition_to_json(each),
                    "metrics": [asdict(metric) for metric in await backend.catalogue.metrics(each.name)],
                }
                for each in own
            ]
        )

    async def changes(caller: Caller) -> bytes:
        return await _json(await backend.catalogue.change_log(CHANGES, None))

    async def figures(caller: Caller) -> bytes:
        return await _json(msgspec.Raw(await live(caller.scopes)))

    async def measured(caller: Caller) -> bytes | None:
        return None if metrics is None else await asyncio.to_thread(metrics)

    async def shown(caller: Caller) -> bytes:
        return await _json(settings)

    return [
        Part("settings.json", shown),
        Part("status.json", status),
        Part("cluster.json", cluster),
        Part("streams.json", streams),
        Part("live.json", figures),
        Part("metrics.txt", measured),
        Part("changes.json", changes),
    ]


async def _json(content: object) -> bytes:
    """Return JSON that people read. It may be long, and events do not wait for it."""
    return await asyncio.to_thread(as_json, content)
