"""Logs the actions of callers that the catalogue does not record, and refused requests."""

import logging
from collections.abc import MutableMapping
from typing import Any

from frontend.access.caller import origin_of
from railgun.access.guard import AccessError
from railgun.access.refusals import UNAUTHORIZED, refusals
from railgun.access.routes import Route
from railgun.logs.setup import fields

_log = logging.getLogger("railgun.audit")
_SAFE = "GET"
_CHANGING, _INSPECTING = ("define:", "operate"), "inspect:"


def note(scope: MutableMapping[str, Any], what: str) -> None:
    """Log an action that was done for the caller of a request. what: the action in words."""
    origin = origin_of(scope)
    _log.info(what, extra=fields(who=origin.who, client=origin.address))


def note_refusal(scope: MutableMapping[str, Any], error: AccessError, *, is_logged: bool = True) -> None:
    """Count a request that its caller may not make. is_logged: whether to log it too."""
    refusals.note_request(
        error,
        scope["method"],
        scope.get("raw_path") or scope["path"].encode(),
        origin_of(scope).address,
        is_logged=is_logged,
    )


def has_line(error: AccessError, route: Route | None) -> bool:
    """Return whether the log names a refused request.

    It does if the caller is not known, if a change was asked for, or if the values of a key were asked for.
    route: the route of the request; None if it has none.
    """
    if error.status == UNAUTHORIZED:
        return True
    if route is None:
        return False
    scopes = route.needs.scopes
    is_change = route.method != _SAFE and any(each.startswith(_CHANGING) for each in scopes)
    return is_change or any(each.startswith(_INSPECTING) for each in scopes)
