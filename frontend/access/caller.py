"""Keeps the caller of a request in the request's ASGI scope."""

from collections.abc import MutableMapping
from typing import Any

from frontend.problems import ProblemError
from railgun.access.guard import UNAUTHENTICATED, Caller
from railgun.registry.origin import Origin

_CALLER = "railgun.caller"


def set_caller(scope: MutableMapping[str, Any], caller: Caller) -> None:
    """Note the caller of a request, once it is known."""
    scope[_CALLER] = caller


def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """Return the caller of a request; UNAUTHENTICATED if the request was not authorized."""
    found = scope.get(_CALLER, UNAUTHENTICATED)
    assert isinstance(found, Caller)
    return found


def origin_of(scope: MutableMapping[str, Any]) -> Origin:
    """Return the name and the address of a request's caller. Behind a proxy, the address is the proxy's."""
    client = scope.get("client")
    return Origin(caller_of(scope).name, client[0] if client else None)


def for_caller_of(scope: MutableMapping[str, Any], error: ProblemError) -> ProblemError:
    """Return a problem in the words that the caller of a request may read."""
    return error.for_caller(caller_of(scope))
