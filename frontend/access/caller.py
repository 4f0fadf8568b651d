"""Who asks, in the scope of a request."""

from collections.abc import MutableMapping
from typing import Any

from frontend.problems import ProblemError
from railgun.access.guard import UNAUTHENTICATED, Caller
from railgun.registry.origin import Origin

_CALLER = "railgun.caller"


def set_caller(scope: MutableMapping[str, Any], caller: Caller) -> None:
    """Note who asks, once that is decided."""
    scope[_CALLER] = caller


def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """Who asks; UNAUTHENTICATED where the request was not authorized."""
    found = scope.get(_CALLER, UNAUTHENTICATED)
    assert isinstance(found, Caller)
    return found


def origin_of(scope: MutableMapping[str, Any]) -> Origin:
    """Who asks for a change, and from where: behind a proxy, from the proxy's address."""
    client = scope.get("client")
    return Origin(caller_of(scope).name, client[0] if client else None)


def for_caller_of(scope: MutableMapping[str, Any], error: ProblemError) -> ProblemError:
    """A problem as the caller of a request may be told of it."""
    return error.for_caller(caller_of(scope))
