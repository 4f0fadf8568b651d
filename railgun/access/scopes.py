"""Scopes: the rights that a token has and a route needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from railgun.language.errors import nearest

OF_STREAMS = ("read", "inspect", "score", "define")
"""The kinds of scopes that name one stream, as in `read:payments`, or all streams, as in `read:*`."""
OF_THE_SERVICE = ("metrics", "operate")
EVERYTHING = "*"
IN_BODY = "{body}"
"""Stands for the stream in the scope of a route whose request body names the stream."""

_INCLUDED = {"define": "read", "operate": "metrics"}
_SCOPE = re.compile(r"([a-z]+):(\*|[A-Za-z][A-Za-z0-9_]{0,62})", re.ASCII)
_OPEN_IN_TABLE = re.compile(r"([a-z]+):\{[a-z]+\}", re.ASCII)


class ScopeError(ValueError):
    """A text is not a scope. The message suggests one that may be meant."""


def check_scope(text: str) -> None:
    """Raises ScopeError unless a text is a scope."""
    match = _SCOPE.fullmatch(text)
    if text in (*OF_THE_SERVICE, EVERYTHING) or (match is not None and match[1] in OF_STREAMS):
        return
    word = text.partition(":")[0]
    if word in OF_STREAMS:
        raise ScopeError(f"{text[:80]!r} names no stream; write {word}:STREAM, or {word}:* for all")
    if word in OF_THE_SERVICE:
        raise ScopeError(f"{text[:80]!r} is no scope; did you mean {word}?")
    near = _meant(text)
    known = ", ".join((*(f"{each}:STREAM" for each in OF_STREAMS), *OF_THE_SERVICE, EVERYTHING))
    raise ScopeError(
        f"{text[:80]!r} is no scope; " + (f"did you mean {near}?" if near else f"there are {known}")
    )


def _meant(text: str) -> str | None:
    """Returns the whole scope that a mistyped text most likely stands for, or None if no scope is similar."""
    word, _, stream = text.partition(":")
    near = nearest(word, (*OF_STREAMS, *OF_THE_SERVICE))
    if near not in OF_STREAMS:
        return near
    whole = f"{near}:{stream}"
    return whole if _SCOPE.fullmatch(whole) else f"{near}:STREAM"


class Scopes:
    """The scopes of a caller. written: the scopes as they were configured, without included ones."""

    __slots__ = ("_held", "written")

    def __init__(self, written: Iterable[str] = ()) -> None:
        self.written = tuple(written)
        held = set(self.written)
        for scope in self.written:
            kind, colon, stream = scope.partition(":")
            if kind in _INCLUDED:
                held.add(f"{_INCLUDED[kind]}{colon}{stream}")
        self._held = frozenset(held)

    def have(self, scope: str) -> bool:
        """True if a scope is among them, by itself or as part of a wider one."""
        held = self._held
        if scope in held or EVERYTHING in held:
            return True
        kind, colon, _ = scope.partition(":")
        return bool(colon) and f"{kind}:*" in held

    def have_some(self, kind: str) -> bool:
        """True if there is a scope of this kind for at least one stream."""
        return EVERYTHING in self._held or any(each.startswith(f"{kind}:") for each in self._held)

    def may_read(self, stream: str) -> bool:
        """True if the caller may see the stream's name."""
        return self.have(f"read:{stream}")


@dataclass(frozen=True, slots=True)
class Need:
    """The rights that a request for a route needs. A route that is not open and lists no scopes needs any valid token.

    scopes: the caller needs all of them. A part in braces stands for a part of the path.
    is_open: True if the route needs no token.
    is_probe: True if the route also answers under any Host, because load balancers ask by address and by name.
    """

    scopes: tuple[str, ...] = ()
    is_open: bool = False
    is_probe: bool = False

    def missing(self, scopes: Scopes, parameters: Mapping[str, str]) -> str | None:
        """Returns the first scope that a caller lacks, or None. parameters: those of the path.

        If the body names the stream, the scope for any stream is enough here. The code that reads the body checks the
        scope of that stream.
        """
        for each in self.scopes:
            kind, _, stream = each.partition(":")
            if stream == IN_BODY:
                if not scopes.have_some(kind):
                    return f"{kind}:STREAM"
            elif not scopes.have(wanted := each.format_map(parameters)):
                return wanted
        return None


OPEN = Need(is_open=True)
PROBE = Need(is_open=True, is_probe=True)
TOKEN = Need()


def needs(*scopes: str) -> Need:
    """Makes the need of a row, as in `needs("define:{stream}", "operate")`. Raises ValueError for other scopes."""
    for each in scopes:
        match = _OPEN_IN_TABLE.fullmatch(each)
        if each not in OF_THE_SERVICE and (match is None or match[1] not in OF_STREAMS):
            raise ValueError(f"{each}: no scope of a route")
    return Need(scopes)
