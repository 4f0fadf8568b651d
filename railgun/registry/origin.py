"""The origin of a change of the catalogue: who made it, from where, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked for a change.

    who: the name of their token; None if there are no tokens, or if it was no request over HTTP.
    address: the address of the client; None if it was no request over HTTP.
    """

    who: str | None = None
    address: str | None = None


UNNAMED = Origin()
"""The origin of changes by commands and programs that write by themselves."""


@dataclass(frozen=True, slots=True)
class Made:
    """Who made an entry of the catalogue, and when. at_ms: in ms since 1970, by the clock of its author."""

    at_ms: int | None = None
    origin: Origin = UNNAMED

    def to_json(self) -> dict[str, Any]:
        """Return the keys for the entry. Those that are null are left out."""
        found = {"at_ms": self.at_ms, "who": self.origin.who, "from": self.origin.address}
        return {key: value for key, value in found.items() if value is not None}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Read the keys of an entry. Entries of earlier releases have none of them."""
        return cls(entry.get("at_ms"), Origin(entry.get("who"), entry.get("from")))
