"""Parses the text of a query or a DERIVE to its syntax tree. Every error is a QueryError in the language's words."""

import dataclasses
import functools
import re
from importlib import resources

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from railgun.language.ast import (
    Between,
    Case,
    Derivation,
    Expression,
    LongLiteral,
    Node,
    Query,
    all_of,
    children,
)
from railgun.language.builder import Builder
from railgun.language.errors import OffsetError, QueryError, nearest, position_of
from railgun.language.limits import DEPTH_LIMIT, SIZE_LIMIT, TEXT_LIMIT_BYTES
from railgun.language.literals import LONG_MAX, too_big

# The tokens that an operand may begin with. Where all of them are accepted, an error says "a value".
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
    "CONCAT": "'||'",
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "_COMMA": "','",
    "$END": "the end",
}
_UNITS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# A comma before FROM: the parser takes FROM as the name of the next item.
_COMMA_FROM = re.compile(r",\s*from\s*\Z", re.IGNORECASE)
# Behind the second operand of a comparison that may go on, or end.
_BEHIND_COMPARED = {"PLUS", "_OR"}
_ARITHMETIC = {"PLUS", "MINUS", "SLASH", "PERCENT", "STAR", "CONCAT"}
# The tokens that may follow an item of a DERIVE without AS; a name follows where only the word AS is missing.
_BEHIND_NAME = frozenset({"_COMMA", "_FROM", "_SEMICOLON", "$END", "NAME", "QUOTED"})
_NAME_REMEDY = "write AS and a name behind the expression, as in DERIVE declined / n AS rate FROM payments"
_TOO_LARGE_REMEDY = (
    "BETWEEN and CASE x WHEN repeat their first operand for each test: make that a shorter one"
)
# What is meant by characters that other languages use.
_CHARACTERS = {
    "!": "unequal is <> or !=",
    "&": "both is AND",
    "|": "either is OR; || joins strings",
    "`": "a name goes in double quotes",
    "[": "a list goes in parentheses",
}
_CHARACTER_REMEDY = "text goes in single quotes, a name that needs quotes in double ones"


def _wants_name(accepted: set[str]) -> bool:
    """Whether the expression of an item of a DERIVE may end here."""
    # AS is accepted in a CAST and behind an item of a SELECT too, where one of the others is accepted as well.
    return "_AS" in accepted and accepted.isdisjoint({"_CLOSE", "_COMMA", "_FROM"})


def unexpected_token(text: str, error: UnexpectedToken) -> QueryError:
    """The error for a word or sign in the wrong place, or for text that ends too early."""
    token = error.token
    accepted = set(error.accepts) if isinstance(error.accepts, set) else set(error.expected)
    is_end = token.type == "$END"
    position = position_of(text, len(text) if is_end else token.start_pos or 0)
    meant = None if is_end else _meant(token, accepted, text[: token.start_pos])
    if meant is None and token.type in _BEHIND_NAME and _wants_name(accepted):
        return QueryError("each item of DERIVE needs a name", position, hint=_NAME_REMEDY)
    if is_end:
        return QueryError("the query ends too early", position, _expected(accepted))
    return QueryError(f"unexpected {str(token)[:80]!r}", position, _expected(accepted), meant)


def unexpected_character(text: str, error: UnexpectedCharacters) -> QueryError:
    """The error for a character that no token begins with."""
    offset = error.pos_in_stream or 0
    character = text[offset]
    if character in "'\"":
        closing = "a string in single quotes" if character == "'" else "a name in double quotes"
        return QueryError(
            f"{closing} is never closed", position_of(text, offset), hint=f"end it with {character}"
        )
    remedy = _CHARACTERS.get(character, _CHARACTER_REMEDY)
    return QueryError(f"unexpected character {character!r}", position_of(text, offset), hint=remedy)


def _keywords(accepted: set[str]) -> list[str]:
    words = [name.lstrip("_") for name in accepted if name not in _SAID and name not in _OPERAND_START]
    return words + [name for name in ("NOT", "CASE") if name in accepted]


def _expected(accepted: set[str]) -> tuple[str, ...]:
    """What could stand there. Arithmetic is left out where anything else could."""
    if accepted >= _OPERAND:
        return tuple(sorted({"a value", *_worded(accepted - _OPERAND_START)}))
    rest = accepted - _ARITHMETIC
    return tuple(sorted(_worded(rest or accepted)))


def _worded(accepted: set[str]) -> set[str]:
    return {_SAID.get(name, name.lstrip("_")) for name in accepted if name != "_SEMICOLON"}


def _meant(token: Token, accepted: set[str], before: str) -> str | None:
    """What may be meant by a token that cannot stand where it does. before: the text in front of it."""
    found = str(token)
    if _COMMA_FROM.search(before):
        return "leave out the comma before FROM"
    if token.type == "STAR" and accepted == {"NAME"}:
        return "name each metric, as in SELECT count(*) AS n, sum(amount) AS total"
    if token.type == "COMPARISON" and accepted >= _OPERAND:
        return "equality is a single =" if found == "=" else None
    if token.type == "COMPARISON" and accepted >= _BEHIND_COMPARED:
        return "compare two at a time, as in 1 < x AND x < 3, or write x BETWEEN 1 AND 3"
    if not _WORD.fullmatch(found):
        return None
    words = _UNITS if "UNIT" in accepted else _keywords(accepted)
    near = nearest(found, words)
    return f"did you mean {near}?" if near else None


_REMEMBERED, _REMEMBERED_CHARACTERS = 256, 1024
_PARENTHESES = re.compile(r"'[^']*'|\"[^\"]*\"|[()]")


@functools.cache
def _parser() -> Lark:
    grammar = resources.files("railgun.language").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar, parser="lalr", maybe_placeholders=False, g_regex_flags=re.ASCII, transformer=Builder()
    )


Statement = Query | Derivation


def parse_query(text: str) -> Query:
    """As `parse_statement`, but raises QueryError for a DERIVE too."""
    statement = parse_statement(text)
    if isinstance(statement, Derivation):
        raise QueryError("a DERIVE does not belong here", position_of(text, 0), ("SELECT",))
    return statement


def parse_statement(text: str) -> Statement:
    """The syntax tree of one query or DERIVE. Trees are cached by their text.

    Keywords are case-insensitive; names are not. Limits are those of `railgun.language.limits`.

    Raises QueryError, with the place, for text that is not a statement or exceeds a limit.
    """
    return _remembered(text) if len(text) <= _REMEMBERED_CHARACTERS else _parsed(text)


def _parsed(text: str) -> Statement:
    try:
        _check_text(text)
        statement: Statement = _parser().parse(text)  # type: ignore[assignment]
        _measured(statement, 0)
        if isinstance(statement, Query):
            for item in statement.items:
                both = all_of(statement.where, item.condition)
                if both is not None and item.condition is not None:
                    _measured(both, 0)
    except OffsetError as error:
        raise error.in_text(text) from None
    except UnexpectedToken as error:
        raise unexpected_token(text, error) from None
    except UnexpectedCharacters as error:
        raise unexpected_character(text, error) from None
    return dataclasses.replace(statement, text=text)


# Every task of a stream parses the stream's metrics when it is opened.
_remembered = functools.lru_cache(_REMEMBERED)(_parsed)


def _check_text(text: str) -> None:
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        raise OffsetError(
            "a lone surrogate, which is no character", error.start, "write the character itself"
        ) from None
    if size_bytes > TEXT_LIMIT_BYTES:
        message = f"the text has {size_bytes} bytes; at most {TEXT_LIMIT_BYTES} are allowed"
        raise OffsetError(message, len(text), "write its items as several queries")
    if text.count("(") > DEPTH_LIMIT:
        depth = 0
        for match in _PARENTHESES.finditer(text):
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if depth > DEPTH_LIMIT:
                message = f"parentheses nested deeper than {DEPTH_LIMIT}"
                raise OffsetError(message, match.start(), "take out those that change nothing")


def _measured(node: Node, depth: int) -> int:
    """The number of nodes of the typed tree below a node. Raises OffsetError where it is nested too deep or too large.

    The typed trees of BETWEEN, and of CASE with an operand, repeat the operand for each test. Nested, they multiply.
    """
    depth += isinstance(node, Expression)
    if depth > DEPTH_LIMIT:
        message = f"an expression deeper than {DEPTH_LIMIT}: each operator of a chain is one deeper"
        raise OffsetError(message, node.position, "write a long chain in halves, as (a + b) + (c + d)")
    if isinstance(node, LongLiteral) and node.value > LONG_MAX:
        raise too_big(node.position)
    sizes = [_measured(child, depth) for child in children(node)]
    size = sum(sizes, 1)
    if isinstance(node, Between):
        size += sizes[0]
    elif isinstance(node, Case) and node.operand is not None:
        size += sizes[0] * len(node.branches)
    if size > SIZE_LIMIT:
        raise OffsetError("an expression too large once written out", node.position, _TOO_LARGE_REMEDY)
    return size
