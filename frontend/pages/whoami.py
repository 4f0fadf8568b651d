"""Answers `GET /v1/whoami` with the name and the rights of the caller, and with whose topics the server reads."""

from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from pydantic import BaseModel, Field

from frontend.access.caller import caller_of
from frontend.pages.handlers import PageHandler, PageHandlers


class WhoAmI(BaseModel):
    """Who asks, and what they may do; and the cluster of the server that was asked."""

    name: str | None = Field(
        description="of the token; null where the server has none, and anybody may do anything"
    )
    scopes: list[str]
    expires: str | None = Field(description="when the token ends, in UTC; null: never")
    limit_per_s: int | None = Field(
        description="how many events per second it may send; null: as many as come"
    )
    topic_prefix: str | None = Field(
        description="of the topics of the server's cluster; null: it has no broker, and reads no topics"
    )


def callers(topic_prefix: str | None) -> dict[str, PageHandler]:
    """Return the handler of this route, by its name. topic_prefix: that of the cluster; None without a broker."""
    page = PageHandlers()

    @page(response_model=WhoAmI)
    async def whoami(request: Request) -> dict[str, Any]:
        """What this token may do."""
        caller = caller_of(request.scope)
        ends = None if caller.expires_s is None else datetime.fromtimestamp(caller.expires_s, UTC)
        return {
            "name": caller.name,
            "scopes": list(caller.scopes.written),
            "expires": None if ends is None else ends.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "limit_per_s": caller.limit_per_s,
            "topic_prefix": topic_prefix,
        }

    return page.by_name
