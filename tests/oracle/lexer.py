"""Query text cut into tokens."""

import re
from dataclasses import dataclass

from tests.oracle.errors import QueryRefused

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<exponent>[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]+)"
    r"|(?P<point>[0-9]+\.[0-9]+)"
    r"|(?P<integer>[0-9]+)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<string>'(?:[^']|'')*')"
    r"|(?P<symbol><>|!=|<=|>=|\|\||[-+*/%=<>(),])"
)

KEYWORDS = frozenset(
    {
        *("SELECT", "FROM", "WHERE", "GROUP", "BY", "OVER", "AS", "DISTINCT"),
        *("SLIDING", "TUMBLING", "INFINITE", "DELAYED"),
        *("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"),
        *("CASE", "WHEN", "THEN", "ELSE", "END"),
    }
)


@dataclass(frozen=True)
class Token:
    """`kind`: keyword (in upper case), name, integer, point, exponent, string (unquoted), symbol, end.

    `spelling` is how a keyword is written, for where it is a name after all.
    """

    kind: str
    text: str
    position: int
    spelling: str = ""


def tokens(text: str) -> list[Token]:
    """Every token of the text and an `end`; raises QueryRefused."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind = match.lastgroup if match else None
        if match is None or kind is None:
            raise QueryRefused(f"at {position}: unexpected {text[position]!r}")
        token = _token(kind, match[0], position)
        if token is not None:
            if token.kind in ("name", "keyword") and found and _glued(found[-1], position, text):
                raise QueryRefused(f"at {position}: a number runs into a name")
            found.append(token)
        position = match.end()
    return [*found, Token("end", "", position)]


def _glued(before: Token, position: int, text: str) -> bool:
    return before.kind in ("integer", "point", "exponent") and text[position - 1].isalnum()


def _token(kind: str, text: str, position: int) -> Token | None:
    if kind == "space":
        return None
    if kind == "name" and text.upper() in KEYWORDS:
        return Token("keyword", text.upper(), position, text)
    if kind == "string":
        return Token("string", text[1:-1].replace("''", "'"), position)
    if text == "!=":
        return Token("symbol", "<>", position)
    return Token(kind, text, position)
