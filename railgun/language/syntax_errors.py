"""The parser's own failures in the words of the language: what stands there, what could have."""

import re

from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from railgun.language.errors import QueryError, nearest, position_of

# What every operand may begin with; where all of these could stand, one word says it.
_OPERAND = frozenset({"NAME", "QUOTED", "INTEGER", "DECIMAL", "DOUBLE", "STRING", "TRUE", "FALSE", "NULL"})
_OPERAND_START = _OPERAND | {"_OPEN", "MINUS", "CASE", "NOT"}
_SAID = {
    "NAME": "a name",
    "QUOTED": "a name",
    "INTEGER": "a whole number",
    "STRING": "a string in single quotes",
    "UNIT": "a unit of time (SECONDS, MINUTES, HOURS, DAYS ...)",
    "COMPARISON": "a comparison",
    "STAR": "'*'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "SLASH": "'/'",
    "PERCENT": "'%'",
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "_COMMA": "','",
    "$END": "the end",
}
_UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ARITHMETIC = {"PLUS", "MINUS", "SLASH", "PERCENT", "STAR"}


def unexpected_token(text: str, error: UnexpectedToken) -> QueryError:
    """The error for a word or sign that cannot stand where it does, or for text that ends too early."""
    token = error.token
    accepted = set(error.accepts) if isinstance(error.accepts, set) else set(error.expected)
    if token.type == "$END":
        return QueryError("the query ends too early", position_of(text, len(text)), _expected(accepted))
    offset = token.start_pos or 0
    return QueryError(
        f"unexpected {str(token)[:80]!r}",
        position_of(text, offset),
        _expected(accepted),
        _meant(str(token), accepted),
    )


def unexpected_character(text: str, error: UnexpectedCharacters) -> QueryError:
    """The error for a character that begins nothing."""
    offset = error.pos_in_stream or 0
    character = text[offset]
    if character in "'\"":
        closing = "a string in single quotes" if character == "'" else "a name in double quotes"
        return QueryError(f"{closing} is never closed", position_of(text, offset))
    return QueryError(f"unexpected character {character!r}", position_of(text, offset))


def _keywords(accepted: set[str]) -> list[str]:
    words = [name.lstrip("_") for name in accepted if name not in _SAID and name not in _OPERAND_START]
    return words + [name for name in ("NOT", "CASE") if name in accepted]


def _expected(accepted: set[str]) -> tuple[str, ...]:
    """What could stand there, most telling first; arithmetic goes without saying beside anything else."""
    if accepted >= _OPERAND:
        return tuple(sorted({"a value", *_said(accepted - _OPERAND_START)}))
    rest = accepted - _ARITHMETIC
    return tuple(sorted(_said(rest or accepted)))


def _said(accepted: set[str]) -> set[str]:
    return {_SAID.get(name, name.lstrip("_")) for name in accepted if name != "_SEMICOLON"}


def _meant(found: str, accepted: set[str]) -> str | None:
    if not _WORD.fullmatch(found):
        return "equality is a single =" if found == "=" and accepted >= _OPERAND else None
    words = _UNITS if "UNIT" in accepted else _keywords(accepted)
    near = nearest(found, words)
    return f"did you mean {near}?" if near else None
