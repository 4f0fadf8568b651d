"""Typed reading of a definition's keys, for TOML and JSON. Errors name the place in the definition."""

from collections.abc import Iterable, Mapping
from typing import Any

from railgun.catalog.errors import DefinitionError, Location, meant
from railgun.language.duration import DurationError, parse_duration

FOREVER = "forever"


class Table:
    """A table of a definition, whose keys are read one by one. Raises DefinitionError, also for unknown keys.

    A key with the value null (JSON) counts as missing.
    """

    def __init__(self, body: object, loc: Location, keys: Iterable[str]) -> None:
        known = frozenset(keys)
        if not isinstance(body, Mapping):
            raise DefinitionError(
                loc, f"a table with {', '.join(sorted(known))} belongs here, not {_describe(body)}"
            )
        self.loc = loc
        self._body = body
        for key in body:
            if key not in known:
                raise DefinitionError((*loc, str(key)[:80]), "unknown key", meant(str(key), known))

    def at(self, key: str) -> Location:
        """Returns the place of a key."""
        return (*self.loc, key)

    def get(self, key: str) -> Any:
        """Returns the unchecked value of a key; None if it is missing."""
        return self._body.get(key)

    def has(self, key: str) -> bool:
        """Returns whether a key is there, be it with a null."""
        return key in self._body

    def required(self, key: str, what: str) -> Any:
        """Returns the value of a key that must be present. what: describes the value, for the hint."""
        value = self._body.get(key)
        if value is None:
            raise DefinitionError(self.loc, f"the key {key} is missing", f"it holds {what}")
        return value

    def text(self, key: str) -> str | None:
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise DefinitionError(self.at(key), f"text belongs here, not {_describe(value)}")
        return value

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        value = self.text(key)
        if value is None:
            return default
        if value not in choices:
            raise DefinitionError(self.at(key), f"no {value[:80]!r} here", meant(value, choices))
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise DefinitionError(self.at(key), f"true or false belongs here, not {_describe(value)}")
        return value

    def integer(self, key: str, default: int, least: int, greatest: int) -> int:
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise DefinitionError(self.at(key), f"a whole number belongs here, not {_describe(value)}")
        if not least <= value <= greatest:
            raise DefinitionError(self.at(key), f"{value} is not in {least}..{greatest}")
        return value

    def duration_ms(self, key: str) -> int | None:
        """Returns a duration in ms; None if the key is missing."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise DefinitionError(
                self.at(key), f"a duration is text, not {_describe(value)}", 'as in "250ms", "5s", "7d"'
            )
        try:
            return parse_duration(value)
        except DurationError as error:
            raise DefinitionError(self.at(key), str(error)) from None

    def duration_or_forever_ms(self, key: str, default: int) -> int | None:
        """Returns a duration in ms; None means for ever."""
        if self.get(key) == FOREVER:
            return None
        value = self.duration_ms(key)
        return default if value is None else value

    def names(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Returns a list of texts, which must not be empty or have duplicates."""
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise DefinitionError(self.at(key), f"a list of names belongs here, not {_describe(value)}")
        if not value:
            raise DefinitionError(self.at(key), "at least one is needed")
        if len(set(value)) != len(value):
            raise DefinitionError(self.at(key), "a name stands here twice")
        return tuple(value)


def _describe(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    if isinstance(value, Mapping):
        return "a table"
    return names.get(type(value), type(value).__name__)
