"""Makes tokens and reads their descriptions from the configuration. Only hashes are kept, never a token's text."""

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from railgun.access.scopes import ScopeError, check_scope
from railgun.language.errors import nearest

PREFIX = "railgun_"
"""The beginning of every token made here. Secret scanners find lost tokens by it."""
HASHES_MAX = 2
_RANDOM_BYTES = 32
_RATE_MAX = 1_000_000_000
_KEYS = ("name", "sha256", "scopes", "expires", "limit_per_s")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_HASH = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


class TokenError(ValueError):
    """A description of tokens cannot be used. The message never repeats the value of `sha256`.

    place: the keys that lead to the error, as in "0.sha256"; "" for the whole list.
    """

    def __init__(self, place: str, message: str) -> None:
        self.place, self.message = place, message
        super().__init__(place, message)

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is configured.

    name: the owner's name, for logs.
    hashes: the SHA-256 of its text, 32 bytes. There are two while the token is rotated.
    expires_s: in seconds since the epoch; None: never.  limit_per_s: events per second; None: no limit.
    """

    name: str
    hashes: tuple[bytes, ...]
    scopes: tuple[str, ...]
    expires_s: float | None = None
    limit_per_s: int | None = None


def new_token() -> str:
    """Makes a token of 256 random bits, which nobody can guess."""
    return PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_of(token: bytes) -> bytes:
    """Returns the 32 bytes by which a token is looked up."""
    return hashlib.sha256(token).digest()


def check_name(name: object) -> str:
    """Returns a token's name after a check. Raises ValueError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("a name of letters, digits, dots, dashes and underscores belongs here, 63 at most")
    return name


def read_tokens(tables: object) -> tuple[Token, ...]:
    """Reads tokens from a list of TOML tables. Raises TokenError."""
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise TokenError("", "tables belong here, as in [[http.tokens]]; `railgun token new` prints one")
    found = tuple(_token(str(place), table) for place, table in enumerate(tables))
    check_distinct(found)
    return found


def check_distinct(tokens: Sequence[Token]) -> None:
    """Raises TokenError if two tokens have the same name or the same hash."""
    _check_distinct("name", ((each.name, each.name) for each in tokens))
    _check_distinct("sha256", ((each.name, one) for each in tokens for one in each.hashes))


def _token(place: str, table: Mapping[str, Any]) -> Token:
    for key in table:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            hint = f"did you mean {near}?" if near else f"known here: {', '.join(_KEYS)}"
            raise TokenError(f"{place}.{key[:40]}", f"unknown key; {hint}")
    for key in _KEYS[:3]:
        if key not in table:
            raise TokenError(
                f"{place}.{key}", "it is missing; `railgun token new` prints all that a token needs"
            )
    try:
        name = check_name(table["name"])
    except ValueError as error:
        raise TokenError(f"{place}.name", str(error)) from None
    return Token(
        name,
        _hashes(f"{place}.sha256", table["sha256"]),
        _scopes(f"{place}.scopes", table["scopes"]),
        _expires(f"{place}.expires", table.get("expires")),
        _limit(f"{place}.limit_per_s", table.get("limit_per_s")),
    )


def _hashes(place: str, value: object) -> tuple[bytes, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= HASHES_MAX:
        raise TokenError(
            place, 'a list of one hash belongs here, as in ["9f86…"], or of two while it is rotated'
        )
    for each in value:
        if not isinstance(each, str) or not _HASH.fullmatch(each):
            raise TokenError(
                place,
                "64 hexadecimal digits belong here, the SHA-256 of the token, as `railgun token new` prints them",
            )
    return tuple(bytes.fromhex(each) for each in value)


def _scopes(place: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise TokenError(place, 'a list of scopes belongs here, as in ["read:payments", "score:payments"]')
    for each in value:
        try:
            check_scope(each)
        except ScopeError as error:
            raise TokenError(place, str(error)) from None
    return tuple(dict.fromkeys(value))


def _expires(place: str, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TokenError(
            place, "a time with its offset belongs here, without quotes, as in 2027-01-31T00:00:00Z"
        )
    try:
        return value.astimezone(UTC).timestamp()
    except OverflowError:
        raise TokenError(place, "no calendar has this time in UTC; write an earlier one") from None


def _limit(place: str, value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _RATE_MAX:
        raise TokenError(place, f"events per second belong here, a whole number in 1..{_RATE_MAX}")
    return value


def _check_distinct(key: str, values: Iterable[tuple[str, object]]) -> None:
    """Raises TokenError if a value occurs twice. values: (the name of its token, the value)."""
    owners: dict[object, str] = {}
    for name, value in values:
        if value in owners:
            of = f"of {owners[value]} and of {name}" if owners[value] != name else f"twice of {name}"
            raise TokenError("", f"one {key} is there {of}; each token has its own")
        owners[value] = name
