"""Scopes: what a token may do, and what a route needs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from railgun.language.errors import nearest

OF_STREAMS = ("read", "inspect", "score", "define")
"""Kinds of scopes that name a stream, as in `read:payments`, or all of them, as in `read:*`."""
OF_THE_SERVICE = ("metrics", "operate")
EVERYTHING = "*"
IN_BODY = "{body}"
"""The stream's place in what a route needs where the body names the stream."""

_INCLUDED = {"define": "read", "operate": "metrics"}
_SCOPE = re.compile(r"([a-z]+):(\*|[A-Za-z][A-Za-z0-9_]{0,62})", re.ASCII)
_OPEN_IN_TABLE = re.compile(r"([a-z]+):\{[a-z]+\}", re.ASCII)


class ScopeError(ValueError):
    """A text that is no scope; says what may be meant."""


def check_scope(text: str) -> None:
    """Raise ScopeError unless a text is a scope."""
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
    """The scope, whole, that a mistyped one most likely stands for; None where none is near."""
    word, _, stream = text.partition(":")
    near = nearest(word, (*OF_STREAMS, *OF_THE_SERVICE))
    if near not in OF_STREAMS:
        return near
    whole = f"{near}:{stream}"
    return whole if _SCOPE.fullmatch(whole) else f"{near}:STREAM"


class Scopes:
    """The scopes of a caller. written: as they were given."""

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
        """Whether a scope is among them, by itself or in a wider one."""
        held = self._held
        if scope in held or EVERYTHING in held:
            return True
        kind, colon, _ = scope.partition(":")
        return bool(colon) and f"{kind}:*" in held

    def have_some(self, kind: str) -> bool:
        """Whether there is a scope of a kind for any stream."""
        return EVERYTHING in self._held or any(each.startswith(f"{kind}:") for each in self._held)

    def may_read(self, stream: str) -> bool:
        """Whether the stream's name may be shown."""
        return self.have(f"read:{stream}")


@dataclass(frozen=True, slots=True)
class Need:
    """What a request for a route needs. Without scopes and not open: any token.

    scopes: all of them; a part in braces stands for a part of the path.  is_open: nothing, not even a token.
    is_probe: open under any Host: load balancers ask by address and by name.
    """

    scopes: tuple[str, ...] = ()
    is_open: bool = False
    is_probe: bool = False

    def missing(self, scopes: Scopes, parameters: Mapping[str, str]) -> str | None:
        """The first scope that a caller lacks. parameters: of the path.

        Where the body names the stream, any stream will do: whoever reads the body checks the scope again.
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
    """What a row of a table needs, as in `needs("define:{stream}", "operate")`. Raises ValueError."""
    for each in scopes:
        match = _OPEN_IN_TABLE.fullmatch(each)
        if each not in OF_THE_SERVICE and (match is None or match[1] not in OF_STREAMS):
            raise ValueError(f"{each}: no scope of a route")
    return Need(scopes)
