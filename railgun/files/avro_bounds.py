"""Refuses Avro schemas by which few bytes make the decoder fail beyond repair: it nests and repeats without a limit."""

from collections.abc import Mapping
from typing import Any

# The decoder calls itself for each level; some thousand end the process.
_DEPTH_MAX = 100


class UnboundedSchemaError(ValueError):
    """Values of a schema nest or repeat without a bound. The message says why."""


def check_bounds(schema: Any, named: Mapping[str, Any]) -> None:
    """Raise UnboundedSchemaError if values of a parsed schema nest deeper than 100 levels, as those of a type that
    contains itself may, or if an array has elements of no bytes, of which a few bytes announce billions.

    named: the types that the schema names.
    """
    _Types(named).depth(schema, ())


def check_file_bounds(schema: Any, named: Mapping[str, Any]) -> None:
    """Raise UnboundedSchemaError for the same of the records of a file, and if these have no bytes: a block of it
    says how many it has.
    """
    types = _Types(named)
    types.depth(schema, ())
    if types.is_empty(schema):
        raise UnboundedSchemaError("its records have no bytes; such events are not read")


class _Types:
    """What is known of named types. Each is looked at once."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._depths: dict[str, int] = {}
        self._empty: dict[str, bool] = {}

    def depth(self, type_: Any, above: tuple[str, ...]) -> int:
        """Return how many levels values of a type have. above: the named types within which it is."""
        name, within = self._resolved(type_)
        if name in above:
            raise UnboundedSchemaError(f"the type {name} contains itself; such events are not read")
        known = self._depths.get(name)
        if known is None:
            inner = _inner(within)
            if len(above) > _DEPTH_MAX:
                raise _too_deep()
            own = (*above, name) if name else above
            known = 1 + max((self.depth(each, own) for each in inner), default=0)
            if known > _DEPTH_MAX:
                raise _too_deep()
            if _kind(within) == "array" and self.is_empty(within["items"]):
                raise UnboundedSchemaError(
                    "it has an array whose elements have no bytes; such events are not read"
                )
            if name:
                self._depths[name] = known
        return known

    def is_empty(self, type_: Any) -> bool:
        """Return whether values of a type have no bytes."""
        name, within = self._resolved(type_)
        known = self._empty.get(name)
        if known is None:
            kind = _kind(within)
            known = (
                kind == "null"
                or (kind == "fixed" and within["size"] == 0)
                or (kind in ("record", "error") and all(map(self.is_empty, _inner(within))))
            )
            if name:
                self._empty[name] = known
        return known

    def _resolved(self, type_: Any) -> tuple[str, Any]:
        """Return (the full name of a named type, else ""; the type that a name stands for)."""
        if isinstance(type_, str) and type_ in self._named:
            return type_, self._named[type_]
        if isinstance(type_, Mapping) and "name" in type_:
            return str(type_["name"]), type_
        return "", type_


def _too_deep() -> UnboundedSchemaError:
    return UnboundedSchemaError(f"its values have more than {_DEPTH_MAX} levels; such events are not read")


def _kind(type_: Any) -> Any:
    return type_.get("type") if isinstance(type_, Mapping) else type_


def _inner(type_: Any) -> list[Any]:
    """Return the types that a type is made of."""
    if isinstance(type_, list):
        return type_
    match _kind(type_):
        case "record" | "error":
            return [each["type"] for each in type_["fields"]]
        case "array":
            return [type_["items"]]
        case "map":
            return [type_["values"]]
        case dict() | list() as wrapped:
            return [wrapped]
    return []
