"""Lines of the process log about changes that the catalogue does not keep: those refused, and those of the cluster."""

import logging
from collections.abc import MutableMapping
from typing import Any

from frontend.access.caller import origin_of
from railgun.access.guard import AccessError
from railgun.access.refusals import refusals
from railgun.access.routes import Route
from railgun.logs.setup import fields

_log = logging.getLogger("railgun.audit")
_SAFE = "GET"
_CHANGING = ("define:", "operate")
_PATH_MAX = 200


def note(scope: MutableMapping[str, Any], what: str) -> None:
    """Note what was done for the caller of a request."""
    origin = origin_of(scope)
    _log.info(what, extra=fields(who=origin.who, client=origin.address))


def note_refusal(scope: MutableMapping[str, Any], error: AccessError) -> None:
    """Note that a request for a change was refused for who asks."""
    # As it was sent: percent-encoded, without what a terminal could take for a command.
    path = scope.get("raw_path") or scope["path"].encode()
    asked = f"{scope['method']} {path.decode('ascii', 'backslashreplace')[:_PATH_MAX]}"
    refusals.note(
        error.detail,
        fields(request=asked, status=error.status, who=error.who, client=origin_of(scope).address),
    )


def is_change(route: Route | None) -> bool:
    """Whether a route changes what is registered, or the cluster."""
    return (
        route is not None
        and route.method != _SAFE
        and any(each.startswith(_CHANGING) for each in route.needs.scopes)
    )
