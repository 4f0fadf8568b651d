"""Collects the functions that answer requests for pages, by the names that `frontend/http/routes.py` has for them."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class PageHandler(NamedTuple):
    """A function that answers a route. described: further arguments of the framework's `add_api_route`."""

    function: Callable[..., Any]
    described: dict[str, Any]


class PageHandlers:
    """A decorator that collects functions. described: arguments of `add_api_route` for all of them."""

    def __init__(self, **described: Any) -> None:
        self.by_name: dict[str, PageHandler] = {}
        self._described = described

    def __call__(self, **described: Any) -> Callable[[_Function], _Function]:
        def collect(function: _Function) -> _Function:
            self.by_name[function.__name__] = PageHandler(function, {**self._described, **described})
            return function

        return collect


def query_parameter(name: str, type_: str, description: str) -> dict[str, Any]:
    """Return the description of an optional parameter of the URL, for OpenAPI."""
    schema = {"type": type_}
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
