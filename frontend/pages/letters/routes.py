"""Answers `GET /v1/streams/{stream}/dead` with the newest dead letters of a stream."""

import re
from collections.abc import Mapping
from typing import Any

from fastapi import Request

from frontend.backend.catalogue import StreamCatalogue
from frontend.backend.letters import LetterKind, LetterRequest
from frontend.pages.handlers import PageHandler, PageHandlers, query_parameter
from frontend.pages.letters.models import Letters
from frontend.pages.requests import PROBLEMS
from frontend.url_query import pairs_of, whole_number, wrong_parameter
from railgun.messaging.transport import TopicPartition

LIMIT, LIMIT_MAX = 50, 500
WITHIN_MS, WITHIN_MS_MAX = 5_000, 30_000
_REASON_MAX = 1_000
_BEFORE_MAX = 1 << 16
_PLACE = re.compile(r"([a-zA-Z0-9._-]{1,249}):([0-9]{1,9}):([0-9]{1,18})", re.ASCII)
_PARAMETERS = {
    "limit": ("integer", f"how many at most, up to {LIMIT_MAX}; without it {LIMIT}"),
    "within_ms": ("integer", f"how long it may read, up to {WITHIN_MS_MAX:,}; without it {WITHIN_MS:,}"),
    "kind": ("string", f"only letters of this kind: {', '.join(LetterKind)}"),
    "reason": ("string", "only letters whose reason has this text; case does not matter"),
    "before": ("string", "only earlier ones: `before` of an earlier answer"),
}


def letters(catalogue: StreamCatalogue) -> dict[str, PageHandler]:
    """Return the handler of this route, by its name."""
    page = PageHandlers(responses=PROBLEMS)

    @page(
        response_model=Letters,
        openapi_extra={"parameters": [query_parameter(name, *said) for name, said in _PARAMETERS.items()]},
    )
    async def dead_letters(stream: str, request: Request) -> dict[str, Any]:
        """The newest dead letters of a stream, as far as they can be read within the bounds."""
        found = await catalogue.dead_letters(stream, _asked(request.scope["query_string"]))
        return {
            "topics": list(found.topics),
            "letters": list(found.letters),
            "read": found.read,
            "stopped": found.stopped,
            "before": None if found.before is None else _written(found.before),
            "masked": found.masked,
        }

    return page.by_name


def _asked(query: bytes) -> LetterRequest:
    found: dict[str, str] = {}
    for name, value in pairs_of(query):
        if name in found:
            raise wrong_parameter(name, "it is there twice")
        if name not in _PARAMETERS:
            raise wrong_parameter(
                name[:80], f"there is no such parameter; this route takes {', '.join(_PARAMETERS)}"
            )
        found[name] = value
    kind, reason, before = (found.get(name) for name in ("kind", "reason", "before"))
    if kind is not None and kind not in list(LetterKind):
        raise wrong_parameter("kind", f"{kind[:40]!r} is none of {', '.join(LetterKind)}")
    if reason is not None and len(reason) > _REASON_MAX:
        raise wrong_parameter(
            "reason", f"a text of {len(reason)} characters; at most {_REASON_MAX} are taken"
        )
    return LetterRequest(
        whole_number("limit", found.get("limit", str(LIMIT)), LIMIT_MAX),
        whole_number("within_ms", found.get("within_ms", str(WITHIN_MS)), WITHIN_MS_MAX),
        None if kind is None else LetterKind(kind),
        reason or None,
        None if before is None else _places(before),
    )


def _written(places: Mapping[TopicPartition, int]) -> str:
    return ",".join(f"{topic}:{partition}:{offset}" for (topic, partition), offset in places.items())


def _places(text: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for word in text.split(",") if len(text) <= _BEFORE_MAX else [""]:
        match = _PLACE.fullmatch(word)
        if match is None:
            raise wrong_parameter("before", "it is not what an earlier answer had as `before`")
        found[TopicPartition(match[1], int(match[2]))] = int(match[3])
    return found
